"""A model on an accelerator that is abandoned at its first failure."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np
from torch import Tensor

from dia_demo.accelerator.guard import WaveformBounds, check_waveform
from dia_demo.accelerator.remote import RemoteCache, RemoteModel
from dia_demo.config import ModelConfig
from dia_demo.engine.decoder_model import DeviceFailed
from dia_demo.errors import DiaDemoError

log = logging.getLogger(__name__)


class GuardedModel:
    """A RemoteModel whose errors become DeviceFailed, after its process has been ended.

    on_failure: called with the reason; revokes the verdict and returns the message for the person.
    """

    can_prefill_ahead = False

    def __init__(
        self, model: RemoteModel, on_failure: Callable[[str], str], bounds: WaveformBounds
    ) -> None:
        self._model, self._on_failure, self._bounds = model, on_failure, bounds

    @property
    def config(self) -> ModelConfig:
        return self._model.config

    def encode(self, text: bytes, cfg_scale: float, max_positions: int) -> RemoteCache:
        with self._close_on_failure():
            return self._model.encode(text, cfg_scale, max_positions)

    def __call__(self, codes_BTC: Tensor, caches: Sequence[RemoteCache]) -> Tensor:
        with self._close_on_failure():
            return self._model(codes_BTC, caches)

    def next_frame(self, codes_BC: Tensor, caches: Sequence[RemoteCache], number: int) -> Tensor:
        with self._close_on_failure():
            return self._model.next_frame(codes_BC, caches, number)

    def check_take(self, samples: np.ndarray, sample_rate: int) -> None:
        """Raise DeviceFailed for a finished waveform that is not speech."""
        with self._close_on_failure():
            check_waveform(samples, sample_rate, self._bounds)

    def close(self) -> None:
        """End the device's process."""
        self._model.close()

    @contextmanager
    def _close_on_failure(self) -> Iterator[None]:
        try:
            yield
        except DiaDemoError as error:
            log.error("the device failed: %s", error)
            self.close()
            raise DeviceFailed(self._on_failure(str(error))) from error
