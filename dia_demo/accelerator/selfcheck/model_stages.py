"""Stages 8 and 9: the whole checkpoint, step by step against the CPU, then for many steps."""

from __future__ import annotations

from time import perf_counter

import torch
from torch import Tensor

from dia_demo.accelerator.selfcheck.context import CheckContext
from dia_demo.accelerator.selfcheck.recorder import StageRecorder
from dia_demo.config import ModelConfig
from dia_demo.engine.decoder_model import DecoderModel

TEXT = b"\x01 Good morning. Did you sleep well? \x02 I did, thank you, and you? \x01"
# Growth below this is the allocator's own rounding.
MEMORY_SLACK = 16 * 2**20
MAX_DRIFT = 1e-5
ROW_STEPS = 200


def teacher_forced(context: CheckContext, recorder: StageRecorder) -> None:
    """The same codes into both: KL divergence of the next codes, and the most likely code.

    The most likely code must be the same wherever the CPU's margin exceeds the allowed one.
    """
    on_cpu, on_device, config = context.reference, context.device_model, context.config
    text, count = _text(config), min(context.plan.steps, config.decoder.max_positions - 1)
    recorder.begin("the encoder")
    scale = config.cfg_scales[1]  # Not 0.
    cpu_cache = on_cpu.encode(text, scale, count + 1)
    device_cache = on_device.encode(text, scale, count + 1)
    generator = torch.Generator().manual_seed(0)
    codes = _first_codes(config)
    for step in range(count):
        where = f"step {step + 1}"
        recorder.begin(where)
        expected = on_cpu(codes, [cpu_cache])[:, 0]
        actual = on_device(codes, [device_cache])[:, 0]
        frames: list[Tensor] = []
        for frame in range(config.frames_per_step):
            if frame:
                expected = on_cpu.next_frame(frames[-1], [cpu_cache], frame)
                actual = on_device.next_frame(frames[-1], [device_cache], frame)
            if not actual.isfinite().all():
                recorder.add_problem(f"{where} gives NaN or infinity among the logits")
                return
            recorder.measure(*_divergence(expected, actual, where))
            _check_argmax(expected, actual, context.tolerance("margin"), recorder, where)
            position = step * config.frames_per_step + frame
            frames.append(_next_codes(expected, config, generator, position))
        codes = torch.cat(frames, -1).unsqueeze(1)


def _text(config: ModelConfig) -> bytes:
    return TEXT[: config.encoder.max_positions]


def _divergence(expected: Tensor, actual: Tensor, where: str) -> tuple[float, str, str]:
    """KL(CPU || device) of the worst channel, in nats."""
    log_p, log_q = expected.double().log_softmax(-1), actual.double().log_softmax(-1)
    kl = (log_p.exp() * (log_p - log_q)).sum(-1)
    return kl.max().item(), where, f"channel {kl.amax(0).argmax().item()}"


def _check_argmax(
    expected: Tensor, actual: Tensor, margin: float, recorder: StageRecorder, where: str
) -> None:
    best = expected.topk(2, dim=-1)
    is_clear = best.values[..., 0] - best.values[..., 1] > margin
    differs = is_clear & (actual.argmax(dim=-1) != best.indices[..., 0])
    if differs.any():
        channels = sorted({channel for _, channel in differs.nonzero().tolist()})
        recorder.add_problem(f"{where} has another most likely code, on channels {channels}")


def _next_codes(
    logits: Tensor, config: ModelConfig, generator: torch.Generator, position: int
) -> Tensor:
    """Codes [B, C] sampled from the CPU's conditional branch; BOS as long as the delay pattern
    requires."""
    probs = logits[0, :, : config.num_codes].softmax(-1)
    sampled = torch.multinomial(probs, 1, generator=generator).view(-1)
    delays = torch.tensor(config.delay_pattern)
    codes = torch.where(position < delays, config.decoder.bos, sampled)
    return codes.view(1, -1).expand(config.guided_branches, -1)


def _first_codes(config: ModelConfig) -> Tensor:
    """BOS for each branch of a row with guidance."""
    shape = (config.guided_branches, 1, config.codes_per_step)
    return torch.full(shape, config.decoder.bos)


def soak(context: CheckContext, recorder: StageRecorder) -> None:
    """Row after row, each with a cache of its own, like a series of takes.

    Measures the growth of memory as a share of the memory in use, and whether the same step still
    gives the same numbers.
    """
    model, plan = context.device_model, context.plan
    recorder.begin("the first row")
    model.drift()
    _run_row(model, ROW_STEPS, plan.soak_steps)
    used_before = _used_bytes(context)
    began, done = perf_counter(), 0
    while done < plan.soak_steps and perf_counter() - began < plan.soak_seconds:
        recorder.begin(f"step {done + 1} of the soak")
        done += _run_row(model, ROW_STEPS, plan.soak_steps - done)
        drift = model.drift()
        if drift > MAX_DRIFT:
            recorder.add_problem(
                f"the same step gives different numbers after {done} steps: off by {drift:.1e} "
                f"(allowed {MAX_DRIFT:.0e}), the device drifts"
            )
            break
    growth = max(0, _used_bytes(context) - used_before - MEMORY_SLACK)
    base = max(used_before, context.weight_bytes)
    recorder.measure(growth / base, f"memory in use after {done} steps")
    seconds = perf_counter() - began
    recorder.facts.append(
        f"{done} steps in {seconds:.1f} s; memory grew by {growth / 2**20:.1f} MiB"
    )


def _run_row(model: DecoderModel, steps: int, at_most: int) -> int:
    """One row with guidance that is fed its own most likely codes; returns its steps."""
    config = model.config
    steps = max(1, min(steps, at_most, config.decoder.max_positions - 1))
    cache = model.encode(_text(config), config.cfg_scales[1], steps)
    codes = _first_codes(config)
    for step in range(steps):
        logits = model(codes, [cache])[:, 0]
        frames: list[Tensor] = []
        for frame in range(config.frames_per_step):
            if frame:
                logits = model.next_frame(frames[-1], [cache], frame)
            if not logits.isfinite().all():
                where = f"step {step + 1} of a row"
                raise ArithmeticError(f"NaN or infinity among the logits at {where}")
            argmax = logits[:1, :, : config.num_codes].argmax(dim=-1)
            frames.append(argmax.expand(config.guided_branches, -1).contiguous())
        codes = torch.cat(frames, -1).unsqueeze(1)
    return steps


def _used_bytes(context: CheckContext) -> int:
    context.backend.synchronize()
    return context.backend.memory().used


def steps_per_second(model: DecoderModel, steps: int) -> float:
    """Decoder steps a second with guidance, after a short warm-up."""
    _run_row(model, 4, 4)
    began = perf_counter()
    done = _run_row(model, steps, steps)
    return done / (perf_counter() - began)
