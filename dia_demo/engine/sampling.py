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

NEG_INF = -torch.inf


@dataclass(frozen=True)
class Workspace:
    """Tensors that a step writes, made once: a step allocates nothing. Each is reused where its
    former contents are no longer needed."""

    guided: Tensor  # [R, C, V]: logits after guidance
    gathered: Tensor  # [R, C, N]: conditional logits of the candidates
    ordered: Tensor  # [R, C, N]: guided logits of the top k, then `gathered` in descending order
    scores: Tensor  # [R, C, N]: logits over temperature, then probability before each candidate
    probs: Tensor  # [R, C, N]
    cumulative: Tensor  # float64 [R, C, N]
    best: Tensor  # int64 [R, C, N]: codes of the top k of `guided`
    order: Tensor  # int64 [R, C, N]: of `gathered`, descending
    codes: Tensor  # int64 [R, C, N]: the candidates, in that order
    mask: Tensor  # bool [R, C, N]
    target: Tensor  # float64 [R, C, 1]: the uniforms on the scale of `cumulative`
    index: Tensor  # int64 [R, C, 1]
    chosen: Tensor  # int64 [R, C, 1]
    argmax: Tensor  # int64 [R, C]: most likely codes
    sampled: Tensor  # int64 [R, C]: the result
    use_argmax: Tensor  # bool [R, C]
    is_none: Tensor  # bool [R, C]: no candidate is allowed

    @classmethod
    def of(cls, rows: int, channels: int, vocabulary: int, candidates: int) -> Workspace:
        def empty(*last: int, dtype: torch.dtype = torch.float32) -> Tensor:
            return torch.empty(rows, channels, *last, dtype=dtype)

        whole, N = {"dtype": torch.int64}, candidates
        return cls(
            guided=empty(vocabulary),
            gathered=empty(N),
            ordered=empty(N),
            scores=empty(N),
            probs=empty(N),
            cumulative=empty(N, dtype=torch.float64),
            best=empty(N, **whole),
            order=empty(N, **whole),
            codes=empty(N, **whole),
            mask=empty(N, dtype=torch.bool),
            target=empty(1, dtype=torch.float64),
            index=empty(1, **whole),
            chosen=empty(1, **whole),
            argmax=empty(**whole),
            sampled=empty(**whole),
            use_argmax=empty(dtype=torch.bool),
            is_none=empty(dtype=torch.bool),
        )


