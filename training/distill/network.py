"""A differentiable forward pass of a Dia over whole takes, padded to a batch.

The engine's own pass (dia_demo/model/dia.py) advances caches and keeps no gradients. This one uses
the same modules for their weights. Shape letters are explained in dia_demo/model/layers.py.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from dia_demo.model.dia import Dia
from dia_demo.model.layers import RMSNorm, SelfAttention
from dia_demo.model.layers import rotate as rotate_heads

# Queries at a time in causal attention: less of the triangle above the diagonal is computed.
CHUNK = 160
HIDDEN = -1e9

# Keys and values [B, G, S, K] of a decoder layer's text.
TextKeys = list[tuple[Tensor, Tensor]]


def norm(module: RMSNorm, x: Tensor) -> Tensor:
    return functional.rms_norm(x.float(), (x.shape[-1],), module.weight.float(), module.eps)


def attend(q_BHTK: Tensor, k_BGSK: Tensor, v_BGSK: Tensor, bias: Tensor | None) -> Tensor:
    """Attention of scale 1 as [B, T, H * K]. bias: added to the scores, HIDDEN where a position may
    not look. Written out for the CPU, where the backward pass of torch's own takes three times as
    long."""
    if q_BHTK.device.type != "cpu":
        return attend_fused(q_BHTK, k_BGSK, v_BGSK, bias)
    B, H, T, K = q_BHTK.shape
    G = k_BGSK.shape[1]
    # The heads that share a kv head become more queries of it: no key is copied.
    q = q_BHTK.reshape(B, G, H // G * T, K)
    scores = q @ k_BGSK.to(q.dtype).mT
    if bias is not None:
        scores = (scores.view(B, G, H // G, T, -1) + bias.unsqueeze(-3)).view(scores.shape)
    weights = scores.float().softmax(-1).to(v_BGSK.dtype)
    return (weights @ v_BGSK).view(B, H, T, K).transpose(1, 2).flatten(2)


def attend_fused(
    q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None = None, causal: bool = False
) -> Tensor:
    """`attend`, or causal attention, by torch's own function."""
    mixed = functional.scaled_dot_product_attention(
        q, k, v, bias, is_causal=causal, scale=1.0, enable_gqa=True
    )
    return mixed.transpose(1, 2).flatten(2)


