"""The batched loop: rows go forward together, one decoder step at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor

from dia_demo.engine.rows import Row
from dia_demo.engine.sampling import Sampler
from dia_demo.errors import RunError
from dia_demo.model.dia import Dia


def run(model: Dia, rows: Sequence[Row]) -> Iterator[Row]:
    """Yield each row after each of its steps until all are done, cancelled or out of room.

    A cancelled row is yielded once more, without a step, and then dropped; a row that ends or
    is dropped gives its cache back at once. Raises RunError on non-finite logits.
    """
    active = list(rows)
    try:
        for row in active:
            _prefill(model, row)
        sampler = None
        while active:
            for row in [row for row in active if row.cancel.is_set()]:
                row.finish_reason = "cancelled"
                active.remove(row)
                row.cache, sampler = None, None
                yield row
            if not active:
                return
            if sampler is None:
                decoder = model.config.decoder
                params = [row.params for row in active]
                sampler = Sampler.of(params, decoder.eos, decoder.vocab_size)
            step(model, active, sampler)
            yield from active
            for row in [row for row in active if row.done]:
                active.remove(row)
                row.cache, sampler = None, None
    finally:
        for row in active:
            row.cache = None


def _prefill(model: Dia, row: Row) -> None:
    """Read the text and, where there is one, the voice prompt up to its last frame."""
    row.cache = model.encode(row.text, row.guidance, row.params.max_tokens)
    if row.position > 0:
        codes = torch.from_numpy(row.prefill)[None].expand(row.cache.halves, -1, -1)
        model(codes.to(model.device), [row.cache])


@torch.inference_mode()
def step(model: Dia, rows: Sequence[Row], sampler: Sampler) -> None:
    """One decoder step: every row reads its next codes and accepts the ones after."""
    caches = [row.cache for row in rows]
    inputs = np.stack([row.next_input for row in rows for _ in range(row.cache.halves)])
    logits_BCV = model(torch.from_numpy(inputs)[:, None].to(model.device), caches)[:, 0].cpu()
    if not logits_BCV.isfinite().all():
        raise RunError(
            f"The decoder gave a non-finite number at step {rows[0].steps + 1}. The take is "
            "dropped: its audio would be noise. Try float32; if that fails too, the weights are "
            "damaged: fetch them again."
        )
    cond, uncond = _halves(logits_BCV, [cache.halves for cache in caches])
    uniforms = torch.stack([row.uniforms() for row in rows])
    for row, codes in zip(rows, sampler(cond, uncond, uniforms).numpy(), strict=True):
        row.accept(codes)


def _halves(logits_BCV: Tensor, halves: list[int]) -> tuple[Tensor, Tensor]:
    """Conditional and unconditional logits [R, C, V]; rows without guidance give both the same."""
    first = torch.tensor(halves).cumsum(0) - torch.tensor(halves)
    return logits_BCV[first], logits_BCV[first + torch.tensor(halves) - 1]
