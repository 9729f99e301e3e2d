"""Mimi's transformers: layers of attention to the last positions, and of an MLP.

A position is rotated by its number in the stream (RoPE, https://arxiv.org/abs/2104.09864) and
attends to itself and to those of the window before it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from dia_demo.codec.mimi.config import STRIDE, MimiConfig
from dia_demo.codec.mimi.linear import WindowLinear, run_beside, windows_kind
from dia_demo.codec.mimi.weights import StoredMimi

# Positions beyond the window that the cache has space for, before the window moves to its start.
_SPARE = 32 * STRIDE


@dataclass
class AttentionCache:
    """Keys and values [layers, 2, heads, capacity, K] of a stream's last positions.

    filled: so many of them are set; position: the number of the stream's next position. Slots that
    are not set are NaN, so that reading one is noticed.
    """

    kv: Tensor
    filled: int = 0
    position: int = 0


@dataclass(frozen=True)
class _Step:
    """What all layers share: the number of positions, that of those in the cache before them, the
    tables of their rotation, and the threads."""

    count: int
    filled: int
    rotary: tuple[Tensor, Tensor]
    threads: int


class StreamingTransformer:
    """The decoder's transformer over a stream; the state is in an `AttentionCache`."""

    def __init__(self, stored: StoredMimi, precision: str) -> None:
        self._config = config = stored.config
        self._layers = [
            _Layer(stored, f"decoder_transformer.layers.{number}", precision)
            for number in range(config.num_hidden_layers)
        ]
        self._frequencies = rotary_frequencies(config)

    def new_cache(self) -> AttentionCache:
        config = self._config
        capacity = config.sliding_window + _SPARE
        shape = config.num_hidden_layers, 2, config.num_attention_heads, capacity, config.head_dim
        return AttentionCache(torch.full(shape, torch.nan))

    def __call__(self, x_TC: Tensor, cache: AttentionCache, threads: int) -> Tensor:
        """x [T, C] after all layers; T is at most the positions of 32 frames, in whole frames."""
        self._make_space(cache, len(x_TC))
        positions = torch.arange(cache.position, cache.position + len(x_TC))
        step = _Step(
            len(x_TC),
            cache.filled,
            rotary_tables(positions, self._frequencies),
            threads,
        )
        for layer, kv in zip(self._layers, cache.kv, strict=True):
            x_TC = layer(x_TC, kv, step)
        cache.filled += len(x_TC)
        cache.position += len(x_TC)
        return x_TC

    def _make_space(self, cache: AttentionCache, count: int) -> None:
        if cache.filled + count > cache.kv.shape[3]:
            kept = min(cache.filled, self._config.sliding_window - 1)
            last = cache.kv[..., cache.filled - kept : cache.filled, :].clone()
            cache.kv[..., :kept, :] = last
            cache.filled = kept