@dataclass(frozen=True)
class Sampler:
    """The parameters of R rows as tensors [R, 1, 1], made once for as long as the rows stay.

    A step draws between two passes over all weights, with none of this in any cache: it is written
    for few operations, on the candidates rather than on all codes. What its methods return is
    overwritten by the next step.
    """

    temperature: Tensor
    cfg_scale: Tensor
    top_p: Tensor
    greedy: Tensor  # [R, 1]
    limits: Tensor  # [1, C, 1]: codes from here on are no audio
    beyond_top_k: Tensor | None  # [R, 1, N]: candidates beyond a row's top k; None: none are
    unguided: Tensor  # [R, 1, 1]
    forbidden: Tensor | None  # [R, C, V]: codes that rows without guidance never sample, if any
    eos: int
    candidates: int
    all_greedy: bool
    work: Workspace

    @classmethod
    def of(cls, params: Sequence[GenerationParams], decoder: DecoderConfig) -> Sampler:
        def column(values: Iterable[float]) -> Tensor:
            return torch.tensor([float(value) for value in values]).view(-1, 1, 1)

        eos, channels, vocabulary = decoder.eos, decoder.num_channels, decoder.vocab_size
        top_k = column(row.top_k for row in params)
        candidates = min(int(top_k.max()), vocabulary)
        beyond_top_k = torch.arange(candidates) >= top_k
        greedy = column(row.temperature for row in params) == 0
        cfg_scale = column(row.cfg_scale for row in params)
        limits = torch.tensor([eos + 1] + [eos] * (channels - 1)).view(1, -1, 1)
        unguided = cfg_scale == 0
        return cls(
            temperature=column(row.temperature or 1.0 for row in params),
            cfg_scale=cfg_scale,
            # The code that crosses top p stays: from 1 on all do, whatever rounding says.
            top_p=column(row.top_p if row.top_p < 1 else 2.0 for row in params),
            greedy=greedy.view(-1, 1),
            limits=limits,
            beyond_top_k=beyond_top_k if beyond_top_k.any() else None,
            unguided=unguided,
            forbidden=unguided & (torch.arange(vocabulary) >= limits) if unguided.any() else None,
            eos=eos,
            candidates=candidates,
            all_greedy=bool(greedy.all()),
            work=Workspace.of(len(params), channels, vocabulary, candidates),
        )

    def __call__(self, cond_RCV: Tensor, uncond_RCV: Tensor, uniforms_RC: Tensor) -> Tensor:
        """The next codes [R, C].

        cond and uncond are float32 logits (uncond counts only where cfg_scale is not 0);
        uniforms lie in [0, 1). Rows of temperature 0 take the most likely code.
        """
        work = self.work
        codes, logits = self.candidates_of(cond_RCV, uncond_RCV)
        first = codes[..., 0]
        # A small top k may keep forbidden codes only: like the references' argmax, take code 0.
        torch.eq(logits[..., 0], NEG_INF, out=work.is_none)
        work.argmax.copy_(first).masked_fill_(work.is_none, 0)
        if self.all_greedy:
            return work.argmax
        drawn = draw(codes, self.probabilities(codes, logits), uniforms_RC, work)
        # EOS is the only choice where it is the most likely code.
        torch.eq(first, self.eos, out=work.use_argmax)
        work.use_argmax.logical_or_(work.is_none).logical_or_(self.greedy)
        return torch.where(work.use_argmax, work.argmax, drawn, out=work.sampled)

    def candidates_of(self, cond_RCV: Tensor, uncond_RCV: Tensor) -> tuple[Tensor, Tensor]:
        """(codes, their conditional logits), both [R, C, N], most likely first.

        Candidates are the top k of guided = cond + cfg_scale * (cond - uncond); without guidance,
        of the codes that are not forbidden. Codes that are no audio, or beyond a row's top k, have
        -inf.
        """
        work = self.work
        torch.sub(cond_RCV, uncond_RCV, out=work.guided)
        torch.addcmul(cond_RCV, work.guided, self.cfg_scale, out=work.guided)
        if self.forbidden is not None:
            work.guided.masked_fill_(self.forbidden, NEG_INF)
            self._mask_lesser_eos(work.guided)
        torch.topk(work.guided, self.candidates, dim=-1, out=(work.ordered, work.best))
        torch.gather(cond_RCV, -1, work.best, out=work.gathered)
        torch.ge(work.best, self.limits, out=work.mask)
        work.gathered.masked_fill_(work.mask, NEG_INF)
        if self.beyond_top_k is not None:
            work.gathered.masked_fill_(self.beyond_top_k, NEG_INF)
        torch.sort(work.gathered, dim=-1, descending=True, out=(work.ordered, work.order))
        return torch.gather(work.best, -1, work.order, out=work.codes), work.ordered

    def _mask_lesser_eos(self, guided_RCV: Tensor) -> None:
        """-inf for EOS on channel 0 of rows without guidance, where another code is more likely."""
        channel, is_lesser = guided_RCV[:, :1], self.work.use_argmax[:, :1, None]
        argmax = torch.argmax(channel, dim=-1, keepdim=True, out=self.work.index[:, :1])
        torch.ne(argmax, self.eos, out=is_lesser)
        is_lesser.logical_and_(self.unguided)
        channel[..., self.eos : self.eos + 1].masked_fill_(is_lesser, NEG_INF)

    def probabilities(self, codes_RCN: Tensor, logits_RCN: Tensor) -> Tensor:
        """The probability of each candidate, [R, C, N], not normalised.

        Non-zero for the smallest set whose probability reaches top p; 0 for the rest, and for EOS,
        which is taken where it is the most likely code and never sampled.
        """
        work = self.work
        torch.div(logits_RCN, self.temperature, out=work.scores)
        work.scores.masked_fill_(torch.eq(codes_RCN, self.eos, out=work.mask), NEG_INF)
        torch.softmax(work.scores, dim=-1, out=work.probs)
        before = torch.cumsum(work.probs, dim=-1, out=work.scores).sub_(work.probs)
        return work.probs.masked_fill_(torch.ge(before, self.top_p, out=work.mask), 0)


def draw(codes_RCN: Tensor, probs_RCN: Tensor, uniforms_RC: Tensor, work: Workspace) -> Tensor:
    """Codes [R, C] by inverting the cumulative probabilities at the row's own uniforms.

    In float64, so that a uniform just below 1 cannot round into a code of probability 0.
    """
    cumulative = work.cumulative.copy_(probs_RCN).cumsum_(dim=-1)
    target = work.target.copy_(uniforms_RC.unsqueeze(-1)).mul_(cumulative[..., -1:])
    torch.searchsorted(cumulative, target, right=True, out=work.index)
    work.index.clamp_(max=codes_RCN.shape[-1] - 1)
    return torch.gather(codes_RCN, -1, work.index, out=work.chosen).squeeze(-1)
