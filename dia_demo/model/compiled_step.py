"""Runs the compiled decoder step (kernels/decoder_step.py) on a model's weights and caches."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np
import torch
from torch import Tensor, nn

from dia_demo.kernels.attention import attend_function
from dia_demo.kernels.decoder_step import (
    CACHE,
    CROSS_ATTENTION,
    EMBED,
    LINEAR,
    NONE,
    OP,
    RMSNORM,
    SELF_ATTENTION,
    SILU_MUL,
    STEP_ARGS,
    run_ops,
)
from dia_demo.kernels.matmul.linear import block_function, input_kind
from dia_demo.kernels.packing import padded_size
from dia_demo.kernels.thread_pool import thread_pool, yield_core
from dia_demo.model.dia import Decoder, Dia, NextFrame
from dia_demo.model.kv_cache import RowCache
from dia_demo.model.layers import RMSNorm, Rotary
from dia_demo.model.packed_linear import PackedLinear

# Scratch bytes per number of a linear's input: float32, and bfloat16 or int8 with group scales.
BYTES_OF_INPUT = 6
EMBED_OP = [EMBED] + [0] * (len(OP.descr) - 1)
# Rows of a prefill that are multiplied at once: their bytes stay in the nearest caches.
ROWS = 128


class CompiledStep:
    """Runs the steps of a decoder whose linears are PackedLinear.

    use_dot: with the processor's dot products; a step raises NotImplementedError if it has none for
    the format of a linear.
    """

    def __init__(self, decoder: Decoder, rotary: Rotary, threads: int, use_dot: bool) -> None:
        config, number_size = decoder.config, decoder.embeddings.weight.element_size()
        self._decoder, self._rotary, self._use_dot = decoder, rotary, use_dot
        self._pool = thread_pool(threads)
        # A voice prompt of one frame is a step too, which may run beside another row's steps.
        self._lock = threading.Lock()
        self._bound: list[tuple[int, int]] | None = None
        self._step_args = np.zeros(1, STEP_ARGS)
        # Set by `_bind`; the step's arguments hold their addresses.
        self._buffers: dict[str, Tensor] = {}
        self._scratch = self._logits = torch.empty(0)
        self._codes = self._frame_codes = np.zeros((0, 0), np.int64)
        self._positions = self._capacities = self._text_lengths = np.zeros(0, np.int64)
        self._block_counters = np.zeros(0, np.int64)
        self._ops, self._caches = np.zeros(0, OP), np.zeros((0, 0), CACHE)
        self._next_frames: list[tuple[np.ndarray, np.ndarray]] = []  # (arguments, operations)
        self._set(
            threads=threads,
            barrier=self._pool.barrier,
            yield_core=yield_core(),
            width=config.hidden_size,
            heads=config.num_heads,
            kv_heads=config.num_kv_heads,
            head_dim=config.head_dim,
            cross_heads=config.cross_num_heads,
            cross_kv_heads=config.cross_num_kv_heads,
            cross_head_dim=config.cross_head_dim,
            number_size=number_size,
            attend=attend_function(number_size == 2),
            channels=len(decoder.embeddings.weight) // config.vocab_size,
            vocabulary=config.vocab_size,
            embeddings=decoder.embeddings.weight.data_ptr(),
            cos=rotary.cos.data_ptr(),
            sin=rotary.sin.data_ptr(),
            eps=config.norm_eps,
        )

    def _set(self, **fields: float) -> None:
        for name, value in fields.items():
            self._step_args[name] = value

    def __call__(self, codes_BC: Tensor, caches: Sequence[RowCache]) -> Tensor:
        """Logits float32 [B, C, V] after feeding codes int64 [B, C]; the caches grow by one.

        The next step of the same rows overwrites them.
        """
        with self._lock:
            return self._step(codes_BC, caches)

    def _step(self, codes_BC: Tensor, caches: Sequence[RowCache]) -> Tensor:
        for cache in caches:
            cache.reserve(1)
        self._bind(caches)
        self._codes[:] = codes_BC.numpy()
        self._positions[:] = [cache.length for cache in caches for _ in range(cache.branches)]
        self._block_counters.fill(0)
        self._pool.run(run_ops, self._step_args, self._ops, self._caches)
        for cache in caches:
            cache.advance(1)
        return self._logits

    def next_frame(self, codes_BC: Tensor, caches: Sequence[RowCache], number: int) -> Tensor:
        """Logits float32 [B, C, V] as `Decoder.next_frame`; the next call overwrites them."""
        with self._lock:
            states = [cache.state for cache in caches if cache.state is not None]
            if self._bind(caches):  # Other rows have used the buffers since.
                self._buffers["x"][:, : states[0].shape[1]] = torch.cat(states)
            self._frame_codes[:] = codes_BC.numpy()
            self._block_counters.fill(0)
            self._pool.run(run_ops, *self._next_frames[number - 1], self._caches)
            return self._logits

    def multiply_prefills(self, model: Dia) -> None:
        """Let the linears of a model compute prefills as a step does.

        Those that a step does not read, of the encoder and the text's keys and values, are packed
        for it where they are not yet.
        """
        many_rows = ManyRows(self._pool.size, self._use_dot)
        for name, module in list(model.named_modules()):
            if isinstance(module, nn.Linear):
                owner, _, leaf = name.rpartition(".")
                precision = str(module.weight.dtype).removeprefix("torch.")
                module = PackedLinear.from_weight(module.weight, precision)
                setattr(model.get_submodule(owner), leaf, module)
            if isinstance(module, PackedLinear):
                module.many_rows = many_rows

    def compile(self, model: Dia) -> None:
        """Run one step on an empty text, so that all kernels are compiled before the first take."""
        codes = torch.zeros(1, model.config.codes_per_step, dtype=torch.int64)
        self(codes, [model.encode(b" ", cfg_scale=model.config.cfg_scales[0], max_positions=1)])
        self._bound = None

    def _bind(self, caches: Sequence[RowCache]) -> bool:
        """Allocate buffers and set addresses for these rows, unless the last step had the same.

        Returns whether it had other ones.
        """
        bound = [(cache.serial, cache.capacity) for cache in caches]
        if bound == self._bound:
            return False
        self._bound = bound
        slots = [(cache, branch) for cache in caches for branch in range(cache.branches)]
        longest = max(max(cache.capacity, *cache.text_lengths) for cache in caches)
        self._make_buffers(len(slots), longest)
        heads, head_dim = self._decoder.config.cross_num_heads, self._decoder.config.cross_head_dim
        for number, (cache, branch) in enumerate(slots):
            if branch == 0:
                queries = self._buffers["qkv_or_gate"][number, : heads * head_dim]
                cache.set_text_queries(queries.view(heads, head_dim))
            if cache.scale_vector is not None:
                self._buffers["offset"][number, : len(cache.scale_vector)] = cache.scale_vector
        self._capacities = np.array([cache.capacity for cache, _ in slots], np.int64)
        self._text_lengths = np.array([n for cache in caches for n in cache.text_lengths], np.int64)
        self._ops = np.array([tuple(op) for op in self._program()], OP)
        self._block_counters = np.zeros(len(self._ops), np.int64)
        self._set(
            slots=len(slots),
            capacities=self._capacities.ctypes.data,
            text_lengths=self._text_lengths.ctypes.data,
            block_counters=self._block_counters.ctypes.data,
        )
        self._caches = np.array(
            [
                [cache.addresses(layer, branch) for cache, branch in slots]
                for layer in range(self._decoder.config.num_layers)
            ],
            CACHE,
        )
        if self._decoder.next_frames:
            self._bind_next_frames(caches)
        return True

    def _bind_next_frames(self, caches: Sequence[RowCache]) -> None:
        """The arguments and operations of the further frames, on the buffers of the step."""
        config, x = self._decoder.config, self._buffers["x"][:, : self._decoder.config.hidden_size]
        states = x.split([cache.branches for cache in caches])
        for cache, state in zip(caches, states, strict=True):
            cache.state = state
        self._frame_codes = np.zeros((len(x), config.num_channels), np.int64)
        self._next_frames = []
        for block in self._decoder.next_frames:
            step_args = self._step_args.copy()
            step_args["codes"] = self._frame_codes.ctypes.data
            step_args["channels"] = config.num_channels
            step_args["embeddings"] = block.embeddings.weight.data_ptr()
            for name in ("", "_stride"):  # They are added to what the step has computed so far.
                step_args[f"offset{name}"] = step_args[f"x{name}"]
            ops = np.array([tuple(op) for op in self._next_frame_program(block)], OP)
            self._next_frames.append((step_args, ops))

    def _make_buffers(self, count: int, longest: int) -> None:
        """Allocate the buffers of `count` slots that attend to up to `longest` positions."""
        config = self._decoder.config
        own = config.num_heads * config.head_dim
        cross = config.cross_num_heads * config.cross_head_dim
        qkv, attn_out = max(own + 2 * config.num_kv_heads * config.head_dim, cross), max(own, cross)
        codes = config.num_channels * config.vocab_size
        widest = padded_size(max(config.hidden_size, attn_out, config.intermediate_size))
        # A thread's scratch: its copy of a linear's input, also as dot products read it; or the
        # query heads of one kv head with their scores.
        queries = max(
            config.num_heads // config.num_kv_heads,
            config.cross_num_heads // config.cross_num_kv_heads,
        )
        scratch = max(count * BYTES_OF_INPUT * widest, 4 * queries * (config.head_dim + longest))
        scratch = (scratch + 4095) // 4096 * 4096
        self._buffers = {
            name: torch.zeros(count, padded_size(width))
            for name, width in (
                ("x", config.hidden_size),
                ("offset", config.hidden_size),
                ("qkv_or_gate", qkv),
                ("gate", 2 * config.intermediate_size),
                ("attn_out", attn_out),
                ("logits", codes),
            )
        }
        self._scratch = torch.zeros(self._pool.size, scratch, dtype=torch.uint8)
        self._codes = np.zeros((count, int(self._step_args["channels"][0])), np.int64)
        self._positions = np.zeros(count, np.int64)
        for name in ("x", "offset", "qkv_or_gate", "attn_out"):
            buffer = self._buffers[name]
            self._set(**{name: buffer.data_ptr(), f"{name}_stride": 4 * buffer.shape[1]})
        self._set(
            codes=self._codes.ctypes.data,
            positions=self._positions.ctypes.data,
            scratch=self._scratch.data_ptr(),
            scratch_size=scratch,
        )
        logits = self._buffers["logits"][:, :codes]
        self._logits = logits.unflatten(1, (config.num_channels, config.vocab_size))

    def _program(self) -> Iterator[list[int]]:
        """The operations of a step, in order."""
        buffers, blank = self._buffers, [0] * (len(OP.descr) - 2)
        linear = partial(linear_op, self._use_dot)
        yield EMBED_OP
        for index, layer in enumerate(self._decoder.layers):
            own, cross, mlp = layer.self_attention, layer.cross_attention, layer.mlp
            x, qkv, attn_out = buffers["x"], buffers["qkv_or_gate"], buffers["attn_out"]
            gate = buffers["gate"]  # Apart, so that the queries of the last layer stay.
            yield linear(own.qkv_proj, x, qkv, RMSNORM, layer.pre_sa_norm)
            yield [SELF_ATTENTION, index, *blank]
            yield linear(own.o_proj, attn_out, x, add=True)
            yield linear(cross.q_proj, x, qkv, RMSNORM, layer.pre_ca_norm)
            yield [CROSS_ATTENTION, index, *blank]
            yield linear(cross.o_proj, attn_out, x, add=True)
            yield linear(mlp.gate_up_proj, x, gate, RMSNORM, layer.pre_mlp_norm)
            yield linear(mlp.down_proj, gate, x, SILU_MUL, add=True)
        head = self._decoder.logits_dense
        yield linear(head, buffers["x"], buffers["logits"], RMSNORM, self._decoder.norm)

    def _next_frame_program(self, block: NextFrame) -> Iterator[list[int]]:
        """The operations of a further frame, in order."""
        x, gate = self._buffers["x"], self._buffers["gate"]
        linear = partial(linear_op, self._use_dot)
        yield EMBED_OP
        yield linear(block.mlp.gate_up_proj, x, gate, RMSNORM, block.pre_mlp_norm)
        yield linear(block.mlp.down_proj, gate, x, SILU_MUL, add=True)
        yield linear(block.logits_dense, x, self._buffers["logits"], RMSNORM, block.norm)


def linear_op(
    use_dot: bool,
    linear: nn.Module,
    source: Tensor,
    out: Tensor,
    prologue: int = NONE,
    norm: RMSNorm | None = None,
    add: bool = False,
) -> list[int]:
    """The OP of one PackedLinear, from one buffer [slots, stride] to another.

    use_dot: with the processor's dot products; NotImplementedError if it has none for the format.
    add: add to `out` instead of overwriting it. `out` has space for whole blocks.
    """
    assert isinstance(linear, PackedLinear)
    return [
        LINEAR,
        0,
        block_function(linear.format, use_dot),
        input_kind(linear.format, use_dot),
        linear.blocks.shape[1],
        linear.blocks.data_ptr(),
        linear.outputs,
        linear.inputs,
        source.data_ptr(),
        4 * source.stride(0),
        prologue,
        0 if norm is None else norm.weight.data_ptr(),
        out.data_ptr(),
        4 * out.stride(0),
        int(not add),
    ]


class ManyRows:
    """Products of many rows at once, as in a prefill, by the function of a step.

    Every row is computed as in a step, so it does not depend on the rows beside it. use_dot: with
    the processor's dot products; a call raises NotImplementedError if it has none for the format.
    """

    def __init__(self, threads: int, use_dot: bool) -> None:
        self._threads, self._use_dot = threads, use_dot

    def __call__(self, linear: PackedLinear, x: Tensor) -> Tensor:
        """A linear of x [rows, inputs]; float32 [rows, outputs]."""
        parts = [self._multiply(linear, part) for part in x.split(ROWS)]
        return parts[0] if len(parts) == 1 else torch.cat(parts)

    def _multiply(self, linear: PackedLinear, x: Tensor) -> Tensor:
        rows, inputs = x.shape
        pool, step_args = thread_pool(self._threads), np.zeros(1, STEP_ARGS)
        source = torch.zeros(rows, padded_size(inputs))
        source[:, :inputs] = x
        out = torch.empty(rows, padded_size(linear.outputs))
        scratch = torch.empty(pool.size, rows * BYTES_OF_INPUT * source.shape[1], dtype=torch.uint8)
        block_counters = np.zeros(1, np.int64)
        for name, value in {
            "threads": pool.size,
            "barrier": pool.barrier,
            "yield_core": yield_core(),
            "slots": rows,
            "scratch": scratch.data_ptr(),
            "scratch_size": scratch.shape[1],
            "block_counters": block_counters.ctypes.data,
        }.items():
            step_args[name] = value
        ops = np.array([tuple(linear_op(self._use_dot, linear, source, out))], OP)
        pool.run(run_ops, step_args, ops, np.zeros((1, rows), CACHE))
        return out[:, : linear.outputs]
