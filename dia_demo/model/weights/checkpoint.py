"""Builds the model of a checkpoint from its weights.

Loading is strict: a missing, surplus or misshapen tensor is an error. `load` and `load_random` are
generators that yield the fraction done and return the model, so that the caller can show progress
and stop.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Generator
from pathlib import Path

import torch

from dia_demo.checkpoint_config import read_model_config
from dia_demo.checkpoint_files import weight_files
from dia_demo.config import ModelConfig
from dia_demo.errors import InputError
from dia_demo.model.dia import Dia
from dia_demo.model.linear import Kernel, step_linears
from dia_demo.model.packed_linear import PackedLinear
from dia_demo.model.weights.tensor_files import (
    check_kind,
    read_tensors,
    shape_differences,
    tensor_shapes,
    weight_fault,
)
from dia_demo.model.weights.tensor_names import TensorSlice, expected_tensors, transformers_tensors

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}
# Random numbers that are drawn for a tensor; a larger one repeats them, since drawing 1.6 billion
# takes longer than measuring with them. Odd, so that the rows of a tensor are not the same.
DRAWN = 2**22 - 1


def load(
    folder: Path,
    precision: str,
    device: str = "cpu",
    kernel: Kernel | None = None,
    config: ModelConfig | None = None,
) -> Generator[float, None, Dia]:
    """Build the model of the checkpoint in `folder`; yields the fraction done.

    kernel: which modules the linears of a decoder step become; without one they stay torch's, and
    the precision must be a floating-point type. config: of the folder, if it was read already.
    Raises InputError where the files do not contain exactly the tensors that the config asks for,
    listing what is missing, surplus or misshapen, and where a tensor contains NaN, infinity or only
    zeros.
    """
    config = config or read_model_config(folder)
    check_original(folder, config)
    files = weight_files(folder)
    slices = _slices_of(files, config, folder)
    builder = ModelBuilder(config, precision, device, kernel)
    for done, (name, tensor) in enumerate(read_tensors(files)):
        _check_weight(tensor, name, folder)
        builder.add(slices[name], tensor)
        del tensor
        yield (done + 1) / len(slices)
    return builder.model()


def check_tensors(folder: Path, config: ModelConfig) -> None:
    """Raise InputError unless the files of the checkpoint in `folder` contain the tensors that its
    config asks for. Their values are not read, and prepared weights have checksums instead."""
    if config.prepared is None:
        _slices_of(weight_files(folder), config, folder)


def check_original(folder: Path, config: ModelConfig) -> None:
    """Raise InputError where a folder has prepared weights alone."""
    if config.prepared is not None:
        raise InputError(
            f"{folder} contains weights prepared in {config.prepared.precision} for CPUs, and the "
            f"original weights are needed here: use {config.prepared.base}."
        )


def load_random(
    config: ModelConfig, precision: str, kernel: Kernel | None = None, seed: int = 0
) -> Generator[float, None, Dia]:
    """Build a model of this shape with random weights; yields the fraction done.

    Norms are 1 and linears keep the magnitude of their input. For measuring speed, memory and a
    kernel's error, which do not depend on the values.
    """
    generator = torch.Generator().manual_seed(seed)
    builder = _RandomBuilder(config, precision, "cpu", kernel)
    slices = list(transformers_tensors(config))
    for done, (name, target) in enumerate(slices):
        if name.endswith("norm.weight"):
            tensor = torch.ones(target.shape)
        else:
            tensor = _draw(target.shape, generator).mul_(target.shape[-1] ** -0.5)
        builder.add(target, tensor)
        del tensor
        yield (done + 1) / len(slices)
    return builder.model()


def _draw(shape: tuple[int, ...], generator: torch.Generator) -> torch.Tensor:
    """Normally distributed numbers, of which at most DRAWN are drawn."""
    count = math.prod(shape)
    if count <= DRAWN:
        return torch.randn(shape, generator=generator)
    drawn = torch.randn(DRAWN, generator=generator)
    return drawn.repeat(-(-count // DRAWN))[:count].view(shape)


class ModelBuilder:
    """Builds a model from the tensors of its checkpoint, one at a time.

    A parameter is converted to its precision as soon as it is complete, so that few tensors are in
    memory as the file stores them.
    """

    def __init__(
        self, config: ModelConfig, precision: str, device: str, kernel: Kernel | None
    ) -> None:
        with torch.device("meta"):
            self._model = Dia(config)
        self._precision, self._device, self._kernel = precision, device, kernel
        self._parameters = dict(self._model.named_parameters())
        self._step_linears = set(step_linears(self._model)) if kernel else set()
        self._partial: dict[str, tuple[torch.Tensor, int]] = {}
        self._state: dict[str, torch.Tensor] = {}

    def add(self, target: TensorSlice, tensor: torch.Tensor) -> None:
        """Take a tensor of a file, as rows of its parameter."""
        rows = target.rows_of(tensor)
        shape = self._parameters[target.name].shape
        if len(rows) == shape[0]:
            self._set_parameter(target.name, rows)
            return
        if target.name not in self._partial:
            self._partial[target.name] = torch.empty(shape, dtype=tensor.dtype), shape[0]
        parameter, missing = self._partial.pop(target.name)
        parameter[target.start : target.start + len(rows)] = rows
        if missing > len(rows):
            self._partial[target.name] = parameter, missing - len(rows)
        else:
            self._set_parameter(target.name, parameter)

    def _set_parameter(self, name: str, tensor: torch.Tensor) -> None:
        owner, _, leaf = name.rpartition(".")
        module = self._model.get_submodule(owner)
        if self._kernel is not None and owner in self._step_linears:
            self._replace(owner, self._step_linear(self._kernel, owner, tensor))
        elif isinstance(module, torch.nn.Linear) and self._precision not in DTYPES:
            # Steps do not read the encoder and the text's keys and values: these stay at 8 bits.
            self._replace(owner, PackedLinear.from_weight(tensor, "int8"))
        else:
            dtype = torch.float32 if owner.endswith("norm") else self._dtype
            self._state[name] = torch.empty(tensor.shape, dtype=dtype, device=self._device)
            self._state[name].copy_(tensor)

    def _step_linear(self, kernel: Kernel, owner: str, tensor: torch.Tensor) -> torch.nn.Module:
        return kernel.module(owner, tensor, self._precision)

    @property
    def _dtype(self) -> torch.dtype:
        """The dtype of embeddings, activations and caches."""
        return DTYPES.get(self._precision, torch.bfloat16)

    def _replace(self, owner: str, module: torch.nn.Module) -> None:
        above, _, name = owner.rpartition(".")
        setattr(self._model.get_submodule(above), name, module)

    def model(self) -> Dia:
        """The model, once every parameter is complete."""
        self._model.load_state_dict(self._state, assign=True)
        return self._model.requires_grad_(False).eval()


class _RandomBuilder(ModelBuilder):
    """Packs one large weight for each linear of a layer and copies it for the other layers, since
    packing takes much longer than drawing."""

    def __init__(self, *arguments) -> None:
        super().__init__(*arguments)
        self._packed: dict[tuple[str, torch.Size], PackedLinear] = {}

    def _step_linear(self, kernel: Kernel, owner: str, tensor: torch.Tensor) -> torch.nn.Module:
        key = owner.rpartition(".")[2], tensor.shape
        if key in self._packed:
            return copy.deepcopy(self._packed[key])
        module = super()._step_linear(kernel, owner, tensor)
        if tensor.numel() > DRAWN and isinstance(module, PackedLinear):
            self._packed[key] = module
        return module


def _slices_of(files: list[Path], config: ModelConfig, folder: Path) -> dict[str, TensorSlice]:
    """Where each tensor of the files belongs. Raises InputError unless all are there."""
    shapes = tensor_shapes(files)
    slices = expected_tensors(config, set(shapes))
    expected = {name: target.shape for name, target in slices.items()}
    if differences := shape_differences(expected, shapes):
        check_kind(shapes, folder)
        raise InputError(
            f"The weights in {folder} do not match its config.json. {differences}. Fetch the "
            "checkpoint again."
        )
    return slices


def _check_weight(tensor: torch.Tensor, name: str, folder: Path) -> None:
    if not tensor.is_floating_point():
        raise InputError(f"{name} in {folder} contains {tensor.dtype}, not floating-point weights.")
    if reason := weight_fault(tensor):
        raise InputError(f"{name} in {folder} {reason}")
