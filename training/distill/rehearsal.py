"""A rehearsal of a phase with random weights: does a size fit into memory, how long is a step?"""

from __future__ import annotations

import resource
from dataclasses import dataclass
from time import perf_counter

import numpy as np
import torch

from dia_demo.config import ModelConfig
from dia_demo.model.linear import decoder_weights
from dia_demo.model.weights import checkpoint
from dia_demo.task import result_of
from training.distill import guidance
from training.distill.student import several_frames, student_of
from training.distill.takes import SampledTake

TEXT = b"\x01 The same step again, with random weights and random codes."


@dataclass(frozen=True)
class Rehearsal:
    """Of steps of the optimizer, each on one take. flops: of one step. kl: of each step, at each
    temperature."""

    parameters: int
    positions: int
    flops: int
    seconds: list[float]
    kl: list[list[float]]
    peak_bytes: int


def flops_per_position(teacher: ModelConfig, student: ModelConfig) -> int:
    """Of one training step, for every position of audio, without attention: the student forward and
    back (6 a weight), the teacher forward with and without text (2 each)."""
    return 6 * decoder_weights(student) // student.frames_per_step + 4 * decoder_weights(teacher)


def random_take(config: ModelConfig, positions: int) -> SampledTake:
    """Random codes, all of which count."""
    generator = np.random.default_rng(0)
    shape = (positions + 1, config.decoder.num_channels)
    return SampledTake(TEXT, generator.integers(0, config.num_codes, shape), 1.0)


def rehearse(
    config: ModelConfig,
    steps: int,
    positions: int,
    dtype: torch.dtype,
    device: str,
    frames_per_step: int = 1,
) -> Rehearsal:
    """Steps of the optimizer on one random take; student, gradients and optimizer in `dtype`.

    frames_per_step: of the student; more than 1 in phase 2.
    """
    teacher = result_of(checkpoint.load_random(config, "bfloat16"))
    student = student_of(teacher, config.cfg_scales).to(dtype)
    if frames_per_step > 1:
        student = several_frames(student.requires_grad_(False), frames_per_step).to(dtype)
    lesson = guidance.Lesson(teacher.to(device), student.to(device), device)
    plan = guidance.Plan(steps=max(steps, 1), lr=1e-4, device=device)
    training = guidance.Training(lesson, plan, None)
    seconds, kl = [], []
    for _ in range(steps):
        began = perf_counter()
        kl += training.advance([random_take(config, positions)], [1.0])
        training.step += 1
        seconds.append(perf_counter() - began)
    parameters = sum(p.numel() for p in student.parameters())
    flops = positions * flops_per_position(config, student.config)
    return Rehearsal(parameters, positions, flops, seconds, kl, peak_bytes(device))


def peak_bytes(device: str) -> int:
    """Of this process, or of the device's memory."""
    if device == "cpu":
        return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return torch.accelerator.max_memory_allocated()
