"""The compiled decoder step (kernels/step.py) on a model's weights and its rows' caches."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import torch
from torch import Tensor

from dia_demo.kernels.emit import dot_lanes
from dia_demo.kernels.formats import padded
from dia_demo.kernels.step import (
    AS_IT_IS,
    CACHE,
    EMBED,
    FRAME,
    GATED,
    LINEAR,
    NORMED,
    PART,
    SELF_ATTENTION,
    TEXT_ATTENTION,
    step_function,
)
from dia_demo.kernels.team import let_others, team_of
from dia_demo.model.blocks import BlockLinear
from dia_demo.model.cache import RowCache
from dia_demo.model.dia import Decoder, Dia
from dia_demo.model.layers import RMSNorm, Rotary

# Scratch for one number of a linear's input: float32, and bfloat16 or int8 with its groups' scales.
BYTES_OF_INPUT = 6


class NativeStep:
    """Steps of a decoder whose linears are BlockLinear.

    use_dot: by the processor's dot products; NotImplementedError where it has none for the format.
    """

    def __init__(self, decoder: Decoder, rotary: Rotary, threads: int, use_dot: bool) -> None:
        # Not the logits' format: int4's keep 8 bits.
        self._run_parts = _route(decoder.layers[0].mlp.down_proj, use_dot)
        config = decoder.config
        self._decoder, self._rotary = decoder, rotary
        self._team = team_of(threads)
        # A voice prompt of one frame is a step too, and may be read beside another's.
        self._lock = threading.Lock()
        self._bound: list[tuple[int, int]] | None = None
        self._frame = np.zeros(1, FRAME)
        self._set(
            team=threads,
            barrier=self._team.barrier,
            let_others=let_others(),
            width=config.hidden_size,
            heads=config.num_heads,
            groups=config.num_kv_heads,
            head_dim=config.head_dim,
            cross_heads=config.cross_num_heads,
            cross_groups=config.cross_num_kv_heads,
            cross_dim=config.cross_head_dim,
            channels=config.num_channels,
            vocabulary=config.vocab_size,
            embeddings=decoder.embeddings.weight.data_ptr(),
            cos=rotary.cos.data_ptr(),
            sin=rotary.sin.data_ptr(),
            eps=config.norm_eps,
        )

    def _set(self, **fields: float) -> None:
        for name, value in fields.items():
            self._frame[name] = value

    def __call__(self, codes_BC: Tensor, caches: Sequence[RowCache]) -> Tensor:
        """Logits float32 [B, C, V] after feeding codes int64 [B, C]; the caches grow by one.

        The same rows' next step overwrites them.
        """
        with self._lock:
            return self._step(codes_BC, caches)

    def _step(self, codes_BC: Tensor, caches: Sequence[RowCache]) -> Tensor:
        for cache in caches:
            cache.reserve(1)
        self._bind(caches)
        self._codes[:] = codes_BC.numpy()
        self._positions[:] = [cache.length for cache in caches for _ in range(cache.halves)]
        self._claims.fill(0)
        self._team.run(self._run_parts, self._frame, self._parts, self._pointers)
        for cache in caches:
            cache.advance(1)
        return self._logits

    def compile(self, model: Dia) -> None:
        """Run one step on nothing: what is compiled at the first call is then there."""
        codes = torch.zeros(1, self._decoder.config.num_channels, dtype=torch.int64)
        self(codes, [model.encode(b" ", guidance=False, max_positions=1)])
        self._bound = None

    def _bind(self, caches: Sequence[RowCache]) -> None:
        """Buffers and addresses for these rows, where they are not those of the last step."""
        bound = [(cache.serial, cache.capacity) for cache in caches]
        if bound == self._bound:
            return
        self._bound = bound
        slots = [(cache, half) for cache in caches for half in range(cache.halves)]
        longest = max(max(cache.capacity, *cache.text_lengths) for cache in caches)
        self._make_buffers(len(slots), longest)
        self._capacities = np.array([cache.capacity for cache, _ in slots], np.int64)
        self._lengths = np.array([cache.text_lengths[half] for cache, half in slots], np.int64)
        self._parts = np.array([tuple(part) for part in self._program()], PART)
        self._claims = np.zeros(len(self._parts), np.int64)
        self._set(
            slots=len(slots),
            capacities=self._capacities.ctypes.data,
            text_lengths=self._lengths.ctypes.data,
            claims=self._claims.ctypes.data,
        )
        self._pointers = np.array(
            [
                [cache.addresses(layer, half) for cache, half in slots]
                for layer in range(self._decoder.config.num_layers)
            ],
            CACHE,
        )

    def _make_buffers(self, count: int, longest: int) -> None:
        """Room for a step's numbers, of `count` slots that attend to up to `longest` positions."""
        config = self._decoder.config
        wide = max(
            (config.num_heads + 2 * config.num_kv_heads) * config.head_dim,
            config.cross_num_heads * config.cross_head_dim,
            2 * config.intermediate_size,
        )
        mixed = max(
            config.num_heads * config.head_dim, config.cross_num_heads * config.cross_head_dim
        )
        codes = config.num_channels * config.vocab_size
        widest = padded(max(config.hidden_size, mixed, config.intermediate_size))
        # A member's scratch: its copy of a linear's input, and what dot products read of it; or the
        # heads that share keys and values, with their scores.
        share = max(
            config.num_heads // config.num_kv_heads,
            config.cross_num_heads // config.cross_num_kv_heads,
        )
        scratch = max(count * BYTES_OF_INPUT * widest, 4 * share * (config.head_dim + longest))
        scratch = (scratch + 4095) // 4096 * 4096
        self._buffers = {
            name: torch.zeros(count, padded(width))
            for name, width in (
                ("x", config.hidden_size),
                ("wide", wide),
                ("mixed", mixed),
                ("logits", codes),
            )
        }
        self._scratch = torch.zeros(self._team.size, scratch, dtype=torch.uint8)
        self._codes = np.zeros((count, config.num_channels), np.int64)
        self._positions = np.zeros(count, np.int64)
        for name in ("x", "wide", "mixed"):
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
        """The parts of a step, in order."""
        buffers, blank = self._buffers, [0] * (len(PART.names) - 2)
        yield [EMBED, 0, *blank]
        for index, layer in enumerate(self._decoder.layers):
            own, cross, mlp = layer.self_attention, layer.cross_attention, layer.mlp
            x, wide, mixed = buffers["x"], buffers["wide"], buffers["mixed"]
            yield _linear(own.qkv_proj, x, wide, NORMED, layer.pre_sa_norm)
            yield [SELF_ATTENTION, index, *blank]
            yield _linear(own.o_proj, mixed, x, add=True)
            yield _linear(cross.q_proj, x, wide, NORMED, layer.pre_ca_norm)
            yield [TEXT_ATTENTION, index, *blank]
            yield _linear(cross.o_proj, mixed, x, add=True)
            yield _linear(mlp.gate_up_proj, x, wide, NORMED, layer.pre_mlp_norm)
            yield _linear(mlp.down_proj, wide, x, GATED, add=True)
        head = self._decoder.logits_dense
        yield _linear(head, buffers["x"], buffers["logits"], NORMED, self._decoder.norm)


