"""The batched loop: rows advance together, one decoder step at a time.

All of it runs on the CPU, wherever the model runs (engine/decoder_model.py).
"""

from __future__ import annotations

import threading
from collections.abc import Generator, Sequence
from itertools import accumulate

import numpy as np
import torch
from torch import Tensor

from dia_demo.engine.decoder_model import DecoderCache, DecoderModel
from dia_demo.engine.events import FinishReason
from dia_demo.engine.row import Row
from dia_demo.engine.sampling import NOT_FINITE, make_sampler
from dia_demo.errors import RunError

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
    allocates next to nothing."""

    def __init__(self, model: DecoderModel, rows: Sequence[Row]) -> None:
        caches = [row.cache for row in rows if row.cache is not None]
        assert len(caches) == len(rows), "a row joins with its cache"
        self._model = model
        self._rows = list(rows)
        self._caches = caches
        decoder = model.config.decoder
        halves = [cache.halves for cache in caches]
        self._sample_codes = make_sampler([row.params for row in rows], halves, decoder)
        ends = list(accumulate(halves))
        self._slots = [slice(end - count, end) for end, count in zip(ends, halves, strict=True)]
        # Written by each step.
        slots, channels = ends[-1], decoder.num_channels
        self._codes = torch.empty(slots, 1, model.config.codes_per_step, dtype=torch.int64)
        self._frame = torch.empty(slots, channels, dtype=torch.int64)
        self._uniforms = torch.empty(len(rows), channels)
        self._by_row = list(zip(self._rows, self._uniforms.unbind(), strict=True))

    @torch.inference_mode()
    def step(self) -> None:
        """One decoder step: every row feeds its next codes and accepts the ones after them."""
        self._gather([row.next_input for row in self._rows], self._codes[:, 0].numpy())
        self._sample(self._model(self._codes, self._caches)[:, 0])
        for number in range(1, self._model.config.frames_per_step):
            self._gather([row.last_frame for row in self._rows], self._frame.numpy())
            self._sample(self._model.next_frame(self._frame, self._caches, number))

    def _gather(self, codes: Sequence[np.ndarray], out: np.ndarray) -> None:
        """Write each row's codes to its slots of `out`."""
        for its_codes, slots in zip(codes, self._slots, strict=True):
            out[slots] = its_codes

    def _sample(self, logits_BCV: Tensor) -> None:
        for row, uniforms in self._by_row:
            row.draw_uniforms(uniforms)
        drawn = self._sample_codes(logits_BCV, self._uniforms.numpy())
        for row, codes, slots in zip(self._rows, drawn, self._slots, strict=True):
            if row.done:
                continue
            if codes[0] == NOT_FINITE:
                row.fail(
                    f"The decoder returned a non-finite number at step {row.steps + 1}. The take "
                    "is dropped, because its audio would be noise. Try float32; if that fails too, "
                    "the weights are damaged: fetch them again."
                )
                continue
            row.steer(codes, logits_BCV[slots.start, -1].numpy())
            row.accept(codes)