class _Layer:
    """x + attention(norm(x)), then x + mlp(norm(x)), each scaled by its layer scale."""

    def __init__(self, stored: StoredMimi, name: str, precision: str) -> None:
        config, read = stored.config, stored.read
        self._heads, self._window = config.num_attention_heads, config.sliding_window
        self._is_compiled = windows_kind() == "compiled"
        self._hidden, self._eps = (config.hidden_size,), config.norm_eps

        def linear(weight_OI: Tensor) -> WindowLinear:
            return WindowLinear(weight_OI.unsqueeze(1), None, precision)

        def norm(which: str) -> tuple[Tensor, Tensor]:
            return read(f"{name}.{which}_layernorm.weight"), read(f"{name}.{which}_layernorm.bias")

        def scaled(part: str, which: str) -> Tensor:
            scale_O = read(f"{name}.{part}_layer_scale.scale")
            return scale_O[:, None] * read(f"{name}.{part}.{which}.weight")

        parts = [read(f"{name}.self_attn.{part}_proj.weight") for part in "qkv"]
        self._qkv, self._out = linear(torch.cat(parts)), linear(scaled("self_attn", "o_proj"))
        self._fc1 = linear(read(f"{name}.mlp.fc1.weight"))
        self._fc2 = linear(scaled("mlp", "fc2"))
        self._norm1, self._norm2 = norm("input"), norm("post_attention")
        self._width = config.head_dim * self._heads

    def __call__(self, x_TC: Tensor, kv: Tensor, step: _Step) -> Tensor:
        x_TC = x_TC + self._attend(self._normed(x_TC, self._norm1), kv, step)
        inner = functional.gelu(self._fc1(self._normed(x_TC, self._norm2), step.threads))
        return x_TC + self._fc2(inner, step.threads)[:, : self._hidden[0]]

    def _normed(self, x_TC: Tensor, norm: tuple[Tensor, Tensor]) -> Tensor:
        normed = functional.layer_norm(x_TC, self._hidden, *norm, self._eps)
        return functional.pad(normed, (0, self._qkv.width - self._hidden[0]))

    def _attend(self, x_TP: Tensor, kv: Tensor, step: _Step) -> Tensor:
        qkv = self._qkv(x_TP, step.threads)[:, : 3 * self._width]
        qkv_3HTK = qkv.view(step.count, 3, self._heads, -1).permute(1, 2, 0, 3)
        qk_2HTK = rotate(qkv_3HTK[:2], *step.rotary)
        kv[0, :, step.filled : step.filled + step.count] = qk_2HTK[1]
        kv[1, :, step.filled : step.filled + step.count] = qkv_3HTK[2]
        mixed = self._mix if self._is_compiled else self._mix_with_torch
        return self._out(mixed(qk_2HTK[0], kv, step), step.threads)[:, : self._hidden[0]]

    def _mix(self, q_HTK: Tensor, kv: Tensor, step: _Step) -> Tensor:
        """What the heads read for each position [T, P]."""
        from dia_demo.kernels.windows import ATTENTION, attend_window

        out = q_HTK.new_zeros(step.count, self._out.width)
        q_HTK = (q_HTK * q_HTK.shape[2] ** -0.5).contiguous()
        scores, args = kv.new_empty(self._heads, kv.shape[2]), np.zeros(1, ATTENTION)
        values = {
            "rows": step.count, "heads": self._heads, "head_dim": q_HTK.shape[2],
            "window": self._window, "filled": step.filled, "capacity": kv.shape[2],
            "q": q_HTK.data_ptr(), "keys": kv[0].data_ptr(), "values": kv[1].data_ptr(),
            "scores": scores.data_ptr(), "out": out.data_ptr(), "out_width": out.shape[1],
        }  # fmt: skip
        for name, value in values.items():
            args[name] = value
        run_beside(attend_window, args, step.threads)
        return out

    def _mix_with_torch(self, q_HTK: Tensor, kv: Tensor, step: _Step) -> Tensor:
        end = step.filled + step.count
        keys, values = kv[:, :, :end]
        age_TS = torch.arange(step.filled, end)[:, None] - torch.arange(end)
        is_visible = (age_TS >= 0) & (age_TS < self._window)
        mixed_HTK = functional.scaled_dot_product_attention(
            q_HTK, keys, values, attn_mask=is_visible
        )
        mixed = mixed_HTK.transpose(0, 1).flatten(1)
        return functional.pad(mixed, (0, self._out.width - self._width))


def rotary_frequencies(config: MimiConfig) -> Tensor:
    """The angles [K / 2] by which one position is rotated."""
    exponents = torch.arange(0, config.head_dim, 2, dtype=torch.float32) / config.head_dim
    return 1.0 / config.rope_theta**exponents


def rotary_tables(positions_T: Tensor, frequencies: Tensor) -> tuple[Tensor, Tensor]:
    """Cosines and sines [T, K] of positions; the two halves of a head are rotated together."""
    angles = positions_T[:, None].float() * frequencies
    # In double, since torch computes the last of an odd number of floats by another formula.
    angles = torch.cat([angles, angles], dim=1).double()
    return angles.cos().float(), angles.sin().float()


def rotate(x: Tensor, cos_TK: Tensor, sin_TK: Tensor) -> Tensor:
    """x [..., T, K] rotated by its positions."""
    first, second = x.chunk(2, dim=-1)
    return x * cos_TK + torch.cat([-second, first], dim=-1) * sin_TK
