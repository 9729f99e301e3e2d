"""Mimi's decoder as one compiled call for a few frames: see kernels/frames/mimi_step.py.

A `_Program` lists the operations with the buffers that they read and write. Two streams may be
decoded at the same time, so a decoder has as many programs as are used at once.
"""

from __future__ import annotations

import queue
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from dia_demo.codec.mimi.compiled_weights import CompiledWeights
from dia_demo.codec.mimi.config import STRIDE
from dia_demo.codec.mimi.transformer import AttentionCache, rotary_frequencies, rotary_tables
from dia_demo.codec.mimi.weights import StoredMimi
from dia_demo.kernels.attention import attend_function
from dia_demo.kernels.frames.mimi_step import (
    ATTENTION,
    ELU,
    GELU,
    KEEP,
    LINEAR,
    MIMI_ARGS,
    MIMI_OP,
    NORM,
    NOTHING,
    RESTORE,
    SUM_CODES,
    UPSAMPLE,
    run_mimi,
)
from dia_demo.kernels.matmul.linear import block_function
from dia_demo.kernels.packing import BLOCK, padded_size
from dia_demo.kernels.thread_pool import thread_pool, yield_core
from dia_demo.model.cpu_model import torch_threads

# Frames that are decoded together, so that weights are read once for them.
MOST_FRAMES = 4


@dataclass
class CompiledState:
    """What a stream keeps: the last input rows of each layer, and keys and values."""

    history: Tensor
    cache: AttentionCache


