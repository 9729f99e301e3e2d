"""The compiled decoder step (kernels/step.py) on a model's weights and its rows' caches."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from dia_demo.kernels.step import CACHE, FRAME, LAYER, decoder_step, linear_alone
from dia_demo.kernels.team import let_others, team_of
from dia_demo.model.blocks import BLOCK, BlockLinear
from dia_demo.model.cache import RowCache
from dia_demo.model.dia import Decoder, DecoderLayer, Dia
from dia_demo.model.layers import Rotary


class NativeStep:
    """Steps of a decoder whose linears are BlockLinear.

    use_dot: the integer formats by the processor's byte dot product, where it has one.
    """

    def __init__(self, decoder: Decoder, rotary: Rotary, threads: int, use_dot: bool) -> None:
        config = decoder.config
        self._decoder, self._rotary = decoder, rotary
        self._team = team_of(threads)
        self._bound: list[tuple[int, int]] | None = None
        self._frame = np.zeros(1, FRAME)
        self._layers = np.array([_addresses(layer) for layer in decoder.layers], LAYER)
        self._set(
            team=threads,
            barrier=self._team.barrier,
            let_others=let_others(),
            use_dot=use_dot,
            width=config.hidden_size,
            heads=config.num_heads,
            groups=config.num_kv_heads,
            head_dim=config.head_dim,
            cross_heads=config.cross_num_heads,
            cross_groups=config.cross_num_kv_heads,
            cross_dim=config.cross_head_dim,
            hidden=config.intermediate_size,
            channels=config.num_channels,
            vocabulary=config.vocab_size,
            half_embeddings=decoder.embeddings.weight.dtype == torch.bfloat16,
            embeddings=decoder.embeddings.weight.data_ptr(),
            cos=rotary.cos.data_ptr(),
            sin=rotary.sin.data_ptr(),
            norm=decoder.norm.weight.data_ptr(),
            logits_weights=decoder.logits_dense.blocks.data_ptr(),
            logits_kind=decoder.logits_dense.kind,
            eps=config.norm_eps,
        )

    def _set(self, **fields: float) -> None:
        for name, value in fields.items():
            self._frame[name] = value

    def __call__(self, codes_BC: Tensor, caches: Sequence[RowCache]) -> Tensor:
        """Logits float32 [B, C, V] after feeding codes int64 [B, C]; the caches grow by one."""
        for cache in caches:
            cache.reserve(1)
        self._bind(caches)
        self._codes[:] = codes_BC.numpy()
        self._positions[:] = [cache.length for cache in caches for _ in range(cache.halves)]
        self._team.run(decoder_step, self._frame, self._layers, self._pointers)
        for cache in caches:
            cache.advance(1)
        return self._logits.clone()

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
        config, count = self._decoder.config, len(slots)
        wide = max(
            (config.num_heads + 2 * config.num_kv_heads) * config.head_dim,
            config.cross_num_heads * config.cross_head_dim,
            2 * config.intermediate_size,
        )
        mixed = max(
            config.num_heads * config.head_dim, config.cross_num_heads * config.cross_head_dim
        )
        codes = config.num_channels * config.vocab_size
        widest = _whole(max(config.hidden_size, mixed, config.intermediate_size))
        longest = max(max(cache.capacity, cache.text_length) for cache in caches)
        # A member's scratch: its copy of a linear's input, the same in int8 with scales and sums;
        # or one head and its scores.
        scratch = max(count * (5 * widest + widest // 8), 4 * (config.head_dim + longest))
        scratch = (scratch + 4095) // 4096 * 4096
        self._buffers = {
            name: torch.zeros(count, _whole(width))
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
        self._capacities = np.array([cache.capacity for cache, _ in slots], np.int64)
        self._lengths = np.array([cache.text_length for cache, _ in slots], np.int64)
        for name, buffer in self._buffers.items():
            self._set(**{name: buffer.data_ptr(), f"{name}_stride": 4 * buffer.shape[1]})
        self._set(
            slots=count,
            half_cache=caches[0].dtype == torch.bfloat16,
            codes=self._codes.ctypes.data,
            positions=self._positions.ctypes.data,
            capacities=self._capacities.ctypes.data,
            text_lengths=self._lengths.ctypes.data,
            scratch=self._scratch.data_ptr(),
            scratch_size=scratch,
        )
        self._pointers = np.array(
            [
                [cache.addresses(layer, half) for cache, half in slots]
                for layer in range(config.num_layers)
            ],
            CACHE,
        )
        logits = self._buffers["logits"][:, :codes]
        self._logits = logits.unflatten(1, (config.num_channels, config.vocab_size))


def product(linear: BlockLinear, x: Tensor, threads: int, use_dot: bool, times: int = 1) -> Tensor:
    """x [rows, inputs] through one linear as a step runs it; float32 [rows, outputs].

    times: how often it is done, for measuring.
    """
    rows, inputs = x.shape
    team, frame = team_of(threads), np.zeros(1, FRAME)
    given = torch.zeros(rows, _whole(inputs))
    given[:, :inputs] = x
    out = torch.empty(rows, _whole(linear.outputs))
    scratch = torch.empty(threads, rows * (5 * given.shape[1] + given.shape[1] // 8))
    for name, value in {
        "team": threads,
        "barrier": team.barrier,
        "let_others": let_others(),
        "use_dot": use_dot,
        "slots": rows,
        "x": given.data_ptr(),
        "x_stride": 4 * given.shape[1],
        "wide": out.data_ptr(),
        "wide_stride": 4 * out.shape[1],
        "scratch": scratch.data_ptr(),
        "scratch_size": 4 * scratch.shape[1],
    }.items():
        frame[name] = value
    blocks = linear.blocks.data_ptr()
    team.run(linear_alone, frame, linear.kind, blocks, linear.outputs, inputs, times)
    return out[:, : linear.outputs]


def _whole(count: int) -> int:
    return -(-count // BLOCK) * BLOCK


def _addresses(layer: DecoderLayer) -> tuple[int, ...]:
    linears: tuple[BlockLinear, ...] = (
        layer.self_attention.qkv_proj,
        layer.self_attention.o_proj,
        layer.cross_attention.q_proj,
        layer.cross_attention.o_proj,
        layer.mlp.gate_up_proj,
        layer.mlp.down_proj,
    )
    norms = (layer.pre_sa_norm, layer.pre_ca_norm, layer.pre_mlp_norm)
    return (
        *(norm.weight.data_ptr() for norm in norms),
        *(linear.blocks.data_ptr() for linear in linears),
        *(linear.kind for linear in linears),
    )
