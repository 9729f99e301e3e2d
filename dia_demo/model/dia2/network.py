"""Dia2's two transformers in torch, with upstream's names of the modules: the plain reference.

Only q, k and v of the temporal transformer are one linear (see checkpoint.py).

Shape letters are those of model/layers.py; A counts actions, N depth stages. Attention is not
scaled. Keys and values of the depth transformer are those of the stages of one frame.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from dia_demo.model.dia2.config import DepthConfig, Dia2Config
from dia_demo.model.layers import Embedding, Linear, RMSNorm, Rotary, attend, rotate

# Keys and values [B, G, S, K] of one layer so far.
Pair = tuple[Tensor, Tensor]


class TextEmbedding(nn.Module):
    """Two text streams as one vector; the pad of the second adds nothing."""

    def __init__(self, config: Dia2Config) -> None:
        super().__init__()
        width = config.decoder.hidden_size
        self.embedding = Embedding(config.text_vocab, config.text_width)
        self.main_proj = Linear(config.text_width, width)
        self.second_proj = Linear(config.text_width, width)
        self._pad = config.text_ids.pad

    def forward(self, text_BT2: Tensor) -> Tensor:
        main, second = self.embedding(text_BT2).unbind(2)
        is_pad = text_BT2[..., 1:] == self._pad
        return self.main_proj(main) + self.second_proj(second).masked_fill(is_pad, 0)


class Mlp(nn.Module):
    """wo(silu(gate) * up); `wi` has gate first."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.wi, self.wo = Linear(width, 2 * hidden), Linear(hidden, width)

    def forward(self, x_BTD: Tensor) -> Tensor:
        gate, up = self.wi(x_BTD).chunk(2, dim=-1)
        return self.wo(functional.silu(gate) * up)


class TemporalAttention(nn.Module):
    """Grouped-query attention over the steps so far; q, k and v are one linear."""

    def __init__(self, config: Dia2Config) -> None:
        super().__init__()
        d = config.decoder
        self.heads, self.kv_heads, self.head_dim = d.num_heads, d.num_kv_heads, d.head_dim
        self.qkv_proj = Linear(d.hidden_size, (d.num_heads + 2 * d.num_kv_heads) * d.head_dim)
        self.o_proj = Linear(d.num_heads * d.head_dim, d.hidden_size)
        self.q_norm, self.k_norm = (RMSNorm(d.head_dim, d.norm_eps) for _ in range(2))

    def project(self, x_BTD: Tensor, rotation: Pair) -> tuple[Tensor, Tensor, Tensor]:
        """q [B, T, H, K], and k and v [B, G, T, K]."""
        batch, steps, _ = x_BTD.shape
        qkv = self.qkv_proj(x_BTD).view(batch, steps, -1, self.head_dim)
        q, k, v = qkv.split((self.heads, self.kv_heads, self.kv_heads), dim=2)
        q = rotate(self.q_norm(q, q.dtype), rotation)
        k = rotate(self.k_norm(k, k.dtype), rotation)
        return q, k.transpose(1, 2), v.transpose(1, 2)


class TemporalLayer(nn.Module):
    """Attention and MLP, each after a norm and added to the residual."""

    def __init__(self, config: Dia2Config) -> None:
        super().__init__()
        d = config.decoder
        self.pre_norm = RMSNorm(d.hidden_size, d.norm_eps)
        self.attn = TemporalAttention(config)
        self.post_norm = RMSNorm(d.hidden_size, d.norm_eps)
        self.mlp = Mlp(d.hidden_size, d.intermediate_size)


class Temporal(nn.Module):
    """The transformer over time."""

    def __init__(self, config: Dia2Config) -> None:
        super().__init__()
        d = config.decoder
        self.text_embed = TextEmbedding(config)
        self.audio_embeds = nn.ModuleList(
            Embedding(d.vocab_size, d.hidden_size) for _ in range(d.num_channels)
        )
        layers = (TemporalLayer(config) for _ in range(d.num_layers))
        self.layers = cast(Sequence[TemporalLayer], nn.ModuleList(layers))
        self.norm = RMSNorm(d.hidden_size, d.norm_eps)
        self.action_head = Linear(d.hidden_size, config.actions)
        self.cb0_head = Linear(d.hidden_size, d.vocab_size)
        self.rotary = _rotary(d.head_dim, d.rope_theta, d.max_positions)

    def embed(self, text_BT2: Tensor, codes_BTC: Tensor) -> Tensor:
        """The input [B, T, D] of the layers."""
        x = self.text_embed(text_BT2)
        for channel, table in enumerate(self.audio_embeds):
            x = x + table(codes_BTC[..., channel])
        return x


