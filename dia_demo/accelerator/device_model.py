"""A model on a device while everything else is on the CPU.

Codes come from the CPU, float32 logits return to it at every step. Sampling, delays, the end of a
row and the codec never use the device. Nothing is compiled and no gradient is kept.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from dia_demo.accelerator.backend import Backend
from dia_demo.config import ModelConfig
from dia_demo.errors import RunError
from dia_demo.model.dia import Dia
from dia_demo.model.kv_cache import RowCache

REFERENCE_TEXT = b"\x01 The same step again."


class DeviceModel:
    """A Dia on a device as a DecoderModel: it takes and returns tensors on the CPU.

    Raises RunError if the weights are not on the device they were sent to.
    """

    can_prefill_ahead = False

    def __init__(self, model: Dia, backend: Backend) -> None:
        self.model = model
        self.backend = backend
        for name, weight in model.named_parameters():
            location = backend.location(weight)
            if location != str(backend.device):
                raise RunError(f"{name} was sent to {backend.device} but is on {location}.")
        self._reference: tuple[RowCache, Tensor] | None = None

    @classmethod
    def from_model(cls, model: Dia, backend: Backend, dtype: torch.dtype) -> DeviceModel:
        """The same weights on the device, in `dtype`; norms stay float32."""
        with torch.device("meta"):
            copy = Dia(model.config)
        state = {
            name: backend.put(weight if name.endswith("norm.weight") else weight.to(dtype))
            for name, weight in model.state_dict().items()
        }
        copy.load_state_dict(state, assign=True)
        return cls(copy.requires_grad_(False).eval(), backend)

    @property
    def config(self) -> ModelConfig:
        return self.model.config

    def encode(self, text: bytes, cfg_scale: float, max_positions: int) -> RowCache:
        """A row's cache, on the device."""
        with self.backend.active():
            return self.model.encode(text, cfg_scale, max_positions)

    def __call__(self, codes_BTC: Tensor, caches: Sequence[RowCache]) -> Tensor:
        """Float32 logits [B, T, C, V] on the CPU for codes [B, T, C] on the CPU."""
        with self.backend.active():
            logits = self.model(self.backend.put(codes_BTC), caches)
            return self.backend.fetch(logits.float())

    def next_frame(self, codes_BC: Tensor, caches: Sequence[RowCache], number: int) -> Tensor:
        """As `Decoder.next_frame`, with tensors on the CPU."""
        with self.backend.active():
            logits = self.model.next_frame(self.backend.put(codes_BC), caches, number)
            return self.backend.fetch(logits)

    def drift(self) -> float:
        """Relative L2 error of one fixed step against the first call; the first call returns 0.

        A device that was right when it was checked may fail as it warms up or its memory fills up.
        """
        if self._reference is None:
            cache = self.encode(REFERENCE_TEXT, self.config.cfg_scales[0], 1)
            self._reference = cache, self._reference_step(cache)
            return 0.0
        cache, first = self._reference
        now = self._reference_step(cache)
        error = ((now - first).double().norm() / first.double().norm().clamp_min(1e-30)).item()
        return error if now.isfinite().all() else float("inf")

    def _reference_step(self, cache: RowCache) -> Tensor:
        decoder = self.config.decoder
        cache.length = 0
        return self(torch.full((1, 1, self.config.codes_per_step), decoder.bos), [cache])
