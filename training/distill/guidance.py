"""Phase 1: a student that gives guided logits itself, without an unconditional branch.

The student starts as the teacher. On takes that the teacher sampled, its distribution at every step
is brought to that of the teacher's guided sampling (rule.py), for CFG scales drawn at random.
"""

from __future__ import annotations

import copy
import logging
import math
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from statistics import fmean

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from dia_demo.errors import InputError
from dia_demo.files import write_atomic
from dia_demo.machine.processor import multiplies_bfloat16
from dia_demo.model.dia import EMPTY_TEXT, Dia
from training.distill import network
from training.distill.rule import divergence, drawn_mask, guided_distribution
from training.distill.takes import Batch, SampledTake, collate, draw_scale, in_batches

log = logging.getLogger(__name__)

WARM_UP, LOWEST = 50, 0.02  # Steps; the learning rate at the end, as a part of the highest.
LARGEST_GRADIENT = 1.0


@dataclass(frozen=True)
class Plan:
    """steps: of the optimizer. positions: in a batch. temperatures: of the loss, which is the mean
    over them. average: the decay of the moving average of the weights that becomes the student; 0:
    the last weights do. muon: for the matrices inside the layers, instead of AdamW. save_seconds:
    from one saved state to the next."""

    steps: int
    lr: float = 3e-5
    positions: int = 3000
    seed: int = 0
    device: str = "cpu"
    temperatures: tuple[float, ...] = (1.0,)
    average: float = 0.0
    muon: bool = False
    save_seconds: float = 30.0
    log_steps: int = 50


@dataclass
class Lesson:
    """A teacher, frozen, and the student that learns from it.

    keep_states: keep what the teacher's decoder gives for each take, so that the teacher reads it
    only once. That needs memory for 2 * width float32 numbers a position.
    """

    teacher: Dia
    student: Dia
    device: str = "cpu"
    keep_states: bool = False
    _kept: dict[SampledTake, Tensor] = field(default_factory=dict)
    _no_text: network.TextKeys = field(default_factory=list)

    @property
    def temperatures(self) -> list[float]:
        """1, and then the checkpoint's own, at which its takes are sampled."""
        own = self.teacher.config.defaults.temperature
        return [1.0, own] if own not in (0.0, 1.0) else [1.0]

    def autocast(self) -> AbstractContextManager[None]:
        """bfloat16, but not on a processor without it, where a step would take 20 times as long."""
        enabled = self.device != "cpu" or multiplies_bfloat16()
        return torch.autocast(self.device, torch.bfloat16, enabled=enabled)

    @torch.no_grad()
    def target(self, batch: Batch, scales: Sequence[float]) -> Tensor:
        """log p [B, T, C, V] of the teacher's guided sampling with these CFG scales."""
        cond, uncond = (
            network.first_logits(self.teacher, states) for states in self._teacher_states(batch)
        )
        config = self.teacher.config
        return guided_distribution(
            cond,
            uncond,
            torch.tensor(scales, device=self.device),
            config.defaults.top_k,
            config.decoder,
        )

    def _teacher_states(self, batch: Batch) -> Tensor:
        """What the teacher's last layer gives with the text and without it, [2, B, T, D]."""
        if all(take in self._kept for take in batch.takes):
            states_BTND = pad_sequence([self._kept[take] for take in batch.takes], True)
            return states_BTND.permute(2, 0, 1, 3)
        with self.autocast():
            texts = network.read_texts(self.teacher, batch.text, batch.text_mask)
            if not self._no_text:
                letters = torch.tensor([list(EMPTY_TEXT)], device=self.device)
                self._no_text = network.read_texts(self.teacher, letters, letters == 0)
            bias = network.hidden_where(~batch.text_mask)
            inputs = batch.codes[:, :-1]
            cond = network.last_states(self.teacher, inputs, texts, bias)
            uncond = network.last_states(self.teacher, inputs, self._no_text, None)
        if self.keep_states:
            for take, states in zip(batch.takes, torch.stack((cond, uncond), 2), strict=True):
                self._kept[take] = states[: len(take.codes) - 1].clone()
        return torch.stack((cond, uncond))

    def logits(self, batch: Batch, scales: Sequence[float]) -> Tensor:
        """The student's logits [B, T, C, V] with these CFG scales."""
        with self.autocast():
            texts = network.read_texts(self.student, batch.text, batch.text_mask)
            bias = network.hidden_where(~batch.text_mask)
            vectors = network.scale_vectors(self.student, scales)
            return network.decode(self.student, batch.codes[:, :-1], texts, bias, vectors)

    def divergences(
        self, batch: Batch, scales: Sequence[float], temperatures: Sequence[float] = (1.0,)
    ) -> tuple[list[Tensor], Tensor]:
        """KL(teacher || student) [B, T, C] at each temperature, and where it counts."""
        log_p, logits = self.target(batch, scales), self.logits(batch, scales)
        kls = [divergence(log_p, logits, temperature) for temperature in temperatures]
        return kls, drawn_mask(batch.codes, self.teacher.config.decoder)