class DepthAttention(nn.Module):
    """Attention over the stages so far, with a set of weights for groups of stages."""

    def __init__(self, depth: DepthConfig, eps: float) -> None:
        super().__init__()
        width, inner = depth.hidden_size, depth.num_heads * depth.head_dim
        self.heads, self.head_dim = depth.num_heads, depth.head_dim
        self.in_proj = nn.ModuleDict({str(i): Linear(width, 3 * inner) for i in depth.sets})
        self.out_proj = nn.ModuleDict({str(i): Linear(inner, width) for i in depth.sets})
        self.q_norm, self.k_norm = (RMSNorm(depth.head_dim, eps) for _ in range(2))

    def forward(
        self, x_B1D: Tensor, set_name: str, rotation: Pair | None, past: Pair | None
    ) -> tuple[Tensor, Pair]:
        """Its output [B, 1, D], and the keys and values of all stages so far."""
        stacked = self.in_proj[set_name](x_B1D)
        q, k, v = stacked.view(len(x_B1D), 1, 3, self.heads, self.head_dim).unbind(2)
        q, k = self.q_norm(q, q.dtype), self.k_norm(k, k.dtype)
        if rotation is not None:
            q, k = rotate(q, rotation), rotate(k, rotation)
        k, v = k.transpose(1, 2), v.transpose(1, 2)
        if past is not None:
            k, v = torch.cat((past[0], k), dim=2), torch.cat((past[1], v), dim=2)
        return self.out_proj[set_name](attend(q, k, v)), (k, v)


class DepthLayer(nn.Module):
    """As a layer of the temporal transformer; all stages share its MLP."""

    def __init__(self, depth: DepthConfig, eps: float) -> None:
        super().__init__()
        self.pre_norm = RMSNorm(depth.hidden_size, eps)
        self.self_attention = DepthAttention(depth, eps)
        self.post_norm = RMSNorm(depth.hidden_size, eps)
        self.mlp = Mlp(depth.hidden_size, depth.intermediate_size)


class Depth(nn.Module):
    """The depth transformer: stage s draws codebook s + 1 of a frame."""

    def __init__(self, config: Dia2Config) -> None:
        super().__init__()
        depth, d = config.depth, config.decoder
        eps, width = d.norm_eps, depth.hidden_size
        self.audio_embeds = nn.ModuleList(
            Embedding(d.vocab_size, width) for _ in range(config.stages)
        )
        self.depformer_in = nn.ModuleDict(
            {str(i): Linear(d.hidden_size, width) for i in depth.sets}
        )
        layers = (DepthLayer(depth, eps) for _ in range(depth.num_layers))
        self.layers = cast(Sequence[DepthLayer], nn.ModuleList(layers))
        self.norm = RMSNorm(width, eps)
        self.logits = nn.ModuleList(Linear(width, d.vocab_size) for _ in range(config.stages))
        self._schedule, self._num_codes = depth.schedule, config.num_codes
        self.rotary = None
        if depth.apply_rope:
            self.rotary = _rotary(depth.head_dim, d.rope_theta, config.stages)

    def stage(
        self, number: int, codes_B: Tensor, state_BD: Tensor, past: list[Pair | None]
    ) -> Tensor:
        """Logits [B, codes] of a stage, for the codes of the codebook before it. `past` has the
        keys and values of each layer, which grow by one."""
        name = str(self._schedule[number])
        x = self.depformer_in[name](state_BD) + self.audio_embeds[number](codes_B)
        x = x[:, None]
        rotation = None
        if self.rotary is not None:
            rotation = self.rotary.at(torch.full((1, 1), number))
        for index, layer in enumerate(self.layers):
            normed = layer.pre_norm(x, x.dtype)
            out, past[index] = layer.self_attention(normed, name, rotation, past[index])
            x = x + out
            x = x + layer.mlp(layer.post_norm(x, x.dtype))
        return self.logits[number](self.norm(x, x.dtype))[:, 0, : self._num_codes]


class Dia2(nn.Module):
    """Both transformers, whose state dict is that of a checkpoint."""

    def __init__(self, config: Dia2Config) -> None:
        super().__init__()
        self.config = config
        self.transformer = Temporal(config)
        self.depformer = Depth(config)


def _rotary(head_dim: int, theta: float, positions: int) -> Rotary:
    """Tables that have values even while the modules are built on meta."""
    cpu = torch.device("cpu")
    with cpu:
        return Rotary(head_dim, theta, positions, cpu)
