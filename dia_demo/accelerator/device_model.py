"""The hybrid run: the model on a device, everything else on the CPU, one border between them.

Codes go in from the CPU, float32 logits come back to it every step. Sampling, delays, ends and the
codec never see the device. Nothing is compiled and nothing keeps a gradient.
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

SENTINEL_TEXT = b"\x01 The same step again."


class Hybrid:
    """A Dia on a device, as the loop sees one: it takes and gives tensors of the CPU.

    Raises RunError where the weights do not lie on the device they were sent to.
    """

    device = torch.device("cpu")

    def __init__(self, model: Dia, backend: Backend) -> None:
        self.model = model
        self.backend = backend
        for name, weight in model.named_parameters():
            found = backend.location(weight)
            if found != str(backend.device):
                raise RunError(f"{name} was sent to {backend.device} and lies on {found}.")
        self._sentinel: tuple[RowCache, Tensor] | None = None

    @classmethod
    def copy_of(cls, model: Dia, backend: Backend, dtype: torch.dtype) -> Hybrid:
        """The same weights on the device, norms in float32 as everywhere."""
        with torch.device("meta"):
            there = Dia(model.config)
        state = {
            name: backend.put(weight if name.endswith("norm.weight") else weight.to(dtype))
            for name, weight in model.state_dict().items()
        }
        there.load_state_dict(state, assign=True)
        return cls(there.requires_grad_(False).eval(), backend)

    @property
    def config(self) -> ModelConfig:
        return self.model.config

    def encode(self, text: bytes, guidance: bool, max_positions: int) -> RowCache:
        """A row's cache, on the device."""
        with self.backend.active():
            return self.model.encode(text, guidance, max_positions)

    def __call__(self, codes_BTC: Tensor, caches: Sequence[RowCache]) -> Tensor:
        """Logits [B, T, C, V] on the CPU, float32, for codes [B, T, C] from it."""
        with self.backend.active():
            logits = self.model(self.backend.put(codes_BTC), caches)
            return self.backend.fetch(logits.float())

    def drift(self) -> float:
        """Relative L2 between one fixed step now and when it was first asked for: 0 at first.

        A device that was right when it was checked may go wrong as it warms up or fills up; the
        same step twice must give the same numbers.
        """
        if self._sentinel is None:
            cache = self.encode(SENTINEL_TEXT, False, 1)
            self._sentinel = cache, self._sentinel_step(cache)
            return 0.0
        cache, first = self._sentinel
        now = self._sentinel_step(cache)
        error = ((now - first).double().norm() / first.double().norm().clamp_min(1e-30)).item()
        return error if now.isfinite().all() else float("inf")

    def _sentinel_step(self, cache: RowCache) -> Tensor:
        decoder = self.config.decoder
        cache.length = 0
        return self(torch.full((1, 1, decoder.num_channels), decoder.bos), [cache])