@torch.no_grad()
def measure(
    lesson: Lesson, takes: Sequence[SampledTake], positions: int
) -> dict[float, dict[float, float]]:
    """Mean KL in nats a code over all the takes: for each of the student's own CFG scales, at
    temperature 1 and at the checkpoint's own."""
    temperatures = lesson.temperatures
    means = {}
    for scale in lesson.student.config.guidance_scales:
        totals, count = [0.0] * len(temperatures), 0
        for part in in_batches(takes, positions):
            batch = collate(part, lesson.teacher.config, lesson.device)
            kls, mask = lesson.divergences(batch, [scale] * len(part), temperatures)
            totals = [total + float(kl[mask].sum()) for total, kl in zip(totals, kls, strict=True)]
            count += int(mask.sum())
        means[scale] = {t: total / count for t, total in zip(temperatures, totals, strict=True)}
    return means


def learning_rate(plan: Plan, step: int) -> float:
    """Warm-up, then a cosine down to LOWEST."""
    done = min(1.0, step / plan.steps)
    cosine = LOWEST + (1 - LOWEST) * (1 + math.cos(math.pi * done)) / 2
    return plan.lr * min(1.0, (step + 1) / WARM_UP) * cosine


def endless(takes: Sequence[SampledTake], plan: Plan) -> Iterator[tuple[int, list[SampledTake]]]:
    """(step, takes) of every step; the same after a restart."""
    step, epoch = 0, 0
    while True:
        for part in in_batches(takes, plan.positions, Random(f"{plan.seed} {epoch}")):
            yield step, part
            step += 1
        epoch += 1


def optimizers_of(student: Dia, plan: Plan) -> list[torch.optim.Optimizer]:
    """AdamW, and Muon if the plan has it: for the matrices inside the layers, at the same rate."""
    inner, others = [], []
    for name, weight in student.named_parameters():
        is_inner = weight.dim() == 2 and (".layers." in name or ".mlp." in name)
        (inner if plan.muon and is_inner else others).append(weight)
    adamw = torch.optim.AdamW(others, plan.lr, betas=(0.9, 0.98), weight_decay=0.0)
    if not plan.muon:
        return [adamw]
    muon = torch.optim.Muon(inner, plan.lr, weight_decay=0.0, adjust_lr_fn="match_rms_adamw")
    return [adamw, muon]


