"""Where the time of a frame of Dia2 goes: both parts, drawing, and what limits them."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from dia_demo.kernels.decoder_step import CACHE
from dia_demo.kernels.frames.drawing import DRAWING, draw_codes
from dia_demo.kernels.sampling import scratch_bytes
from dia_demo.model.dia2.compiled_frames.model import CompiledDia2
from dia_demo.model.dia2.compiled_frames.part import FramePart
from dia_demo.model.dia2.config import GUIDANCE_TOP
from dia_demo.model.packed_linear import PackedLinear
from dia_demo.services.measurements.types import FrameSplit

# Weights of a linear that stay in a core's nearest caches, and how often it runs in one call.
CACHED_OUTPUTS, RUNS = 192, 256
REPEATS = 20


class FrameWatch:
    """A Dia2 that notes how long its parts take; everything else is the model's own."""

    def __init__(self, model: CompiledDia2) -> None:
        self._model = model
        self.temporal: list[float] = []
        self.depth_seconds: list[float] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    def step(self, *arguments: Any) -> Any:
        """As of the model."""
        return _time_call(self._model.step, self.temporal, *arguments)

    def depth(self, *arguments: Any) -> Any:
        """As of the model."""
        return _time_call(self._model.depth, self.depth_seconds, *arguments)

    def split(self, frames: Sequence[float], rows: int, position: int, threads: int) -> FrameSplit:
        """The last frames' parts, whose whole times these are. position: steps in the caches."""
        model, config = self._model, self._model.config
        network, count = model.network, len(frames)
        temporal, depth = (
            1000 * statistics.median(seconds[-count:])
            for seconds in (self.temporal, self.depth_seconds)
        )
        branches = config.branches(config.defaults.cfg_scale) * rows
        drawing = drawing_ms(config.num_codes, rows, threads) * config.stages
        return FrameSplit(
            temporal_ms=temporal,
            depth_ms=depth,
            drawing_ms=drawing,
            rest_ms=max(0.0, 1000 * statistics.median(frames) - temporal - depth),
            temporal_bytes=linear_bytes(network.transformer)
            + cache_bytes(model, position) * branches,
            depth_bytes=linear_bytes(network.depformer),
            depth_weights=depth_weights(model),
            weights_per_ms=weights_per_ms(model, branches, threads),
        )


def _time_call(call: Callable, seconds: list[float], *arguments: Any) -> Any:
    began = perf_counter()
    result = call(*arguments)
    seconds.append(perf_counter() - began)
    return result


def linear_bytes(part: nn.Module) -> int:
    """Bytes of a part's linears, each counted once: what a frame reads from memory if nothing is
    read twice."""
    return sum(module.nbytes for module in part.modules() if isinstance(module, PackedLinear))


def cache_bytes(model: CompiledDia2, position: int) -> int:
    """Bytes of keys and values that the temporal part reads for one slot."""
    d = model.config.decoder
    is_float32 = model.network.transformer.audio_embeds[0].weight.dtype == torch.float32
    return 2 * d.num_layers * d.num_kv_heads * d.head_dim * position * (4 if is_float32 else 2)


def depth_weights(model: CompiledDia2) -> int:
    """Weights that all stages of a frame are multiplied with, those that they share each time."""
    depth, config = model.network.depformer, model.config
    total = sum(_weights(module) for module in depth.depformer_in.values())
    total += sum(_weights(module) for module in depth.logits)
    for layer in depth.layers:
        attention = layer.self_attention
        shared = _weights(layer.mlp.wi) + _weights(layer.mlp.wo)
        for name in map(str, config.depth.schedule):
            total += shared + _weights(attention.in_proj[name]) + _weights(attention.out_proj[name])
    return total


def _weights(module: nn.Module) -> int:
    assert isinstance(module, PackedLinear)
    return module.outputs * module.inputs


def weights_per_ms(model: CompiledDia2, slots: int, threads: int) -> float:
    """How many weights of the depth's format all threads multiply in a millisecond with so many
    slots, if their weights are in the nearest cache: the limit of the instructions."""
    wo = model.network.depformer.layers[0].mlp.wo
    assert isinstance(wo, PackedLinear)
    outputs = min(CACHED_OUTPUTS * threads, len(wo.blocks) * 64)
    few = PackedLinear(wo.blocks[: outputs // 64].clone(), wo.precision, outputs, wo.inputs)
    part = FramePart(threads, model.depth_part.use_dot, number_size=4, eps=1.0)
    part.make_buffers(slots, {"source": few.inputs, "out": outputs}, 8 * slots * few.inputs)
    part.buffers["source"].normal_()
    ops = [part.linear(few, part.buffers["source"], part.buffers["out"])] * RUNS
    part.set_program(iter(ops))
    none = np.zeros((1, slots), CACHE), np.zeros(0, DRAWING)
    return RUNS * outputs * few.inputs / _best_ms(lambda: part.run(*none))


def drawing_ms(codes: int, rows: int, threads: int) -> float:
    """Milliseconds of drawing one code of every row, shared by the threads."""
    share = -(-rows // threads)
    logits: Tensor = 3 * torch.randn(2 * share, codes)
    drawings, out = np.zeros(share, DRAWING), np.zeros(share, np.int64)
    drawings["cond"], drawings["uncond"] = 2 * np.arange(share), 2 * np.arange(share) + 1
    drawings["top_k"] = drawings["filter_k"] = GUIDANCE_TOP
    drawings["scale"], drawings["temperature"] = 2.0, 0.8
    uniforms = np.full(share, 0.5, np.float32)
    scratch = np.zeros(scratch_bytes(codes), np.uint8)
    arguments = logits.data_ptr(), 4 * codes, codes, codes, drawings, uniforms
    return _best_ms(lambda: draw_codes(*arguments, scratch.ctypes.data, out))


def _best_ms(call: Callable[[], object]) -> float:
    best: list[float] = []
    for _ in range(REPEATS):
        _time_call(call, best)
    return 1000 * min(best)
