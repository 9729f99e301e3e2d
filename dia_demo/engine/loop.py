"""The batched loop: rows go forward together, one decoder step at a time.

All of it runs on the CPU. A model on another device (engine/hybrid.py) takes codes from the CPU and
gives logits back to it.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor

from dia_demo.engine.row import Row
from dia_demo.engine.sampling import Sampler
from dia_demo.errors import RunError
from dia_demo.model.dia import Dia
from dia_demo.model.kv_cache import RowCache
from dia_demo.model.threads import torch_threads

# Weights are read once for all rows: more of them cost little until arithmetic is the limit.
ROWS_AT_ONCE = 8


def run(model: Dia, rows: Sequence[Row], at_once: int = ROWS_AT_ONCE) -> Iterator[Row]:
    """Yield each row after each of its steps until all are done, cancelled or out of room.

    At most `at_once` rows go forward together, the first of them at once; each of the others takes
    the place of one that is done, its text and voice prompt read meanwhile. A cancelled row is
    yielded once more, without a step, and then dropped; so is a row whose logits are not finite,
    with its `failure` set. A row that ends or is dropped gives its cache back at once.
    """
    waiting, active = list(rows), []
    try:
        for row in waiting[:at_once]:
            row.cache = _prefill(model, row)
            active.append(row)
        del waiting[:at_once]
        ahead = _Ahead(model)
        batch = None
        while active or waiting:
            for row in [row for row in active + waiting if row.cancel.is_set()]:
                row.finish_reason = "cancelled"
                (active if row in active else waiting).remove(row)
                row.cache = batch = None
                yield row
            if waiting and ahead.next(waiting[0], len(active) < at_once, not active):
                active.append(waiting.pop(0))
                batch = None
            if not active:
                continue
            batch = batch or Batch(model, active)
            batch.step()
            yield from active
            for row in [row for row in active if row.done]:
                active.remove(row)
                row.cache = batch = None
    finally:
        for row in [*active, *waiting]:
            row.cache = None


def run_to_end(model: Dia, rows: Sequence[Row]) -> None:
    """`run` without a look at its steps. Raises RunError where a row failed."""
    for row in run(model, rows):
        if row.failure is not None:
            raise RunError(row.failure)


class _Ahead:
    """Prefills the row that is next to join, in a thread beside the steps of the others.

    A model in another process does one thing at a time: its rows are prefilled between two steps.
    """

    def __init__(self, model: Dia) -> None:
        self._model = model
        self._row: Row | None = None
        self._thread = threading.Thread()

    def next(self, row: Row, has_place: bool, must_wait: bool) -> bool:
        """Whether `row` may join: it is prefilled, and there is a place for it.

        must_wait: nothing else goes forward. Raises what its prefill raised.
        """
        if not isinstance(self._model, Dia):
            row.cache = _prefill(self._model, row) if has_place else None
            return has_place
        if self._row is not row:
            self._row, self._cache, self._error = row, None, None
            self._thread = threading.Thread(target=self._read, args=(row,), daemon=True)
            self._thread.start()
        if must_wait:
            self._thread.join()
        if not has_place or self._thread.is_alive():
            return False
        if self._error is not None:
            raise self._error
        row.cache = self._cache
        return True

    def _read(self, row: Row) -> None:
        try:
            self._cache = _prefill(self._model, row)
        except Exception as error:  # For the thread that runs the steps.
            self._error = error


def _prefill(model: Dia, row: Row) -> RowCache:
    """The cache of a row that has read its text and its voice prompt up to the last frame."""
    cache = model.encode(row.text, row.guidance, row.params.max_tokens)
    if row.position > 0:
        codes = torch.from_numpy(row.prefill)[None].expand(cache.halves, -1, -1)
        model(codes, [cache])
    return cache


class Batch:
    """Rows that go forward together. Made anew when one joins or leaves: all else is done here."""

    def __init__(self, model: Dia, rows: Sequence[Row]) -> None:
        self._model = model
        self._rows = list(rows)
        self._caches = [row.cache for row in rows]
        decoder = model.config.decoder
        self._sampler = Sampler.of([row.params for row in rows], decoder)
        halves = torch.tensor([cache.halves for cache in self._caches])
        # Rows without guidance have one half, which then stands for both.
        self._uncond = halves.cumsum(0) - 1
        self._cond = self._uncond - halves + 1
        self._every = int(halves[0]) if (halves == halves[0]).all() else None
        # What each step fills anew.
        shape = (len(rows), decoder.num_channels)
        self._codes = torch.empty(int(halves.sum()), 1, shape[1], dtype=torch.int64)
        self._inputs = self._codes[:, 0].numpy()
        self._picked = [torch.empty(*shape, decoder.vocab_size) for _ in range(2)]
        self._uniforms = torch.empty(shape)
        self._by_row = list(zip(self._rows, self._uniforms.unbind(), strict=True))
        self._sums = torch.empty(len(self._codes))

    @torch.inference_mode()
    def step(self) -> None:
        """One decoder step: every row reads its next codes and accepts the ones after."""
        inputs = [row.next_input for row in self._rows for _ in range(row.cache.halves)]
        np.stack(inputs, out=self._inputs)
        logits_BCV = self._model(self._codes, self._caches)[:, 0]
        with torch_threads(1):
            self._sample(logits_BCV)

    def _sample(self, logits_BCV: Tensor) -> None:
        self._fail_where_not_finite(logits_BCV)
        cond, uncond = self._both_halves(logits_BCV)
        for row, uniforms in self._by_row:
            row.draw_uniforms(uniforms)
        drawn = self._sampler(cond, uncond, self._uniforms).numpy()
        for row, codes in zip(self._rows, drawn, strict=True):
            if row.failure is None:
                row.accept(codes)

    def _both_halves(self, logits_BCV: Tensor) -> tuple[Tensor, Tensor]:
        """(conditional, unconditional), both [R, C, V]."""
        if self._every is not None:  # Evenly spaced: nothing needs to be copied out.
            return logits_BCV[:: self._every], logits_BCV[self._every - 1 :: self._every]
        cond, uncond = self._picked
        torch.index_select(logits_BCV, 0, self._cond, out=cond)
        return cond, torch.index_select(logits_BCV, 0, self._uncond, out=uncond)

    def _fail_where_not_finite(self, logits_BCV: Tensor) -> None:
        # A sum is finite unless an element is not.
        sums = torch.sum(logits_BCV, (1, 2), out=self._sums)
        if all(map(math.isfinite, sums.tolist())):
            return
        totals = (sums[self._cond] + sums[self._uncond]).tolist()
        for row, total in zip(self._rows, totals, strict=True):
            if not math.isfinite(total):
                row.fail(
                    f"The decoder gave a non-finite number at step {row.steps + 1}. The take is "
                    "dropped: its audio would be noise. Try float32; if that fails too, the "
                    "weights are damaged: fetch them again."
                )
