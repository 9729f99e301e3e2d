"""What a step needs: rows that were read (prefilled), and the batch that advances them together.

All of it runs on the CPU, wherever the model runs (engine/decoder_model.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import accumulate
from typing import Any, ClassVar, Protocol

import numpy as np
import torch
from torch import Tensor

from dia_demo.config import GenerationParams
from dia_demo.engine.decoder_model import DecoderCache, DecoderModel
from dia_demo.engine.rows.base_row import BaseRow
from dia_demo.engine.sampling import NOT_FINITE
from dia_demo.model.cpu_model import torch_threads


class Prefill:
    """Reads rows: in the caller's thread, or one at a time in a thread beside the steps of others.

    A model in another process serves one call at a time: its rows are read in the caller's thread.
    """

    def __init__(self, model: DecoderModel) -> None:
        self._model = model
        self._thread: ThreadPoolExecutor | None = None
        self._row: BaseRow | None = None  # The one that the thread reads or has read.
        self._cache: Future[DecoderCache] = Future()
        self.can_read_beside = model.can_prefill_ahead

    def begin(self, row: BaseRow) -> None:
        """Begin to read a row in the thread, unless that reads another row or has read this one."""
        if self._row is None or (self._row is not row and self._cache.done()):
            if self._thread is None:
                self._thread = ThreadPoolExecutor(1, "prefill")
            self._row, self._cache = row, self._thread.submit(self._read, row)

    def has_read(self, row: BaseRow) -> bool:
        """Whether the thread has read this row, so that `read` returns at once."""
        return self._row is row and self._cache.done()

    def read(self, row: BaseRow) -> None:
        """Read a row now, or wait for the thread if that reads it. Raises what the reading raised,
        in either thread."""
        if self._row is row:
            cache, self._row, self._cache = self._cache, None, Future()
            row.cache = cache.result()
        else:
            row.cache = row.read(self._model)

    def close(self) -> None:
        """End the thread, and drop what it has read."""
        if self._thread is not None:
            self._thread.shutdown()
        self._row, self._cache, self._thread = None, Future(), None

    def _read(self, row: BaseRow) -> DecoderCache:
        with torch_threads(1):
            return row.read(self._model)


class DecodedRow(Protocol):
    """What a batch needs of a row of Dia (engine/row.py)."""

    make_sampler: ClassVar[Any]
    params: GenerationParams
    cache: Any
    steps: int

    @property
    def next_input(self) -> np.ndarray: ...

    @property
    def last_frame(self) -> np.ndarray: ...

    @property
    def done(self) -> bool: ...

    @property
    def correction(self) -> np.ndarray | None: ...

    def draw_uniforms(self, out: Tensor) -> None: ...

    def steer(self, codes: np.ndarray, logits_V: np.ndarray) -> None: ...

    def accept(self, codes: np.ndarray) -> None: ...

    def fail_not_finite(self) -> None: ...


class Batch:
    """Rows of Dia that advance together. A new one is built whenever a row joins or leaves, so
    that a step allocates next to nothing."""

    def __init__(self, model: DecoderModel, rows: Sequence[DecodedRow]) -> None:
        caches = [row.cache for row in rows if row.cache is not None]
        assert len(caches) == len(rows), "a row joins with its cache"
        self._model = model
        self._rows = list(rows)
        self._caches = caches
        decoder = model.config.decoder
        branches = [cache.branches for cache in caches]
        self._sample_codes = rows[0].make_sampler([row.params for row in rows], branches, decoder)
        ends = list(accumulate(branches))
        self._slots = [slice(end - count, end) for end, count in zip(ends, branches, strict=True)]
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
        for row, slots in zip(self._rows, self._slots, strict=True):
            if (correction := row.correction) is not None:
                logits_BCV[slots, :, : correction.shape[1]] += torch.from_numpy(correction)
        drawn = self._sample_codes(logits_BCV, self._uniforms.numpy())
        logits = logits_BCV.numpy()
        for row, codes, slots in zip(self._rows, drawn, self._slots, strict=True):
            if row.done:
                continue
            if codes[0] == NOT_FINITE:
                row.fail_not_finite()
                continue
            row.steer(codes, logits[slots.start, -1])
            row.accept(codes)
