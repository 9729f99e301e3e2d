"""What a self-check examines and how thoroughly: the device, the model's sizes, the repeats."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from dia_demo.accelerator.backend import Backend, Card
from dia_demo.accelerator.device_model import Hybrid
from dia_demo.config import ModelConfig
from dia_demo.model.checkpoint import DTYPES
from dia_demo.model.dia import Dia


@dataclass(frozen=True)
class Plan:
    """How often and how long. The defaults are the real check; tests use fewer.

    lengths are cut to what the model has. soak ends at its steps or its seconds, whichever first.
    Limits are the seconds after which the device counts as hung.
    """

    linear_rows: tuple[int, ...] = (1, 2, 4, 8, 40)
    linear_repeats: int = 50
    attention_repeats: int = 200
    fused_repeats: int = 50
    self_lengths: tuple[int, ...] = (1, 16, 17, 129, 1024, 3072)
    cross_lengths: tuple[int, ...] = (16, 77, 129, 1024)
    same_repeats: int = 20
    codec_channels: int = 192
    steps: int = 32
    soak_steps: int = 1200
    soak_seconds: float = 180.0
    race_steps: int = 64
    poison_bytes: int = 256 * 2**20
    stage_limit: float = 300.0
    loading_limit: float = 900.0


# Largest relative L2 error a stage may show, by precision. bfloat16 keeps 8 bits of each number:
# its bounds are those of the same computation on a CPU, with some room.
TOLERANCES = {
    "float32": {"linear": 1e-4, "attention": 1e-4, "elementwise": 1e-5, "kl": 1e-3, "margin": 0.1},
    "bfloat16": {"linear": 1e-2, "attention": 2e-2, "elementwise": 1e-2, "kl": 5e-2, "margin": 1.0},
}


@dataclass
class Subject:
    """One check in progress. `reference` is the checkpoint on the CPU in float32, None once all
    stages are done."""

    backend: Backend
    reference: Dia | None
    precision: str
    expected_card: Card | None = None
    plan: Plan = field(default_factory=Plan)
    _hybrid: Hybrid | None = None

    @property
    def config(self) -> ModelConfig:
        return self.reference.config

    @property
    def dtype(self) -> torch.dtype:
        return DTYPES[self.precision]

    @property
    def hybrid(self) -> Hybrid:
        """The checkpoint on the device, copied when first asked for."""
        if self._hybrid is None:
            self._hybrid = Hybrid.copy_of(self.reference, self.backend, self.dtype)
        return self._hybrid

    @property
    def weight_bytes(self) -> int:
        return sum(weight.numel() for weight in self.reference.parameters()) * self.dtype.itemsize

    def allowed(self, what: str) -> float:
        return TOLERANCES[self.precision][what]

    def put(self, tensor: Tensor) -> Tensor:
        """A floating-point tensor on the device in the precision that is checked."""
        return self.backend.put(tensor.to(self.dtype))

    def fetch(self, tensor: Tensor) -> Tensor:
        return self.backend.fetch(tensor).float()

    def lengths(self, wanted: tuple[int, ...], limit: int) -> list[int]:
        """The wanted lengths as far as the model has them, and its limit where it has less."""
        return sorted({min(length, limit) for length in wanted})

    def linear_shapes(self) -> list[tuple[int, int]]:
        """(inputs, outputs) of every linear of the model, and of its key/value heads alone."""
        decoder = self.config.decoder
        with torch.device("meta"):
            linears = [one for one in Dia(self.config).modules() if isinstance(one, nn.Linear)]
        shapes = {(one.in_features, one.out_features) for one in linears}
        shapes.add((decoder.hidden_size, decoder.num_kv_heads * decoder.head_dim))
        return sorted(shapes)
