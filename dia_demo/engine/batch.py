"""What a step needs: rows that were read (prefilled), and the batch that advances them together.

All of it runs on the CPU, wherever the model runs (engine/decoder_model.py).
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from itertools import accumulate

import numpy as np
import torch
from torch import Tensor

from dia_demo.engine.decoder_model import DecoderCache, DecoderModel
from dia_demo.engine.row import Row
from dia_demo.engine.sampling import NOT_FINITE


def read_row(model: DecoderModel, row: Row) -> DecoderCache:
    """A row's cache after its text and its voice prompt, but for what the first step reads."""
    cache = model.encode(row.text, row.params.cfg_scale, row.max_steps)
    if row.position > 0:
        codes = torch.from_numpy(row.previous_inputs)[None].expand(cache.halves, -1, -1)
        model(codes, [cache])
    return cache


class Prefill:
    """Reads rows: in the caller's thread, or one at a time in a thread beside the steps of others.

    A model in another process serves one call at a time: its rows are read in the caller's thread.
    """

    def __init__(self, model: DecoderModel) -> None:
        self._model = model
        self._reading: _Reading | None = None
        self.can_read_beside = model.can_prefill_ahead

    def begin(self, row: Row) -> None:
        """Begin to read a row in a thread, unless that reads another row or has read this one."""
        reading = self._reading
        if reading is None or (reading.row is not row and not reading.is_alive()):
            self._reading = _Reading(self._model, row)
            self._reading.start()

    def has_read(self, row: Row) -> bool:
        """Whether the thread has read this row, so that `read` returns at once."""
        reading = self._reading
        return reading is not None and reading.row is row and not reading.is_alive()

    def read(self, row: Row) -> None:
        """Read a row now, or wait for the thread if that reads it. Raises what the reading raised,
        in either thread."""
        if self._reading is None or self._reading.row is not row:
            row.cache = read_row(self._model, row)
            return
        reading, self._reading = self._reading, None
        reading.join()
        if reading.error is not None:
            raise reading.error
        row.cache = reading.cache

    def close(self) -> None:
        """Wait for the thread, and drop what it has read."""
        if self._reading is not None:
            self._reading.join()
            self._reading = None


class _Reading(threading.Thread):
    """Reads one row."""

    def __init__(self, model: DecoderModel, row: Row) -> None:
        super().__init__(name="prefill", daemon=True)
        self._model, self.row = model, row
        self.cache: DecoderCache | None = None
        self.error: Exception | None = None

    def run(self) -> None:
        try:
            self.cache = read_row(self._model, self.row)
        except Exception as error:  # Raised again in the thread that runs the steps.
            self.error = error


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
        self._sample_codes = rows[0].make_sampler([row.params for row in rows], halves, decoder)
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
