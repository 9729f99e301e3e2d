"""Builds a Dia2 from the weights of its checkpoint, in upstream's names of the tensors.

Loading is strict: a missing, surplus or misshapen tensor is an error, while upstream skips tensors
that are missing. `load` and `load_random` are generators that yield the fraction done.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from pathlib import Path

import torch
from torch import Tensor

from dia_demo.checkpoint_files import weight_files
from dia_demo.errors import InputError
from dia_demo.model.dia2.config import Dia2Config
from dia_demo.model.dia2.network import Dia2
from dia_demo.model.dia2.packing import Packer
from dia_demo.model.weights.tensor_files import (
    check_kind,
    read_tensors,
    shape_differences,
    tensor_shapes,
    weight_fault,
)
from dia_demo.model.weights.tensor_names import TensorSlice

_FUSED = "attn.qkv_proj.weight"
DEPTH_TEXT = (
    "has text embeddings in its depth transformer, which the published Dia2 models do not have, so "
    "its codes would be wrong here: use a checkpoint without them, such as nari-labs/Dia2-1B."
)


def tensors(config: Dia2Config) -> Iterator[tuple[str, TensorSlice]]:
    """Every tensor of a checkpoint, by name, and the part of a parameter that it fills."""
    with torch.device("meta"):
        parameters = Dia2(config).state_dict()
    d = config.decoder
    for name, parameter in parameters.items():
        if not name.endswith(_FUSED):
            yield name, TensorSlice(name, 0, tuple(parameter.shape))
            continue
        start = 0
        for letter, heads in (("q", d.num_heads), ("k", d.num_kv_heads), ("v", d.num_kv_heads)):
            rows = heads * d.head_dim
            theirs = name.replace("qkv_proj", f"{letter}_proj")
            yield theirs, TensorSlice(name, start, (rows, d.hidden_size))
            start += rows


def check_tensors(folder: Path, config: Dia2Config) -> dict[str, TensorSlice]:
    """Where each tensor of a folder's files belongs, by its name.

    Raises InputError, listing what is missing, surplus or misshapen, unless the files have exactly
    those that the config asks for.
    """
    shapes = tensor_shapes(weight_files(folder))
    slices = dict(tensors(config))
    if "depformer.text_embed.embedding.weight" in shapes:
        raise InputError(f"The checkpoint in {folder} {DEPTH_TEXT}")
    expected = {name: target.shape for name, target in slices.items()}
    if differences := shape_differences(expected, shapes):
        check_kind(shapes, folder)
        raise InputError(
            f"The weights in {folder} do not match its config.json. {differences}. Fetch the "
            "checkpoint again."
        )
    return slices


def load(
    folder: Path, config: Dia2Config, precision: str | None = None
) -> Generator[float, None, Dia2]:
    """The model of the checkpoint in `folder`, its linears packed in a precision, or in float32 as
    torch has them.

    Raises InputError as `check_tensors` does, and where a tensor contains NaN, infinity or only
    zeros.
    """
    slices, builder = check_tensors(folder, config), _Builder(config, precision)
    for done, (name, tensor) in enumerate(read_tensors(weight_files(folder))):
        if not tensor.is_floating_point():
            raise InputError(f"{name} in {folder} contains {tensor.dtype}, no floating point.")
        if reason := weight_fault(tensor):
            raise InputError(f"{name} in {folder} {reason}")
        builder.add(slices[name], tensor)
        del tensor
        yield (done + 1) / len(slices)
    return builder.finish()


def load_random(
    config: Dia2Config, precision: str | None = None, seed: int = 0
) -> Generator[float, None, Dia2]:
    """As `load`, with random weights, whose linears keep the magnitude of their input."""
    generator = torch.Generator().manual_seed(seed)
    slices, builder = dict(tensors(config)), _Builder(config, precision)
    for done, target in enumerate(slices.values()):
        tensor = torch.ones(target.shape)
        if len(target.shape) > 1:
            tensor.normal_(generator=generator).mul_(target.shape[-1] ** -0.5)
        builder.add(target, tensor)
        del tensor
        yield (done + 1) / len(slices)
    return builder.finish()


class _Builder(Packer):
    """Builds a model from the tensors of its checkpoint. A parameter is converted as soon as it is
    whole, so that few tensors are in memory as the file stores them."""

    def __init__(self, config: Dia2Config, precision: str | None) -> None:
        super().__init__(config, precision)
        shapes = {name: each.shape for name, each in self.network.state_dict().items()}
        self._shapes = shapes
        self._partial: dict[str, tuple[Tensor, int]] = {}

    def add(self, target: TensorSlice, tensor: Tensor) -> None:
        """Take a tensor of a file, as rows of its parameter."""
        shape = self._shapes[target.name]
        if len(tensor) == shape[0]:
            self.place(target.name, tensor.float())
            return
        whole, rows = self._partial.pop(target.name, (torch.empty(shape), 0))
        whole[target.start : target.start + len(tensor)] = tensor
        if rows + len(tensor) == shape[0]:
            self.place(target.name, whole)
        else:
            self._partial[target.name] = whole, rows + len(tensor)
