"""The parts of Dia's transformers: RMSNorm, rotary positions, attention, gated MLP.

Shape letters used in model/ and in engine/sampling.py:

    B  batch slots: the conditional and, with guidance, the unconditional branch of each row
    T  positions fed at once       S  positions attended to (text, or what is cached)
    D  model width                 H  query heads       G  key/value heads     K  head width
    F  MLP width                   C  audio channels    V  codes of a channel  R  rows

Dia's attention has no scale (1.0, not 1/sqrt(K)); norms and rotary positions are in float32, and
so is the residual stream, whatever the precision of the weights.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from dia_demo.machine.processor import multiplies_bfloat16


def activation_dtype(weight: Tensor) -> torch.dtype:
    """The dtype of the activations that are multiplied with a weight.

    It is the weight's, except for bfloat16 on a CPU without instructions for it: torch would
    multiply that in software, 20 to 500 times slower than float32.
    """
    if weight.dtype == torch.bfloat16 and weight.device.type == "cpu":
        return torch.bfloat16 if multiplies_bfloat16() else torch.float32
    return weight.dtype


class Linear(nn.Linear):
    """A linear without bias that multiplies in the precision of its input (see `activation_dtype`).

    Its weights come from a checkpoint, so they are not initialized: torch's random initialization
    would load its compiler (75 MB) for weights on meta.
    """

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__(inputs, outputs, bias=False)

    def reset_parameters(self) -> None:
        pass

    def forward(self, x: Tensor) -> Tensor:
        return functional.linear(x, self.weight.to(x.dtype))


class Embedding(nn.Embedding):
    """An embedding table that is not initialized: its rows come from a checkpoint."""

    def reset_parameters(self) -> None:
        pass


class RMSNorm(nn.Module):
    """Root-mean-square norm in float32; the result has the precision of the linears after it.

    Computed as the layer norm of (x, -x), whose mean is zero: on a CPU this is one fused kernel,
    while torch's rms_norm is seven. The two differ only in rounding (1e-7 of the result).
    """

    def __init__(self, width: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(width))
        self.eps = eps

    def forward(self, x_BTD: Tensor, dtype: torch.dtype) -> Tensor:
        both = torch.cat((x_BTD, -x_BTD), dim=-1)
        normed = functional.layer_norm(both, both.shape[-1:], self.weight.repeat(2), eps=self.eps)
        return normed[..., : x_BTD.shape[-1]].to(dtype)


class Rotary:
    """Cosines and sines of rotary positions, half-split, float32 [positions, K].

    stride: frames from one position to the next. The sines of the first half are negated, so that
    rotating is x * cos + swapped(x) * sin.
    """

    def __init__(
        self, head_dim: int, theta: float, positions: int, device: torch.device, stride: int = 1
    ) -> None:
        exponents = torch.arange(0, head_dim, 2, dtype=torch.float32) / head_dim
        frames = stride * torch.arange(positions, dtype=torch.float32)
        angles = frames[:, None] / theta**exponents
        self.cos = torch.cat((angles.cos(), angles.cos()), dim=-1).to(device)
        self.sin = torch.cat((-angles.sin(), angles.sin()), dim=-1).to(device)

    def at(self, positions_BT: Tensor) -> tuple[Tensor, Tensor]:
        """(cos, sin) [B, T, 1, K] for the given positions."""
        return self.cos[positions_BT].unsqueeze(2), self.sin[positions_BT].unsqueeze(2)


def rotate(x_BTHK: Tensor, rotation: tuple[Tensor, Tensor]) -> Tensor:
    """Rotate the first half of each head against the second, in float32; keeps the dtype."""
    cos, sin = rotation
    x = x_BTHK.float()
    swapped = x.roll(x.shape[-1] // 2, dims=-1)
    return (x * cos).addcmul_(swapped, sin).to(x_BTHK.dtype)


def attend(q_BTHK: Tensor, k_BGSK: Tensor, v_BGSK: Tensor, causal: bool = False) -> Tensor:
    """Attention of scale 1.0 over all S positions; each kv head serves H / G consecutive heads.

    Returns [B, T, H * K], computed in the precision of the queries. `causal` needs T == S (a
    prefill).
    """
    B, T, H, K = q_BTHK.shape
    k_BGSK, v_BGSK = k_BGSK.to(q_BTHK.dtype), v_BGSK.to(q_BTHK.dtype)
    G = k_BGSK.shape[1]
    if T == 1:
        # The H / G heads that share a kv head become queries of one: no key is copied.
        q = q_BTHK.view(B, G, H // G, K)
        out = functional.scaled_dot_product_attention(q, k_BGSK, v_BGSK, scale=1.0)
        return out.reshape(B, 1, H * K)
    out = functional.scaled_dot_product_attention(
        q_BTHK.transpose(1, 2), k_BGSK, v_BGSK, is_causal=causal, scale=1.0, enable_gqa=H != G
    )
    return out.transpose(1, 2).reshape(B, T, H * K)


class SelfAttention(nn.Module):
    """Grouped-query self-attention with rotary positions; q, k and v are one linear."""

    def __init__(self, width: int, heads: int, kv_heads: int, head_dim: int) -> None:
        super().__init__()
        self.heads, self.kv_heads, self.head_dim = heads, kv_heads, head_dim
        self.qkv_proj = Linear(width, (heads + 2 * kv_heads) * head_dim)
        self.o_proj = Linear(heads * head_dim, width)

    def project(self, x_BTD: Tensor, rotation) -> tuple[Tensor, Tensor, Tensor]:
        """q [B, T, H, K], k [B, T, G, K], v [B, T, G, K]; q and k rotated to their positions."""
        B, T, _ = x_BTD.shape
        qkv = self.qkv_proj(x_BTD).view(B, T, -1, self.head_dim)
        rotated = rotate(qkv[:, :, : self.heads + self.kv_heads], rotation)
        q, k = rotated.split((self.heads, self.kv_heads), dim=2)
        return q, k, qkv[:, :, self.heads + self.kv_heads :]


class CrossAttention(nn.Module):
    """Attention from audio to the encoded text; keys and values are computed once per row."""

    def __init__(self, width: int, text_width: int, heads: int, kv_heads: int, head_dim: int):
        super().__init__()
        self.heads, self.kv_heads, self.head_dim = heads, kv_heads, head_dim
        self.q_proj = Linear(width, heads * head_dim)
        self.k_proj = Linear(text_width, kv_heads * head_dim)
        self.v_proj = Linear(text_width, kv_heads * head_dim)
        self.o_proj = Linear(heads * head_dim, width)

    def queries(self, x_BTD: Tensor) -> Tensor:
        """q [B, T, H, K], not rotated: the encoder's states include the text's positions."""
        B, T, _ = x_BTD.shape
        return self.q_proj(x_BTD).view(B, T, self.heads, self.head_dim)

    def keys_values(self, text_BSD: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """k and v [B, G, S, K] of the encoded text, in the dtype of the caches."""
        B, S, _ = text_BSD.shape
        shape = (B, S, self.kv_heads, self.head_dim)
        k = self.k_proj(text_BSD).to(dtype).view(shape).transpose(1, 2).contiguous()
        v = self.v_proj(text_BSD).to(dtype).view(shape).transpose(1, 2).contiguous()
        return k, v


class GatedMLP(nn.Module):
    """down(silu(gate) * up); gate and up are one linear, gate first."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.gate_up_proj = Linear(width, 2 * hidden)
        self.down_proj = Linear(hidden, width)

    def forward(self, x_BTD: Tensor) -> Tensor:
        gate, up = self.gate_up_proj(x_BTD).chunk(2, dim=-1)
        return self.down_proj(functional.silu(gate) * up)
