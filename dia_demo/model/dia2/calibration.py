"""Calibrated Dia2: the layers in four and five bits are rounded by GPTQ on the model's own takes.

As for Dia (model/calibration), a layer at a time, on what its linears receive in bfloat16.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed

import torch
from torch import Tensor, nn

from dia_demo.model.calibration.gptq import quantize
from dia_demo.model.cpu_model import torch_threads
from dia_demo.model.dia2.forced import FrameRecording, depth_logits
from dia_demo.model.dia2.packing import WIDEST, parts_of, set_module
from dia_demo.model.dia2.torch_model import StepCache, TorchDia2
from dia_demo.model.layers import attend
from dia_demo.model.packed_linear import GRIDS, PackedLinear
from dia_demo.task import result_of

# Slots of frames that the depth's inputs are taken from: each is 31 samples of most linears.
DEPTH_SLOTS = 384


@torch.inference_mode()
def calibrate(
    model: TorchDia2, recordings: Sequence[FrameRecording], precision: str, threads: int
) -> Generator[float, None, None]:
    """Convert a model in bfloat16 to a precision, in place; yields the fraction done.

    Formats without a scale for each half of a group are rounded to the nearest.
    """
    network = model.network
    temporal, depth = parts_of(precision)
    walks = [_Walk(model, recording) for recording in recordings]
    count = len(network.transformer.layers) + len(network.depformer.layers)
    for index in range(len(network.transformer.layers)):
        names = _linears(network, f"transformer.layers.{index}")

        def read(index: int = index) -> None:
            for walk in walks:
                walk.advance(index)

        inputs = _inputs_of(network, names, read)
        yield from _convert(network, inputs, temporal, threads, index, count)
    states, codes = _depth_samples(model, walks, recordings)
    for index in range(len(network.depformer.layers)):
        names = _linears(network, f"depformer.layers.{index}")
        inputs = _inputs_of(network, names, lambda: depth_logits(network.depformer, states, codes))
        done = len(network.transformer.layers) + index
        yield from _convert(network, inputs, depth, threads, done, count)
    for name, module in list(network.named_modules()):
        if isinstance(module, PackedLinear) and ".layers." not in name:
            own = temporal if name.startswith("transformer.") else depth
            width = WIDEST.get(own, own)
            packed = PackedLinear.from_weight(module.dense(torch.float32), width)
            set_module(network, name, packed)


def _linears(network: nn.Module, path: str) -> list[str]:
    layer = network.get_submodule(path)
    return [
        f"{path}.{name}"
        for name, module in layer.named_modules()
        if isinstance(module, PackedLinear)
    ]


def _inputs_of(
    network: nn.Module, names: Sequence[str], read: Callable[[], object]
) -> dict[str, Tensor]:
    """What linears receive [samples, inputs] while `read` runs the network."""
    parts: dict[str, list[Tensor]] = {name: [] for name in names}
    hooks = [
        network.get_submodule(name).register_forward_pre_hook(
            lambda _, arguments, name=name: parts[name].append(arguments[0].flatten(0, -2))
        )
        for name in names
    ]
    try:
        read()
    finally:
        for hook in hooks:
            hook.remove()
    return {name: torch.cat(its) for name, its in parts.items()}


def _convert(
    network: nn.Module,
    inputs: dict[str, Tensor],
    precision: str,
    threads: int,
    done: int,
    count: int,
) -> Generator[float, None, None]:
    """Replace a layer's linears, each rounded by one thread, so that their number is no matter."""
    with ThreadPoolExecutor(threads) as pool:
        names = sorted(inputs, key=lambda name: -inputs[name].shape[-1])
        roundings = {
            pool.submit(_round, network.get_submodule(name), inputs.pop(name), precision): name
            for name in names
        }
        for number, rounding in enumerate(as_completed(roundings), start=1):
            set_module(network, roundings[rounding], rounding.result())
            yield (done + number / len(names)) / count


def _round(linear: nn.Module, x_SK: Tensor, precision: str) -> PackedLinear:
    assert isinstance(linear, PackedLinear)
    with torch.inference_mode(), torch_threads(1):
        weight = linear.dense(torch.float32)
        if precision not in GRIDS:
            return PackedLinear.from_weight(weight, precision)
        return result_of(quantize(weight.t(), x_SK, precision))


class _Walk:
    """A take on its way through the temporal layers, all of its steps together."""

    def __init__(self, model: TorchDia2, recording: FrameRecording) -> None:
        self._temporal = model.network.transformer
        text, codes = recording.inputs()
        steps = text.shape[1]
        self._cache: StepCache = model.new_cache(recording.branches, steps)
        self._rotation = self._temporal.rotary.at(torch.arange(steps)[None])
        self.x_BTD = self._temporal.embed(text, codes)

    def advance(self, index: int) -> None:
        """Compute layer `index`."""
        layer, x = self._temporal.layers[index], self.x_BTD
        q, k, v = layer.attn.project(layer.pre_norm(x, x.dtype), self._rotation)
        keys, values = self._cache.write(index, k, v)
        x = x + layer.attn.o_proj(attend(q, keys, values, causal=x.shape[1] > 1))
        self.x_BTD = x + layer.mlp(layer.post_norm(x, x.dtype))


def _depth_samples(
    model: TorchDia2, walks: Sequence[_Walk], recordings: Sequence[FrameRecording]
) -> tuple[Tensor, Tensor]:
    """States [B, D] and codes [B, C] of some slots of all takes, evenly spread over the steps that
    have a depth part."""
    norm, light = model.network.transformer.norm, model.config.light_steps
    states, codes = [], []
    for walk, recording in zip(walks, recordings, strict=True):
        states.append(norm(walk.x_BTD, walk.x_BTD.dtype)[:, light:].flatten(0, 1))
        codes.append(recording.codes_drawn()[light:].repeat(recording.branches, 1))
    all_states, all_codes = torch.cat(states), torch.cat(codes)
    places = torch.arange(0, len(all_states), max(1, len(all_states) // DEPTH_SLOTS))
    return all_states[places], all_codes[places]