def attend_back(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Causal attention. On the CPU every CHUNK of queries meets the keys up to its own end only."""
    if q.device.type != "cpu":
        return attend_fused(q, k, v, causal=True)
    out = []
    for start in range(0, q.shape[2], CHUNK):
        end = min(start + CHUNK, q.shape[2])
        future = torch.full((end - start, end), HIDDEN, device=q.device).triu(start + 1)
        out.append(attend(q[:, :, start:end], k[:, :, :end], v[:, :, :end], future))
    return torch.cat(out, 1)


def project(attention: SelfAttention, x: Tensor, rotation) -> Sequence[Tensor]:
    """Rotated queries [B, H, T, K], rotated keys and values [B, G, T, K]."""
    heads, kv_heads = attention.heads, attention.kv_heads
    qkv = attention.qkv_proj(x).unflatten(-1, (-1, attention.head_dim))
    rotated = rotate_heads(qkv[:, :, : heads + kv_heads], rotation)
    parts = *rotated.split((heads, kv_heads), dim=2), qkv[:, :, heads + kv_heads :]
    return [part.transpose(1, 2) for part in parts]


def read_texts(dia: Dia, text_BS: Tensor, mask_BS: Tensor) -> TextKeys:
    """Each decoder layer's keys and values of a batch of texts; mask: True where there is text."""
    bias = hidden_where(~mask_BS)
    rotation = dia.rotaries[0].at(torch.arange(text_BS.shape[1], device=text_BS.device)[None])
    x = dia.encoder.embedding(text_BS).float()
    for layer in dia.encoder.layers:
        q, k, v = project(layer.self_attention, norm(layer.pre_sa_norm, x), rotation)
        x = x + layer.self_attention.o_proj(attend(q, k, v, bias))
        x = x + layer.mlp(norm(layer.post_sa_norm, x))
    states = norm(dia.encoder.norm, x)
    crosses = [layer.cross_attention for layer in dia.decoder.layers]
    return [
        (_split(cross.k_proj(states), cross.head_dim), _split(cross.v_proj(states), cross.head_dim))
        for cross in crosses
    ]


def hidden_where(mask_BS: Tensor) -> Tensor:
    """A bias [B, 1, 1, S] that hides the positions where the mask is True."""
    return torch.zeros(mask_BS.shape, device=mask_BS.device).masked_fill(mask_BS, HIDDEN)[
        :, None, None
    ]


def _split(x: Tensor, head_dim: int) -> Tensor:
    return x.unflatten(-1, (-1, head_dim)).transpose(1, 2)


def decode(
    dia: Dia,
    codes_BTC: Tensor,
    texts: TextKeys,
    bias: Tensor | None,
    scale_vectors_BD: Tensor | None = None,
) -> Tensor:
    """Logits [B, T, C, V] after the codes of each position.

    bias: hides the padding of the texts. scale_vectors: of each take's CFG scale, for a student.
    With several frames a step, every step reads those that the engine's steps read.
    """
    decoder, frames = dia.decoder, dia.config.frames_per_step
    length = codes_BTC.shape[1]
    fed = _pad_codes(dia, codes_BTC)
    x = last_states(dia, codes_BTC, texts, bias, scale_vectors_BD)
    logits = [first_logits(dia, x)]
    for number, block in enumerate(decoder.next_frames, start=1):
        x = x + embed(block.embeddings, fed[:, frames - 1 + number :: frames][:, : x.shape[1]])
        x = x + block.mlp(norm(block.pre_mlp_norm, x))
        logits.append(_by_channel(dia, _in_float32(block.logits_dense, norm(block.norm, x))))
    return torch.stack(logits, 2).flatten(1, 2)[:, :length]


def last_states(
    dia: Dia,
    codes_BTC: Tensor,
    texts: TextKeys,
    bias: Tensor | None,
    scale_vectors_BD: Tensor | None = None,
) -> Tensor:
    """What the decoder's last layer gives for each step, [B, steps, D]; the same arguments as
    `decode`."""
    decoder, frames = dia.decoder, dia.config.frames_per_step
    steps = dia.config.steps_within(codes_BTC.shape[1])
    fed = _pad_codes(dia, codes_BTC)[:, : steps * frames]
    x = embed(decoder.embeddings, fed.reshape(len(fed), steps, -1))
    if scale_vectors_BD is not None:
        x = x + scale_vectors_BD[:, None]
    rotation = dia.rotaries[1].at(torch.arange(steps, device=x.device)[None])
    for layer, text in zip(decoder.layers, texts, strict=True):
        q, k, v = project(layer.self_attention, norm(layer.pre_sa_norm, x), rotation)
        x = x + layer.self_attention.o_proj(attend_back(q, k, v))
        cross = layer.cross_attention
        q = _split(cross.q_proj(norm(layer.pre_ca_norm, x)), cross.head_dim)
        x = x + cross.o_proj(attend(q, *text, bias))
        x = x + layer.mlp(norm(layer.pre_mlp_norm, x))
    return x


def _pad_codes(dia: Dia, codes_BTC: Tensor) -> Tensor:
    """The codes with what the first step reads before them, BOS, and the last may predict beyond
    them, PAD."""
    config, frames = dia.decoder.config, dia.config.frames_per_step
    fed = functional.pad(codes_BTC, (0, 0, frames - 1, 0), value=config.bos)
    return functional.pad(fed, (0, 0, 0, -codes_BTC.shape[1] % frames), value=config.pad)


def first_logits(dia: Dia, x_BTD: Tensor) -> Tensor:
    """Logits [B, T, C, V] of each step's first frame, from `last_states`."""
    decoder = dia.decoder
    return _by_channel(dia, _in_float32(decoder.logits_dense, norm(decoder.norm, x_BTD)))


def _by_channel(dia: Dia, logits: Tensor) -> Tensor:
    config = dia.decoder.config
    return logits.unflatten(-1, (config.num_channels, config.vocab_size)).float()


def _in_float32(head: nn.Linear, x: Tensor) -> Tensor:
    """Logits, not in bfloat16: its steps of a large logit are several tenths at a low temperature,
    and teacher and student would differ by them."""
    with torch.autocast(x.device.type, enabled=False):
        return functional.linear(x.float(), head.weight.float())


def embed(table: nn.Module, codes_BTC: Tensor) -> Tensor:
    """The sum of the codes' embeddings, each from its own part of the table, [B, T, D]."""
    count = codes_BTC.shape[-1]
    part = len(table.weight) // count
    return table(codes_BTC + part * torch.arange(count, device=codes_BTC.device)).sum(2).float()


def scale_vectors(dia: Dia, cfg_scales: Sequence[float]) -> Tensor:
    """The vector of each CFG scale, [B, D]."""
    return torch.stack([dia.decoder.scale_vector(scale) for scale in cfg_scales])
