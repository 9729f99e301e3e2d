"""Stages 8 and 9: the loaded checkpoint itself, step by step against the CPU, then for long."""

from __future__ import annotations

from time import perf_counter

import torch
from torch import Tensor

from dia_demo.accelerator.device_model import Hybrid
from dia_demo.accelerator.selfcheck.context import Subject
from dia_demo.accelerator.selfcheck.recorder import Tally
from dia_demo.config import ModelConfig
from dia_demo.model.dia import Dia

TEXT = b"\x01 Good morning. Did you sleep well? \x02 I did, thank you, and you? \x01"
# Growth below this is the allocator's own rounding.
MEMORY_SLACK = 16 * 2**20
DRIFT_ALLOWED = 1e-5
ROW_STEPS = 200


def teacher_forced(subject: Subject, tally: Tally) -> None:
    """The same codes into both: KL divergence of what they expect next, and the likeliest code.

    The likeliest code must be the same wherever the CPU's margin is above the tolerance's.
    """
    ours, theirs, config = subject.reference, subject.hybrid, subject.config
    text, count = _text(config), min(subject.plan.steps, config.decoder.max_positions - 1)
    tally.trying("the encoder")
    cache, there = (model.encode(text, True, count + 1) for model in (ours, theirs))
    generator = torch.Generator().manual_seed(0)
    codes = torch.full((2, 1, config.decoder.num_channels), config.decoder.bos)
    for step in range(count):
        where = f"step {step + 1}"
        tally.trying(where)
        expected, got = ours(codes, [cache])[:, 0], theirs(codes, [there])[:, 0]
        if not got.isfinite().all():
            tally.wrong(f"{where} gives NaN or infinity among the logits")
            return
        tally.measure(*_divergence(expected, got, where))
        _check_likeliest(expected, got, subject.allowed("margin"), tally, where)
        codes = _next_codes(expected, config, generator, step)


def _text(config: ModelConfig) -> bytes:
    return TEXT[: config.encoder.max_positions]


def _divergence(expected: Tensor, got: Tensor, where: str) -> tuple[float, str, str]:
    """KL(CPU || device) of the worst channel, in nats."""
    ours, theirs = expected.double().log_softmax(-1), got.double().log_softmax(-1)
    kl = (ours.exp() * (ours - theirs)).sum(-1)
    return kl.max().item(), where, f"channel {kl.amax(0).argmax().item()}"


def _check_likeliest(expected: Tensor, got: Tensor, margin: float, tally: Tally, where: str):
    best = expected.topk(2, dim=-1)
    clear = best.values[..., 0] - best.values[..., 1] > margin
    other = clear & (got.argmax(dim=-1) != best.indices[..., 0])
    if other.any():
        channels = sorted({channel for _, channel in other.nonzero().tolist()})
        tally.wrong(f"{where} takes another code for the likeliest, on channels {channels}")


def _next_codes(logits: Tensor, config: ModelConfig, generator, step: int) -> Tensor:
    """Codes drawn from the CPU's conditional half; BOS as long as the delay pattern says."""
    audio = logits[0, :, : config.num_codes].softmax(-1)
    drawn = torch.multinomial(audio, 1, generator=generator).view(-1)
    delays = torch.tensor(config.delay_pattern)
    codes = torch.where(step < delays, config.decoder.bos, drawn)
    return codes.view(1, 1, -1).expand(2, -1, -1).contiguous()


def soak(subject: Subject, tally: Tally) -> None:
    """Row after row, each with a cache of its own, as takes follow one another.

    Measures the growth of memory as a share of what is in use, and whether the same step still
    gives the same numbers after all of them.
    """
    hybrid, plan = subject.hybrid, subject.plan
    tally.trying("the first row")
    hybrid.drift()
    _run_row(hybrid, ROW_STEPS, plan.soak_steps)
    before = _used(subject)
    began, done = perf_counter(), 0
    while done < plan.soak_steps and perf_counter() - began < plan.soak_seconds:
        tally.trying(f"step {done + 1} of the soak")
        done += _run_row(hybrid, ROW_STEPS, plan.soak_steps - done)
        drift = hybrid.drift()
        if drift > DRIFT_ALLOWED:
            tally.wrong(
                f"the same step gives other numbers after {done} steps: off by {drift:.1e} "
                f"(allowed {DRIFT_ALLOWED:.0e}), the device drifts"
            )
            break
    growth = max(0, _used(subject) - before - MEMORY_SLACK)
    base = max(before, subject.weight_bytes)
    tally.measure(growth / base, f"memory in use after {done} steps")
    seconds = perf_counter() - began
    tally.facts.append(f"{done} steps in {seconds:.1f} s; memory grew by {growth / 2**20:.1f} MiB")


def _run_row(model: Hybrid | Dia, steps: int, at_most: int) -> int:
    """One row with guidance, fed its own likeliest codes; returns its steps."""
    config = model.config
    steps = max(1, min(steps, at_most, config.decoder.max_positions - 1))
    cache = model.encode(_text(config), True, steps)
    codes = torch.full((2, 1, config.decoder.num_channels), config.decoder.bos)
    for step in range(steps):
        logits = model(codes, [cache])
        if not logits.isfinite().all():
            raise ArithmeticError(f"NaN or infinity among the logits at step {step + 1} of a row")
        likeliest = logits[:1, :, :, : config.num_codes].argmax(dim=-1)
        codes = likeliest.expand(2, -1, -1).contiguous()
    return steps


def _used(subject: Subject) -> int:
    subject.backend.synchronize()
    return subject.backend.memory().used


def steps_per_second(model: Hybrid | Dia, steps: int) -> float:
    """Decoder steps a second with guidance, after a short warm-up."""
    _run_row(model, 4, 4)
    began = perf_counter()
    done = _run_row(model, steps, steps)
    return done / (perf_counter() - began)
