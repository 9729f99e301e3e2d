"""The distribution that guided sampling draws from, as engine/sampling.py defines it, and the KL
divergence of a student from it. Shape letters are explained in dia_demo/model/layers.py."""

from __future__ import annotations

import torch
from torch import Tensor

from dia_demo.config import DecoderConfig


def guided_distribution(
    cond: Tensor, uncond: Tensor, scales_B: Tensor, top_k: int, decoder: DecoderConfig
) -> Tensor:
    """log p [B, T, C, V] of the teacher at temperature 1, -inf for codes that it never draws.

    Conditional logits, kept where the guided ones are among the top k; of these the codes that are
    audio, and EOS on channel 0. Where none is left, the conditional logits of the audio codes.
    """
    scales = scales_B.view(-1, 1, 1, 1)
    guided = cond + scales * (cond - uncond)
    limits = torch.full((decoder.num_channels, 1), decoder.eos, device=cond.device)
    limits[0] += 1
    is_code = torch.arange(decoder.vocab_size, device=cond.device) < limits
    # Without guidance the top k are those of the codes that may be drawn.
    guided = guided.masked_fill((scales == 0) & ~is_code, -torch.inf)
    drawable = torch.zeros_like(guided, dtype=torch.bool)
    drawable.scatter_(-1, guided.topk(min(top_k, decoder.vocab_size), dim=-1).indices, True)
    drawable &= is_code
    drawable = torch.where(drawable.any(-1, keepdim=True), drawable, is_code)
    return cond.masked_fill(~drawable, -torch.inf).log_softmax(-1)


def divergence(log_p: Tensor, student: Tensor, temperature: float = 1.0) -> Tensor:
    """KL(p || student) in nats, [B, T, C], both at this temperature; student: logits."""
    if temperature != 1:
        log_p = (log_p / temperature).log_softmax(-1)
    log_q = (student / temperature).log_softmax(-1)
    never = log_p == -torch.inf
    difference = torch.where(never, 0.0, log_p - log_q)
    return (log_p.exp() * difference).sum(-1)


def drawn_mask(codes_BTC: Tensor, decoder: DecoderConfig) -> Tensor:
    """Where a step's codes were drawn rather than set: [B, T - 1, C], for the codes fed next.

    BOS before a channel's first code, and EOS or PAD after its last, are set by the delay pattern,
    but for the EOS of channel 0, which is drawn.
    """
    drawn = codes_BTC[:, 1:]
    mask = drawn < decoder.eos
    mask[..., 0] |= drawn[..., 0] == decoder.eos
    return mask
