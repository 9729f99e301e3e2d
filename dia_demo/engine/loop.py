"""The batched loop: rows advance together, one decoder step at a time.

All of it runs on the CPU, wherever the model runs (engine/decoder_model.py).
"""

from __future__ import annotations

import math
import threading
from collections.abc import Generator, Sequence

import numpy as np
import torch
from torch import Tensor

from dia_demo.engine.decoder_model import DecoderCache, DecoderModel
from dia_demo.engine.events import FinishReason
from dia_demo.engine.row import Row
from dia_demo.engine.sampling import Sampler
from dia_demo.errors import RunError
from dia_demo.model.cpu_model import torch_threads

# Each step reads the weights once for all rows, so further rows cost little until the arithmetic is
# the limit.
ROWS_AT_ONCE = 8


def run(
    model: DecoderModel, rows: Sequence[Row], at_once: int = ROWS_AT_ONCE
) -> Generator[Row, None, None]:
    """Yield each row after each of its steps until all are done, cancelled or failed.

    At most `at_once` rows advance together. Each of the others joins when a row leaves; its text
    and voice prompt are read in the meantime. A cancelled row is yielded once more, without a step,
    and leaves; a row whose logits are not finite leaves with its `failure` set. A row that leaves
    frees its cache at once.
    """
    waiting, active = list(rows), []
    try:
        for row in waiting[:at_once]:
            row.cache = _prefill(model, row)
            active.append(row)
        del waiting[:at_once]
        prefill = PrefillThread(model)
        batch: Batch | None = None
        while active or waiting:
            for row in [row for row in active + waiting if row.cancel.is_set()]:
                row.finish_reason = FinishReason.CANCELLED
                (active if row in active else waiting).remove(row)
                row.cache = batch = None
                yield row
            if waiting and prefill.may_join(waiting[0], len(active) < at_once, not active):
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


def run_to_end(model: DecoderModel, rows: Sequence[Row]) -> None:
    """`run` without looking at its steps. Raises RunError where a row failed."""
    for row in run(model, rows):
        if row.failure is not None:
            raise RunError(row.failure)


class PrefillThread:
    """Prefills the row that joins next, in a thread beside the steps of the others.

    A model in another process serves one call at a time: its rows are prefilled between two steps.
    """

    def __init__(self, model: DecoderModel) -> None:
        self._model = model
        self._row: Row | None = None
        self._cache: DecoderCache | None = None
        self._error: Exception | None = None
        self._thread = threading.Thread()

    def may_join(self, row: Row, has_place: bool, must_wait: bool) -> bool:
        """Whether `row` is prefilled and there is a place for it in the batch.

        must_wait: no other row advances. Raises the error of its prefill.
        """
        if not self._model.can_prefill_ahead:
            row.cache = _prefill(self._model, row) if has_place else None
            return has_place
        if self._row is not row:
            self._row, self._cache, self._error = row, None, None
            self._thread = threading.Thread(target=self._prefill, args=(row,), daemon=True)
            self._thread.start()
        if must_wait:
            self._thread.join()
        if not has_place or self._thread.is_alive():
            return False
        if self._error is not None:
            raise self._error
        row.cache = self._cache
        return True

    def _prefill(self, row: Row) -> None:
        try:
            self._cache = _prefill(self._model, row)
        except Exception as error:  # Raised again in the thread that runs the steps.
            self._error = error


def _prefill(model: DecoderModel, row: Row) -> DecoderCache:
    """A row's cache after its text and its voice prompt, but for what the first step reads."""
    cache = model.encode(row.text, row.params.cfg_scale, row.max_steps)
    if row.position > 0:
        codes = torch.from_numpy(row.previous_inputs)[None].expand(cache.halves, -1, -1)
        model(codes, [cache])
    return cache


class Batch:
    """Rows that advance together. A new one is built whenever a row joins or leaves, so that a step
    allocates nothing."""

    def __init__(self, model: DecoderModel, rows: Sequence[Row]) -> None:
        caches = [row.cache for row in rows if row.cache is not None]
        assert len(caches) == len(rows), "a row joins with its cache"
        self._model = model
        self._rows = list(rows)
        self._caches = caches
        decoder = model.config.decoder
        self._sampler = Sampler.of([row.params for row in rows], decoder)
        halves = torch.tensor([cache.halves for cache in caches])
        # A row of one half (without guidance, or distilled) is used for both.
        self._uncond = halves.cumsum(0) - 1
        self._cond = self._uncond - halves + 1
        self._every = int(halves[0]) if (halves == halves[0]).all() else None
        # Written by each step.
        shape = (len(rows), decoder.num_channels)
        slots = int(halves.sum())
        self._codes = torch.empty(slots, 1, model.config.codes_per_step, dtype=torch.int64)
        self._inputs = self._codes[:, 0].numpy()
        self._frame = torch.empty(slots, shape[1], dtype=torch.int64)
        self._picked = [torch.empty(*shape, decoder.vocab_size) for _ in range(2)]
        self._uniforms = torch.empty(shape)
        self._by_row = list(zip(self._rows, self._uniforms.unbind(), strict=True))
        self._sums = torch.empty(len(self._codes))

    @torch.inference_mode()
    def step(self) -> None:
        """One decoder step: every row feeds its next codes and accepts the ones after them."""
        self._gather([row.next_input for row in self._rows], self._inputs)
        logits_BCV = self._model(self._codes, self._caches)[:, 0]
        with torch_threads(1):
            self._sample(logits_BCV)
        for number in range(1, self._model.config.frames_per_step):
            self._gather([row.last_frame for row in self._rows], self._frame.numpy())
            logits_BCV = self._model.next_frame(self._frame, self._caches, number)
            with torch_threads(1):
                self._sample(logits_BCV)

    def _gather(self, codes: Sequence[np.ndarray], out: np.ndarray) -> None:
        """Write each row's codes to its slots of `out`."""
        pairs = zip(codes, self._caches, strict=True)
        np.stack([each for each, cache in pairs for _ in range(cache.halves)], out=out)

    def _sample(self, logits_BCV: Tensor) -> None:
        self._fail_where_not_finite(logits_BCV)
        cond, uncond = self._both_halves(logits_BCV)
        for row, uniforms in self._by_row:
            row.draw_uniforms(uniforms)
        drawn = self._sampler(cond, uncond, self._uniforms).numpy()
        for row, codes in zip(self._rows, drawn, strict=True):
            if not row.done:
                row.accept(codes)

    def _both_halves(self, logits_BCV: Tensor) -> tuple[Tensor, Tensor]:
        """(conditional, unconditional), both [R, C, V]."""
        if self._every is not None:  # Evenly spaced: views suffice.
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
                    f"The decoder returned a non-finite number at step {row.steps + 1}. The take "
                    "is dropped, because its audio would be noise. Try float32; if that fails too, "
                    "the weights are damaged: fetch them again."
                )
