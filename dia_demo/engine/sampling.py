"""From logits to codes, as Dia-1.6B-0626 does it: pure functions over rows.

The steps and their order are those of nari-labs/dia (June 2025) and of transformers' Dia logits
processors: guidance decides which codes may be drawn, the conditional logits how likely they are.
Shape letters are explained in model/layers.py; N counts the candidates a channel keeps.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from dia_demo.config import DecoderConfig, GenerationParams

NEVER = -torch.inf


@dataclass(frozen=True)
class Sampler:
    """The parameters of R rows as tensors [R, 1, 1], made once for as long as the rows stay.

    A step draws between two passes over all weights, with none of this in any cache: it is written
    for few operations, on the candidates rather than on all codes.
    """

    temperature: Tensor
    cfg_scale: Tensor
    top_p: Tensor
    greedy: Tensor  # [R, 1]
    limits: Tensor  # [1, C, 1]: codes from here on are no audio
    too_many: Tensor | None  # [R, 1, N]: candidates beyond a row's top k; None: none are
    guided: Tensor  # [R, C, V]: room for what guidance makes of the logits
    eos: int
    candidates: int
    all_greedy: bool
    any_unguided: bool

    @classmethod
    def of(cls, params: Sequence[GenerationParams], decoder: DecoderConfig) -> Sampler:
        def column(values: Iterable[float]) -> Tensor:
            return torch.tensor([float(value) for value in values]).view(-1, 1, 1)

        eos, channels = decoder.eos, decoder.num_channels
        top_k = column(one.top_k for one in params)
        candidates = min(int(top_k.max()), decoder.vocab_size)
        too_many = torch.arange(candidates) >= top_k
        greedy = column(one.temperature for one in params) == 0
        return cls(
            temperature=column(one.temperature or 1.0 for one in params),
            cfg_scale=column(one.cfg_scale for one in params),
            # The code that crosses top p stays: from 1 on all do, whatever rounding says.
            top_p=column(one.top_p if one.top_p < 1 else 2.0 for one in params),
            greedy=greedy.view(-1, 1),
            limits=torch.tensor([eos + 1] + [eos] * (channels - 1)).view(1, -1, 1),
            too_many=too_many if too_many.any() else None,
            guided=torch.empty(len(params), channels, decoder.vocab_size),
            eos=eos,
            candidates=candidates,
            all_greedy=bool(greedy.all()),
            any_unguided=any(one.cfg_scale == 0 for one in params),
        )

    def __call__(self, cond_RCV: Tensor, uncond_RCV: Tensor, uniforms_RC: Tensor) -> Tensor:
        """The next codes [R, C].

        cond and uncond are float32 logits (uncond counts only where cfg_scale is not 0);
        uniforms lie in [0, 1). Rows of temperature 0 take the most likely code.
        """
        codes, logits = self.candidates_of(cond_RCV, uncond_RCV)
        first = codes[..., 0]
        # A small top k may keep forbidden codes only: like the references' argmax, take code 0.
        likeliest = first.masked_fill(logits[..., 0] == NEVER, 0)
        if self.all_greedy:
            return likeliest
        drawn = draw(codes, self.probabilities(codes, logits), uniforms_RC)
        # EOS is the only choice where it is the likeliest.
        is_first = self.greedy | (first == self.eos) | (likeliest != first)
        return torch.where(is_first, likeliest, drawn)

    def candidates_of(self, cond_RCV: Tensor, uncond_RCV: Tensor) -> tuple[Tensor, Tensor]:
        """(codes, their conditional logits), both [R, C, N], likeliest first.

        Candidates are the top k of guided = cond + cfg_scale * (cond - uncond); without guidance,
        of what may be said at all. What is no audio, or beyond a row's top k, has -inf.
        """
        guided = torch.sub(cond_RCV, uncond_RCV, out=self.guided)
        torch.addcmul(cond_RCV, guided, self.cfg_scale, out=guided)
        if self.any_unguided:
            sayable = without_lesser_eos(cond_RCV, self.limits, self.eos)
            guided = torch.where(self.cfg_scale == 0, sayable, guided)
        best = guided.topk(self.candidates, dim=-1).indices
        logits = cond_RCV.gather(-1, best).masked_fill_(best >= self.limits, NEVER)
        if self.too_many is not None:
            logits.masked_fill_(self.too_many, NEVER)
        logits, order = logits.sort(dim=-1, descending=True)
        return best.gather(-1, order), logits

    def probabilities(self, codes_RCN: Tensor, logits_RCN: Tensor) -> Tensor:
        """How likely each candidate is to be drawn, [R, C, N]; they need not add up to 1.

        Those of the smallest set whose probability reaches top p; 0 for the rest, and for EOS,
        which is said where it is the likeliest and never drawn.
        """
        scores = (logits_RCN / self.temperature).masked_fill_(codes_RCN == self.eos, NEVER)
        chances = scores.softmax(dim=-1)
        return chances * (chances.cumsum(dim=-1) - chances < self.top_p)


def without_lesser_eos(logits_RCV: Tensor, limits: Tensor, eos: int) -> Tensor:
    """-inf for what is no audio, and for EOS on channel 0 where another code is likelier."""
    codes = torch.arange(logits_RCV.shape[-1])
    sayable = logits_RCV.masked_fill(codes >= limits, NEVER)
    lesser = sayable.argmax(dim=-1, keepdim=True) != eos
    return sayable.masked_fill_(lesser & (codes == eos), NEVER)


def draw(codes_RCN: Tensor, chances_RCN: Tensor, uniforms_RC: Tensor) -> Tensor:
    """Codes [R, C] by inverting the cumulative chances at the row's own uniforms.

    In float64, so that a uniform just below 1 cannot round into a code without a chance.
    """
    cumulative = chances_RCN.double().cumsum(dim=-1)
    reached = cumulative <= uniforms_RC.unsqueeze(-1) * cumulative[..., -1:]
    place = reached.sum(dim=-1, keepdim=True).clamp_(max=codes_RCN.shape[-1] - 1)
    return codes_RCN.gather(-1, place).squeeze(-1)
