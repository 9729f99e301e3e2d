"""Mimi's transformers: layers of attention to the last positions, and of an MLP.

A position is rotated by its number in the stream (RoPE, https://arxiv.org/abs/2104.09864) and
attends to itself and to those of the window before it.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from dia_demo.codec.mimi.config import STRIDE, MimiConfig
from dia_demo.codec.mimi.weights import StoredMimi, layer_linears
from dia_demo.model.cpu_model import torch_threads

# Positions beyond the window that the cache has space for, before the window moves to its start.
_SPARE = 32 * STRIDE


@dataclass
class AttentionCache:
    """Keys and values [layers, 2, heads, capacity, K] of a stream's last positions.

    filled: so many of them are set; position: the number of the stream's next position. Slots that
    are not set are NaN, so that reading one is noticed.
    """

    kv: Tensor
    window: int
    filled: int = 0
    position: int = 0

    @staticmethod
    def capacity(config: MimiConfig) -> int:
        """How many positions there is space for."""
        return config.sliding_window + _SPARE

    @classmethod
    def from_config(cls, config: MimiConfig) -> AttentionCache:
        """That of a stream at its beginning."""
        heads = config.num_attention_heads, cls.capacity(config), config.head_dim
        shape = config.num_hidden_layers, 2, *heads
        with torch_threads(1):  # Others would wait actively for some time afterwards.
            return cls(torch.full(shape, torch.nan), config.sliding_window)

    def make_space(self, count: int) -> None:
        """For so many positions, at most those of 32 frames: the last of the window move to the
        start."""
        if self.filled + count > self.kv.shape[3]:
            kept = min(self.filled, self.window - 1)
            last = self.kv[..., self.filled - kept : self.filled, :].clone()
            self.kv[..., :kept, :] = last
            self.filled = kept

    def advance(self, count: int) -> None:
        """So many positions were set."""
        self.filled += count
        self.position += count


class StreamingTransformer:
    """The decoder's transformer over a stream, by torch; the state is in an `AttentionCache`."""

    def __init__(self, stored: StoredMimi, precision: str) -> None:
        self._layers = [
            _Layer(stored, f"decoder_transformer.layers.{number}", precision)
            for number in range(stored.config.num_hidden_layers)
        ]
        self._frequencies = rotary_frequencies(stored.config)

    def __call__(self, x_TC: Tensor, cache: AttentionCache) -> Tensor:
        """x [T, C] after all layers."""
        cache.make_space(len(x_TC))
        positions = torch.arange(cache.position, cache.position + len(x_TC))
        rotary = rotary_tables(positions, self._frequencies)
        for layer, kv in zip(self._layers, cache.kv, strict=True):
            x_TC = layer(x_TC, kv, cache.filled, rotary)
        cache.advance(len(x_TC))
        return x_TC


class _Layer:
    """x + attention(norm(x)), then x + mlp(norm(x)), each scaled by its layer scale."""

    def __init__(self, stored: StoredMimi, name: str, precision: str) -> None:
        config, read = stored.config, stored.read
        self._heads, self._window = config.num_attention_heads, config.sliding_window
        self._hidden, self._eps = (config.hidden_size,), config.norm_eps
        self._weights = {
            part: round_weight(weight_OI, precision).t()
            for part, weight_OI in layer_linears(stored, name).items()
        }
        self._norms = {
            norm: (read(f"{name}.{norm}_layernorm.weight"), read(f"{name}.{norm}_layernorm.bias"))
            for norm in ("input", "post_attention")
        }

    def __call__(
        self, x_TC: Tensor, kv: Tensor, filled: int, rotary: tuple[Tensor, Tensor]
    ) -> Tensor:
        """filled: the positions in the cache before these."""
        x_TC = x_TC + self._attend(self._normalize(x_TC, "input"), kv, filled, rotary)
        inner = functional.gelu(self._normalize(x_TC, "post_attention") @ self._weights["fc1"])
        return x_TC + inner @ self._weights["fc2"]

    def _normalize(self, x_TC: Tensor, norm: str) -> Tensor:
        return functional.layer_norm(x_TC, self._hidden, *self._norms[norm], self._eps)

    def _attend(
        self, x_TC: Tensor, kv: Tensor, filled: int, rotary: tuple[Tensor, Tensor]
    ) -> Tensor:
        qkv = x_TC @ self._weights["qkv"]
        qkv_3HTK = qkv.view(len(x_TC), 3, self._heads, -1).permute(1, 2, 0, 3)
        qk_2HTK = rotate(qkv_3HTK[:2], *rotary)
        end = filled + len(x_TC)
        kv[0, :, filled:end] = qk_2HTK[1]
        kv[1, :, filled:end] = qkv_3HTK[2]
        keys, values = kv[:, :, :end]
        age_TS = torch.arange(filled, end)[:, None] - torch.arange(end)
        is_visible = (age_TS >= 0) & (age_TS < self._window)
        mixed_HTK = functional.scaled_dot_product_attention(
            qk_2HTK[0], keys, values, attn_mask=is_visible
        )
        return mixed_HTK.transpose(0, 1).flatten(1) @ self._weights["out"]


def round_weight(weight: Tensor, precision: str) -> Tensor:
    """A weight as it is stored in a precision, in float32."""
    return weight.bfloat16().float() if precision == "bfloat16" else weight


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
