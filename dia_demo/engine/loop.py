"""The batched loop: rows go forward together, one decoder step at a time.

All of it runs on the CPU. A model on another device (engine/hybrid.py) takes codes from the CPU and
gives logits back to it.
"""

from __future__ import annotations

import math
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
        batch = None
        while active:
            for row in [row for row in active if row.cancel.is_set()]:
                row.finish_reason = "cancelled"
                active.remove(row)
                row.cache = batch = None
                yield row
            if not active:
                return
            batch = batch or Batch(model, active)
            batch.step()
            yield from active
            for row in [row for row in active if row.done]:
                active.remove(row)
                row.cache = batch = None
    finally:
        for row in active:
            row.cache = None


def _prefill(model: Dia, row: Row) -> None:
    """Read the text and, where there is one, the voice prompt up to its last frame."""
    row.cache = model.encode(row.text, row.guidance, row.params.max_tokens)
    if row.position > 0:
        codes = torch.from_numpy(row.prefill)[None].expand(row.cache.halves, -1, -1)
        model(codes, [row.cache])


class Batch:
    """Rows that go forward together. Made anew when one leaves: all else is done once, here."""

    def __init__(self, model: Dia, rows: Sequence[Row]) -> None:
        decoder = model.config.decoder
        self._model = model
        self._rows = list(rows)
        self._caches = [row.cache for row in rows]
        self._sampler = Sampler.of([row.params for row in rows], decoder.eos, decoder.vocab_size)
        halves = torch.tensor([cache.halves for cache in self._caches])
        # Rows without guidance have one half, which then stands for both.
        self._uncond = halves.cumsum(0) - 1
        self._cond = self._uncond - halves + 1

    @torch.inference_mode()
    def step(self) -> None:
        """One decoder step: every row reads its next codes and accepts the ones after."""
        inputs = [row.next_input for row in self._rows for _ in range(row.cache.halves)]
        codes_B1C = torch.from_numpy(np.stack(inputs)).unsqueeze(1)
        logits_BCV = self._model(codes_B1C, self._caches)[:, 0]
        self._check_finite(logits_BCV)
        cond, uncond = logits_BCV[self._cond], logits_BCV[self._uncond]
        uniforms = torch.stack([row.uniforms() for row in self._rows])
        drawn = self._sampler(cond, uncond, uniforms).numpy()
        for row, codes in zip(self._rows, drawn, strict=True):
            row.accept(codes)

    def _check_finite(self, logits_BCV: Tensor) -> None:
        # A sum is finite unless an element is not.
        if not math.isfinite(logits_BCV.sum().item()):
            raise RunError(
                f"The decoder gave a non-finite number at step {self._rows[0].steps + 1}. The "
                "take is dropped: its audio would be noise. Try float32; if that fails too, the "
                "weights are damaged: fetch them again."
            )
