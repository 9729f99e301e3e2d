"""Calibrated int4: a model's decoder rounded by GPTQ on takes that the model made itself."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from dia_demo.model.calibration.gptq import quantize
from dia_demo.model.cpu_model import torch_threads
from dia_demo.model.dia import Dia
from dia_demo.model.layers import activation_dtype
from dia_demo.model.linear import WIDEST, step_linears
from dia_demo.model.packed_linear import PackedLinear
from dia_demo.task import result_of


@dataclass(frozen=True)
class CalibrationTake:
    """The bytes that the encoder read, and the codes [steps, C] that the decoder's steps read."""

    text: bytes
    codes: np.ndarray


@torch.inference_mode()
def calibrate(
    dia: Dia, takes: Sequence[CalibrationTake], threads: int
) -> Generator[float, None, None]:
    """Convert a bfloat16 model with packed linears to int4, in place; yields the fraction done.

    The layers are converted in turn, the linears of a layer beside each other: only one layer's
    inputs and Hessians are in memory. Every linear is calibrated on what it receives in bfloat16,
    by one thread, so that the weights do not depend on the number of threads.
    """
    walks, layers = [_Walk(dia, take) for take in takes], len(dia.decoder.layers)
    for index in range(layers):
        for fraction in _calibrate_layer(dia, index, walks, threads):
            yield (index + fraction) / layers
    for name, module in list(dia.named_modules()):
        # The encoder, the text's keys and values, and what gives logits.
        if isinstance(module, PackedLinear) and module.precision != "int4":
            _replace(
                dia, name, PackedLinear.from_weight(module.dense(torch.float32), WIDEST["int4"])
            )
        elif isinstance(module, nn.Linear):
            _replace(dia, name, PackedLinear.from_weight(module.weight, WIDEST["int4"]))


def _calibrate_layer(
    dia: Dia, index: int, walks: Sequence[_Walk], threads: int
) -> Generator[float, None, None]:
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
    with ThreadPoolExecutor(threads) as pool:
        # The widest inputs take longest.
        names.sort(key=lambda name: -inputs[name][0].shape[-1])
        roundings = {
            pool.submit(_round_linear, dia.get_submodule(name), torch.cat(inputs.pop(name))): name
            for name in names
        }
        for done, rounding in enumerate(as_completed(roundings), start=1):
            _replace(dia, roundings[rounding], rounding.result())
            yield (1 + done / len(names)) / 2


def _round_linear(linear: nn.Module, x_SK: Tensor) -> PackedLinear:
    """The linear in int4, calibrated on samples of its input."""
    assert isinstance(linear, PackedLinear)
    with torch.inference_mode(), torch_threads(1):
        return result_of(quantize(linear.dense(torch.float32).t(), x_SK))


class _Walk:
    """A take on its way through the decoder, all of its steps together, one layer after another."""

    def __init__(self, dia: Dia, take: CalibrationTake) -> None:
        self._decoder = dia.decoder
        steps = len(take.codes)
        self._cache = dia.encode(take.text, dia.config.defaults.cfg_scale, steps)
        self._cache.reserve(steps)
        self._rotation = dia.rotaries[1].at(torch.arange(steps)[None])
        codes = torch.from_numpy(take.codes).expand(self._cache.branches, -1, -1)
        self._x_BTD = dia.decoder.embed(codes, [self._cache])

    def advance(self, index: int) -> None:
        """Compute layer `index`."""
        dtype = activation_dtype(self._decoder.embeddings.weight)
        layer = self._decoder.layers[index]
        self._x_BTD = layer(self._x_BTD, self._rotation, [self._cache], index, dtype)


def _replace(dia: Dia, name: str, module: nn.Module) -> None:
    owner, _, leaf = name.rpartition(".")
    setattr(dia.get_submodule(owner), leaf, module)
