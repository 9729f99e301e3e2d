"""Calibrated int4: a model's decoder rounded by GPTQ on takes that the model made itself."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from dia_demo.model.calibration.gptq import quantize
from dia_demo.model.dia import Dia
from dia_demo.model.layers import activation_dtype
from dia_demo.model.linear import WIDEST, step_linears
from dia_demo.model.packed_linear import PackedLinear
from dia_demo.task import Task


@dataclass(frozen=True)
class CalibrationTake:
    """The bytes that the encoder read, and the codes [steps, C] that the decoder's steps read."""

    text: bytes
    codes: np.ndarray


@torch.inference_mode()
def calibrate(dia: Dia, takes: Sequence[CalibrationTake]) -> Generator[float, None, None]:
    """Convert a bfloat16 model with packed linears to int4, in place; yields the fraction done.

    The layers are converted in turn: only one layer's inputs, and the Hessian of one linear, are in
    memory. Every linear is calibrated on what it receives in bfloat16.
    """
    walks, layers = [_Walk(dia, take) for take in takes], len(dia.decoder.layers)
    for index in range(layers):
        for fraction in _calibrate_layer(dia, index, walks):
            yield (index + fraction) / layers
    for name, module in list(dia.named_modules()):
        if isinstance(module, nn.Linear):  # The encoder, and the text's keys and values.
            _replace(dia, name, PackedLinear.of(module.weight, "int8"))
    for name in step_linears(dia):
        if not name.startswith("decoder.layers."):
            linear = dia.get_submodule(name)
            assert isinstance(linear, PackedLinear)
            _replace(dia, name, PackedLinear.of(linear.dense(torch.float32), WIDEST["int4"]))


def _calibrate_layer(dia: Dia, index: int, walks: Sequence[_Walk]) -> Generator[float, None, None]:
    names = [name for name in step_linears(dia) if name.startswith(f"decoder.layers.{index}.")]
    inputs: dict[str, list[Tensor]] = {name: [] for name in names}
    hooks = [
        dia.get_submodule(name).register_forward_pre_hook(
            lambda _, arguments, name=name: inputs[name].append(arguments[0].flatten(0, 1))
        )
        for name in names
    ]
    for done, walk in enumerate(walks):
        walk.advance(index)
        yield done / len(walks) / 2
    for hook in hooks:
        hook.remove()
    for done, name in enumerate(names):
        linear = dia.get_submodule(name)
        assert isinstance(linear, PackedLinear)
        task = Task(quantize(linear.dense(torch.float32).t(), torch.cat(inputs.pop(name))))
        for fraction in task:
            yield (1 + (done + fraction) / len(names)) / 2
        _replace(dia, name, task.result)


class _Walk:
    """A take on its way through the decoder, all of its steps together, one layer after another."""

    def __init__(self, dia: Dia, take: CalibrationTake) -> None:
        self._decoder = dia.decoder
        steps = len(take.codes)
        self._cache = dia.encode(take.text, dia.config.defaults.cfg_scale, steps)
        self._cache.reserve(steps)
        self._rotation = dia.rotaries[1].at(torch.arange(steps)[None])
        codes = torch.from_numpy(take.codes).expand(self._cache.halves, -1, -1)
        self._x_BTD = dia.decoder.embed(codes, [self._cache])

    def advance(self, index: int) -> None:
        """Compute layer `index`."""
        dtype = activation_dtype(self._decoder.embeddings.weight)
        layer = self._decoder.layers[index]
        self._x_BTD = layer(self._x_BTD, self._rotation, [self._cache], index, dtype)


def _replace(dia: Dia, name: str, module: nn.Module) -> None:
    owner, _, leaf = name.rpartition(".")
    setattr(dia.get_submodule(owner), leaf, module)
