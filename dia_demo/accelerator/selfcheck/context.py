"""What a self-check examines and how thoroughly: the device, the model's sizes, the repetitions."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from dia_demo.accelerator.backend import Backend, Card
from dia_demo.accelerator.device_model import DeviceModel
from dia_demo.config import ModelConfig
from dia_demo.model.dia import Dia
from dia_demo.model.weights.checkpoint import DTYPES


@dataclass(frozen=True)
class CheckPlan:
    """Repetitions and durations. The defaults are those of the real check; tests use fewer.

    Lengths beyond the model's limits are reduced to them. The soak ends at its steps or its
    seconds, whichever comes first. The limits are the seconds after which the device counts as
    hung.
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


# Largest relative L2 error that a stage may show, by precision. bfloat16 keeps 8 bits of each
# number: its bounds are those of the same computation on a CPU, with some margin.
TOLERANCES = {
    "float32": {"linear": 1e-4, "attention": 1e-4, "elementwise": 1e-5, "kl": 1e-3, "margin": 0.1},
    "bfloat16": {"linear": 1e-2, "attention": 2e-2, "elementwise": 1e-2, "kl": 5e-2, "margin": 1.0},
}


class CheckContext:
    """One check in progress. reference: the checkpoint on the CPU in float32."""

    def __init__(
        self,
        backend: Backend,
        reference: Dia,
        precision: str,
        expected_card: Card | None = None,
        plan: CheckPlan | None = None,
    ) -> None:
        self.backend = backend
        self.config: ModelConfig = reference.config
        self.precision = precision
        self.expected_card = expected_card
        self.plan = plan or CheckPlan()
        self.dtype = DTYPES[precision]
        weights = sum(weight.numel() for weight in reference.parameters())
        self.weight_bytes = weights * self.dtype.itemsize
        self._reference: Dia | None = reference
        self._device_model: DeviceModel | None = None

    @property
    def reference(self) -> Dia:
        assert self._reference is not None, "dropped before the race"
        return self._reference

    def drop_reference(self) -> None:
        """Free the reference's memory: the stages are finished."""
        self._reference = None

    @property
    def device_model(self) -> DeviceModel:
        """The checkpoint on the device, copied at the first access."""
        if self._device_model is None:
            self._device_model = DeviceModel.from_model(self.reference, self.backend, self.dtype)
        return self._device_model

    def tolerance(self, name: str) -> float:
        return TOLERANCES[self.precision][name]

    def put(self, tensor: Tensor) -> Tensor:
        """A floating-point tensor on the device, in the precision of the check."""
        return self.backend.put(tensor.to(self.dtype))

    def fetch(self, tensor: Tensor) -> Tensor:
        """A tensor on the CPU in float32."""
        return self.backend.fetch(tensor).float()

    def linear_shapes(self) -> list[tuple[int, int]]:
        """(inputs, outputs) of every linear of the model, and of its key/value heads alone."""
        decoder = self.config.decoder
        with torch.device("meta"):
            modules = list(Dia(self.config).modules())
        linears = [module for module in modules if isinstance(module, nn.Linear)]
        shapes = {(linear.in_features, linear.out_features) for linear in linears}
        shapes.add((decoder.hidden_size, decoder.num_kv_heads * decoder.head_dim))
        return sorted(shapes)


def limit_lengths(lengths: tuple[int, ...], limit: int) -> list[int]:
    """The lengths up to the limit, and the limit itself in place of longer ones."""
    return sorted({min(length, limit) for length in lengths})