class CompiledMimiDecoder:
    """Codes to samples. precision: of the stored weights, float32 or bfloat16; sums are in float32.

    A row of a layer's result does not depend on the frames or threads beside it.
    """

    most_frames = MOST_FRAMES

    def __init__(self, stored: StoredMimi, precision: str) -> None:
        self._config = stored.config
        self._frequencies = rotary_frequencies(stored.config)
        self._weights = CompiledWeights(stored, precision)
        self._programs: queue.LifoQueue[_Program] = queue.LifoQueue()
        first = _Program(self._weights)
        self._history = first.history
        self._programs.put(first)

    def new_state(self) -> CompiledState:
        """The state of a stream at its beginning."""
        return CompiledState(torch.zeros(self._history), AttentionCache.from_config(self._config))

    def __call__(self, codes_TC: Tensor, state: CompiledState) -> Tensor:
        """Feed the stream's next frames, at most `most_frames`; returns their samples [N]."""
        try:
            program = self._programs.get_nowait()
        except queue.Empty:
            program = _Program(self._weights)
        threads, cache, frames = torch.get_num_threads(), state.cache, len(codes_TC)
        with torch_threads(1):  # Those of torch would wait actively beside the kernel's.
            cache.make_space(STRIDE * frames)
            positions = torch.arange(cache.position, cache.position + STRIDE * frames)
            cos, sin = rotary_tables(positions, self._frequencies)
            sin[:, : sin.shape[1] // 2].neg_()
            samples = program.run(codes_TC.long().contiguous(), state, cos, sin, threads)
            cache.advance(STRIDE * frames)
        self._programs.put(program)
        return samples


@dataclass(frozen=True)
class _Buffer:
    """Activations: so many rows that the stream keeps, then those of MOST_FRAMES frames."""

    numbers: Tensor
    kept: int
    rows: int

    @property
    def width(self) -> int:
        return self.numbers.shape[1]

    @property
    def stride(self) -> int:
        return 4 * self.width

    @property
    def start(self) -> int:
        """The address of the first row."""
        return self.numbers.data_ptr()

    @property
    def new(self) -> int:
        """The address of the first row of the frames."""
        return self.start + self.stride * self.kept


class _Program:
    """The operations of a call, and their buffers. history: how many numbers a stream keeps."""

    def __init__(self, weights: CompiledWeights) -> None:
        self._weights, self._config = weights, weights.config
        self._ops: list[dict[str, int]] = []
        self._buffers: list[_Buffer] = []
        self._samples = self._build()
        self._restore_and_keep()
        self._array = np.zeros(len(self._ops), MIMI_OP)
        for place, op in enumerate(self._ops):
            for name, value in op.items():
                self._array[place][name] = value
        self._counters = np.zeros(len(self._ops), np.int64)
        config = self._config
        self._scores = torch.empty(
            config.num_attention_heads, AttentionCache.capacity(config) + config.head_dim
        )

    def run(
        self, codes_TC: Tensor, state: CompiledState, cos: Tensor, sin: Tensor, threads: int
    ) -> Tensor:
        """The samples [N] of the next frames of a stream."""
        kv, config = state.cache.kv, self._config
        pool, args = thread_pool(threads), np.zeros(1, MIMI_ARGS)
        self._counters[:] = 0
        values = {
            "threads": threads, "barrier": pool.barrier, "yield_core": yield_core(),
            "counters": self._counters.ctypes.data, "frames": len(codes_TC),
            "history": state.history.data_ptr(), "codes": codes_TC.data_ptr(),
            "channels": codes_TC.shape[1], "semantic": config.num_semantic_quantizers,
            "tables": self._weights.table_addresses.ctypes.data,
            "cos": cos.data_ptr(), "sin": sin.data_ptr(), "filled": state.cache.filled,
            "capacity": kv.shape[3], "kv": kv.data_ptr(), "heads": config.num_attention_heads,
            "head_dim": config.head_dim, "window": config.sliding_window,
            "scores": self._scores.data_ptr(), "attend": attend_function(False),
            "eps": config.norm_eps,
        }  # fmt: skip
        for name, value in values.items():
            args[name] = value
        pool.run(run_mimi, args, self._array)
        return self._samples.numbers[: config.hop_length * len(codes_TC), 0].clone()

    def _build(self) -> _Buffer:
        """Add the operations of the layers; returns the buffer of the samples."""
        config, vectors = self._config, self._weights.vectors
        sums = self._buffer(1, padded_size(2 * config.codebook_dim))
        frames = self._buffer(1, padded_size(config.hidden_size), kept=1)
        x = self._buffer(STRIDE, frames.width, kept=config.kernel_size - 1)
        self._add(SUM_CODES, sums, count=config.codebook_dim)
        self._add_linear("quantizer", sums, frames)
        self._add(
            UPSAMPLE, x, x=frames.start, x_stride=frames.stride, count=config.hidden_size,
            weights=vectors["upsample"].data_ptr(),
        )  # fmt: skip
        self._add_transformer(x)
        return self._add_convolutions(x)

    def _add_transformer(self, x: _Buffer) -> None:
        config = self._config
        heads = config.num_attention_heads * config.head_dim
        normed = self._buffer(STRIDE, x.width)
        qkv, mixed = (
            self._buffer(STRIDE, padded_size(3 * heads)),
            self._buffer(STRIDE, padded_size(heads)),
        )
        inner = self._buffer(STRIDE, padded_size(config.intermediate_size))
        for number in range(config.num_hidden_layers):
            name = f"decoder_transformer.layers.{number}"
            self._add_norm(f"{name}.input_layernorm", x, normed)
            self._add_linear(f"{name}.qkv", normed, qkv)
            self._add(ATTENTION, mixed, x=qkv.start, x_stride=qkv.stride, place=number)
            self._add_linear(f"{name}.out", mixed, x, add=x)
            self._add_norm(f"{name}.post_attention_layernorm", x, normed)
            self._add_linear(f"{name}.fc1", normed, inner, activation=GELU, active=inner)
            self._add_linear(f"{name}.fc2", inner, x, add=x)

    def _add_convolutions(self, x: _Buffer) -> _Buffer:
        """Every layer but the first reads its input after an ELU, which the layer before adds."""
        config, name = self._config, "decoder.layers"
        stages, rows = len(config.upsampling_ratios), STRIDE
        width = config.num_filters * 2**stages
        active = self._buffer(rows, padded_size(width), kept=1)
        self._add_linear(f"{name}.0", x, active, activation=ELU, active=active)
        for stage, ratio in enumerate(config.upsampling_ratios):
            rows, width, x = ratio * rows, width // 2, active
            transposed, unit = f"{name}.{3 * stage + 2}", f"{name}.{3 * stage + 3}.block"
            after = config.last_kernel_size - 1 if stage == stages - 1 else 1
            raw, inner = self._buffer(rows, padded_size(width)), self._result_of(f"{unit}.1", rows)
            active = self._buffer(rows, raw.width, kept=config.residual_kernel_size - 1)
            self._add_linear(transposed, x, raw, activation=ELU, active=active)
            self._add_linear(f"{unit}.1", active, inner, activation=ELU, active=inner)
            active = self._buffer(rows, raw.width, kept=after)
            self._add_linear(f"{unit}.3", inner, raw, add=raw, activation=ELU, active=active)
        last = f"{name}.{3 * stages + 2}"
        samples = self._result_of(last, rows)
        self._add_linear(last, active, samples)
        return samples

    def _buffer(self, rows: int, width: int, kept: int = 0) -> _Buffer:
        buffer = _Buffer(torch.zeros(kept + rows * MOST_FRAMES, width), kept, rows)
        self._buffers.append(buffer)
        return buffer

    def _result_of(self, name: str, rows: int) -> _Buffer:
        """A buffer for the result of a convolution, whose rows are dense where it is grouped."""
        linear = self._weights.linears[name]
        return self._buffer(rows, len(linear.bias) // linear.group)

    def _add(self, kind: int, out: _Buffer, **values: int) -> None:
        place = {"out": out.new, "out_stride": out.stride, "rows": out.rows, "ends_phase": 1}
        self._ops.append({"kind": kind, **place, **values})

    def _add_norm(self, name: str, x: _Buffer, out: _Buffer) -> None:
        weight, bias = (self._weights.vectors[f"{name}.{end}"] for end in ("weight", "bias"))
        self._add(
            NORM, out, x=x.new, x_stride=x.stride, count=len(weight),
            weights=weight.data_ptr(), bias=bias.data_ptr(),
        )  # fmt: skip

    def _add_linear(
        self,
        name: str,
        x: _Buffer,
        out: _Buffer,
        add: _Buffer | None = None,
        activation: int = NOTHING,
        active: _Buffer | None = None,
    ) -> None:
        """A row of its result may be some rows of `out`, as many numbers in all."""
        linear = self._weights.linears[name]
        assert linear.count == (x.kept + linear.group) * x.width, (
            "a window is the kept rows and one"
        )
        rows = x.rows // linear.group
        merged = out.rows // rows
        self._add(
            LINEAR, out, rows=rows, count=linear.count, x=x.start, x_stride=linear.group * x.stride,
            out_stride=merged * out.stride,
            compute=block_function(linear.packed.format, False),
            block_size=linear.packed.blocks.shape[1],
            weights=linear.packed.blocks.data_ptr(), blocks=len(linear.bias) // BLOCK,
            bias=linear.bias.data_ptr(), add=add.new if add else 0, activation=activation,
            **({"active": active.new, "active_stride": merged * active.stride} if active else {}),
        )  # fmt: skip

    def _restore_and_keep(self) -> None:
        """Begin with the rows that the stream has kept, and end with those that it keeps."""
        place, first, last = 0, [], []
        for buffer in self._buffers:
            if buffer.kept:
                count = buffer.kept * buffer.width
                first.append({"kind": RESTORE, "out": buffer.start, "count": count, "place": place})
                last.append(
                    {"kind": KEEP, "x": buffer.start, "x_stride": buffer.stride,
                     "rows": buffer.rows, "count": count, "place": place}
                )  # fmt: skip
                place += count
        first[-1]["ends_phase"] = last[-1]["ends_phase"] = 1
        self._ops, self.history = first + self._ops + last, place