def _linear(
    linear: BlockLinear,
    source: Tensor,
    out: Tensor,
    how: int = AS_IT_IS,
    norm: RMSNorm | None = None,
    add: bool = False,
) -> list[int]:
    """The PART of one linear, from one buffer [slots, stride] to another."""
    return [
        LINEAR,
        0,
        linear.kind,
        linear.blocks.data_ptr(),
        linear.outputs,
        linear.inputs,
        source.data_ptr(),
        4 * source.shape[1],
        how,
        0 if norm is None else norm.weight.data_ptr(),
        out.data_ptr(),
        4 * out.shape[1],
        int(not add),
    ]


def product(linear: BlockLinear, x: Tensor, threads: int, use_dot: bool, times: int = 1) -> Tensor:
    """x [rows, inputs] through one linear as a step runs it; float32 [rows, outputs].

    times: how often it is done, for measuring. NotImplementedError as NativeStep.
    """
    run_parts = _route(linear, use_dot)
    rows, inputs = x.shape
    team, frame = team_of(threads), np.zeros(1, FRAME)
    given = torch.zeros(rows, padded(inputs))
    given[:, :inputs] = x
    out = torch.empty(rows, padded(linear.outputs))
    scratch = torch.empty(threads, rows * BYTES_OF_INPUT * given.shape[1], dtype=torch.uint8)
    claims = np.zeros(times, np.int64)
    for name, value in {
        "team": threads,
        "barrier": team.barrier,
        "let_others": let_others(),
        "slots": rows,
        "scratch": scratch.data_ptr(),
        "scratch_size": scratch.shape[1],
        "claims": claims.ctypes.data,
    }.items():
        frame[name] = value
    parts = np.array([tuple(_linear(linear, given, out))] * times, PART)
    team.run(run_parts, frame, parts, np.zeros((1, rows), CACHE))
    return out[:, : linear.outputs]


def _route(linear: BlockLinear, use_dot: bool) -> Callable:
    """The step's function for decoders of such linears."""
    if use_dot and not dot_lanes(linear.kind):
        raise NotImplementedError(f"this processor has no dot product for {linear.precision}")
    return step_function(linear.kind, use_dot)
