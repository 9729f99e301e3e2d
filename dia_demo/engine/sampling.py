"""From logits to codes, as Dia-1.6B-0626 does it: pure functions over rows.

The steps and their order are those of nari-labs/dia (June 2025) and of transformers' Dia logits
processors: guidance decides which codes may be drawn, the conditional logits how likely they are.
Shape letters are explained in model/layers.py; N counts the candidates a channel keeps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from dia_demo.config import GenerationParams

NEVER = -torch.inf


@dataclass(frozen=True)
class Sampler:
    """The parameters of R rows as tensors [R, 1, 1], made once for as long as the rows stay."""

    temperature: Tensor
    cfg_scale: Tensor
    top_p: Tensor
    top_k: Tensor
    eos: int
    candidates: int
    all_greedy: bool

    @classmethod
    def of(cls, params: Sequence[GenerationParams], eos: int, vocab_size: int) -> Sampler:
        def column(name: str) -> Tensor:
            return torch.tensor([float(getattr(one, name)) for one in params]).view(-1, 1, 1)

        return cls(
            temperature=column("temperature"),
            cfg_scale=column("cfg_scale"),
            top_p=column("top_p"),
            top_k=column("top_k"),
            eos=eos,
            candidates=min(max(one.top_k for one in params), vocab_size),
            all_greedy=all(one.temperature == 0 for one in params),
        )

    def __call__(self, cond_RCV: Tensor, uncond_RCV: Tensor, uniforms_RC: Tensor) -> Tensor:
        """The next codes [R, C].

        cond and uncond are float32 logits (uncond counts only where cfg_scale is not 0);
        uniforms lie in [0, 1). Rows of temperature 0 take the most likely code.
        """
        allowed = keep_guided(cond_RCV, uncond_RCV, self.cfg_scale, self.top_k, self.candidates)
        allowed = apply_eos_rule(forbid_specials(allowed, self.eos), self.eos)
        greedy = allowed.argmax(dim=-1)
        if self.all_greedy:
            return greedy
        codes, probabilities = nucleus(
            allowed, self.temperature, self.top_k, self.top_p, self.candidates
        )
        drawn = draw(codes, probabilities, uniforms_RC)
        # A small top k may keep forbidden codes only: like the references' argmax, take code 0.
        none_left = allowed.amax(dim=-1) == NEVER
        return torch.where((self.temperature.squeeze(-1) == 0) | none_left, greedy, drawn)


def keep_guided(
    cond_RCV: Tensor, uncond_RCV: Tensor, cfg_scale: Tensor, top_k: Tensor, candidates: int
) -> Tensor:
    """cond where guided = cond + cfg_scale * (cond - uncond) is among its top k, else -inf.

    Rows with cfg_scale 0 keep all.
    """
    guided = cond_RCV + cfg_scale * (cond_RCV - uncond_RCV)
    best = guided.topk(candidates, dim=-1).indices
    ranked = torch.arange(candidates) < top_k
    keep = torch.zeros_like(cond_RCV, dtype=torch.bool).scatter_(-1, best, ranked.expand_as(best))
    return cond_RCV.masked_fill(~(keep | (cfg_scale == 0)), NEVER)


def forbid_specials(logits_RCV: Tensor, eos: int) -> Tensor:
    """-inf for what is no audio: above EOS on channel 0, from EOS on the others. In place."""
    logits_RCV[:, 0, eos + 1 :] = NEVER
    logits_RCV[:, 1:, eos:] = NEVER
    return logits_RCV


def apply_eos_rule(logits_RCV: Tensor, eos: int) -> Tensor:
    """On channel 0 EOS is the only choice where it is the likeliest, and none elsewhere. In place.

    The other channels never say EOS by themselves: the row's end countdown says it for them.
    """
    first = logits_RCV[:, 0]
    is_end = first.argmax(dim=-1, keepdim=True) == eos
    is_eos = torch.arange(first.shape[-1]) == eos
    first.masked_fill_(is_end != is_eos, NEVER)
    return logits_RCV


def nucleus(
    logits_RCV: Tensor, temperature: Tensor, top_k: Tensor, top_p: Tensor, candidates: int
) -> tuple[Tensor, Tensor]:
    """The codes that may be drawn and their probabilities, both [R, C, N], likeliest first.

    Top k by the logits, then the smallest set whose probability reaches top_p (the code that
    crosses it stays); the rest have probability 0. Greedy rows are scaled by 1 instead of 0.
    """
    best, codes = logits_RCV.topk(candidates, dim=-1)
    best = best.masked_fill(torch.arange(candidates) >= top_k, NEVER)
    probabilities = (best / torch.where(temperature == 0, 1.0, temperature)).softmax(dim=-1)
    before = probabilities.cumsum(dim=-1) - probabilities
    kept = (before < top_p) | (top_p >= 1)
    kept[..., 0] = True
    probabilities = probabilities * kept
    return codes, probabilities / probabilities.sum(dim=-1, keepdim=True)


def draw(codes_RCN: Tensor, probabilities_RCN: Tensor, uniforms_RC: Tensor) -> Tensor:
    """Codes [R, C] by inverting the cumulative probabilities at the row's own uniforms.

    In float64, so that a uniform just below 1 cannot round into a code of probability 0.
    """
    cumulative = probabilities_RCN.double().cumsum(dim=-1)
    reached = cumulative <= uniforms_RC.double().unsqueeze(-1) * cumulative[..., -1:]
    place = reached.sum(dim=-1, keepdim=True).clamp_(max=codes_RCN.shape[-1] - 1)
    return codes_RCN.gather(-1, place).squeeze(-1)