class Training:
    """A lesson's progress, saved in the file `path`, if there is one: training goes on where it was
    when its process ended."""

    def __init__(self, lesson: Lesson, plan: Plan, path: Path | None = None) -> None:
        self.lesson, self.plan, self.path = lesson, plan, path
        self.optimizers = optimizers_of(lesson.student, plan)
        self.average = (
            AveragedModel(lesson.student, multi_avg_fn=get_ema_multi_avg_fn(plan.average))
            if plan.average
            else None
        )
        self.step = 0
        self._saved = time.monotonic()
        if path is not None and path.exists():
            state = torch.load(path, map_location=lesson.device, weights_only=True)
            begun = len(state["optimizers"]), "average" in state
            if begun != (len(self.optimizers), self.average is not None):
                raise InputError(
                    f"The training in {path} began with other options: give the same --muon and "
                    "--average, or another --out."
                )
            lesson.student.load_state_dict(state["student"])
            for optimizer, its_state in zip(self.optimizers, state["optimizers"], strict=True):
                optimizer.load_state_dict(its_state)
            if self.average is not None:
                self.average.load_state_dict(state["average"])
            self.step = state["step"]
            log.info("goes on after step %d", self.step)

    def save(self) -> None:
        state = {
            "student": self.lesson.student.state_dict(),
            "optimizers": [optimizer.state_dict() for optimizer in self.optimizers],
            "step": self.step,
        }
        if self.average is not None:
            state["average"] = self.average.state_dict()
        if self.path is not None:
            with write_atomic(self.path) as part:
                torch.save(state, part)
        self._saved = time.monotonic()

    @property
    def result(self) -> Dia:
        """The student, or the moving average of its weights if the plan has one."""
        return self.lesson.student if self.average is None else self.average.module

    def run(self, takes: Sequence[SampledTake]) -> None:
        """Train up to the plan's last step."""
        sums: dict[int, list[list[float]]] = {}
        for step, part in endless(takes, self.plan):
            if step < self.step:
                continue
            if step >= self.plan.steps:
                break
            scales = self._scales(step, len(part))
            for scale, kl in zip(scales, self.advance(part, scales), strict=True):
                sums.setdefault(round(scale), []).append(kl)
            self.step = step + 1
            if self.step % self.plan.log_steps == 0:
                self._log(sums)
                sums.clear()
            if time.monotonic() - self._saved > self.plan.save_seconds:
                self.save()
        self.save()

    def _scales(self, step: int, count: int) -> list[float]:
        random = Random(f"{self.plan.seed} scales {step}")
        return [
            draw_scale(random, self.lesson.student.config.guidance_scales) for _ in range(count)
        ]

    def advance(self, takes: Sequence[SampledTake], scales: Sequence[float]) -> list[list[float]]:
        """One step of the optimizer; the mean KL of each take at each temperature.

        The loss is the mean KL at the plan's temperatures. At 1, most of it are unlikely codes
        beyond the teacher's top k. A student avoids them by a sharper distribution, which is wrong
        at a low temperature, where its own top k avoids them anyway.
        """
        for optimizer in self.optimizers:
            for group in optimizer.param_groups:
                group["lr"] = learning_rate(self.plan, self.step)
        batch = collate(takes, self.lesson.teacher.config, self.lesson.device)
        learnt, told = self.plan.temperatures, self.lesson.temperatures
        temperatures = list(dict.fromkeys((*learnt, *told)))
        kls, mask = self.lesson.divergences(batch, scales, temperatures)
        kl_BN = torch.stack([kl.masked_fill(~mask, 0.0).sum((1, 2)) for kl in kls], 1)
        self.lesson.student.zero_grad()
        (kl_BN[:, : len(learnt)].mean(1).sum() / mask.sum()).backward()
        torch.nn.utils.clip_grad_norm_(self.lesson.student.parameters(), LARGEST_GRADIENT)
        for optimizer in self.optimizers:
            optimizer.step()
        if self.average is not None:
            self.average.update_parameters(self.lesson.student)
        places = [temperatures.index(temperature) for temperature in told]
        return (kl_BN[:, places].detach() / mask.sum((1, 2)).unsqueeze(1)).tolist()

    def _log(self, sums: dict[int, list[list[float]]]) -> None:
        means = " ".join(
            f"w{scale}: " + " / ".join(f"{fmean(kl):.4f}" for kl in zip(*kls, strict=True))
            for scale, kls in sorted(sums.items())
        )
        rate = learning_rate(self.plan, self.step)
        temperatures = " / ".join(f"{each:g}" for each in self.lesson.temperatures)
        log.info(
            "step %d of %d, lr %.1e, KL at temperature %s: %s",
            self.step, self.plan.steps, rate, temperatures, means,
        )  # fmt: skip


def lesson_of(teacher: Dia, student: Dia, device: str, keep_states: bool = False) -> Lesson:
    """The teacher frozen, both on the device."""
    frozen = copy.deepcopy(teacher).requires_grad_(False)
    return Lesson(frozen.to(device), student.to(device), device, keep_states)
