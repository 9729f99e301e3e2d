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
class Room:
    """What a step writes, made once: a step asks for no memory. See each use for its meaning."""

    guided: Tensor  # [R, C, V]
    floats: tuple[Tensor, Tensor, Tensor]  # [R, C, N]
    cumulative: Tensor  # float64 [R, C, N]
    numbers: tuple[Tensor, Tensor, Tensor]  # int64 [R, C, N]
    marks: Tensor  # bool [R, C, N]
    target: Tensor  # float64 [R, C, 1]
    places: tuple[Tensor, Tensor]  # int64 [R, C, 1]
    codes: tuple[Tensor, Tensor]  # int64 [R, C]
    flags: tuple[Tensor, Tensor]  # bool [R, C]

    @classmethod
    def of(cls, rows: int, channels: int, vocabulary: int, candidates: int) -> Room:
        def some(count: int, *last: int, dtype: torch.dtype = torch.float32) -> tuple[Tensor, ...]:
            return tuple(torch.empty(rows, channels, *last, dtype=dtype) for _ in range(count))

        return cls(
            guided=some(1, vocabulary)[0],
            floats=some(3, candidates),
            cumulative=some(1, candidates, dtype=torch.float64)[0],
            numbers=some(3, candidates, dtype=torch.int64),
            marks=some(1, candidates, dtype=torch.bool)[0],
            target=some(1, 1, dtype=torch.float64)[0],
            places=some(2, 1, dtype=torch.int64),
            codes=some(2, dtype=torch.int64),
            flags=some(2, dtype=torch.bool),
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
    too_many: Tensor | None  # [R, 1, N]: candidates beyond a row's top k; None: none are
    unguided: Tensor  # [R, 1, 1]
    unsayable: Tensor | None  # [R, C, V]: what rows without guidance never say; None: all have it
    eos: int
    candidates: int
    all_greedy: bool
    room: Room

    @classmethod
    def of(cls, params: Sequence[GenerationParams], decoder: DecoderConfig) -> Sampler:
        def column(values: Iterable[float]) -> Tensor:
            return torch.tensor([float(value) for value in values]).view(-1, 1, 1)

        eos, channels, vocabulary = decoder.eos, decoder.num_channels, decoder.vocab_size
        top_k = column(one.top_k for one in params)
        candidates = min(int(top_k.max()), vocabulary)
        too_many = torch.arange(candidates) >= top_k
        greedy = column(one.temperature for one in params) == 0
        cfg_scale = column(one.cfg_scale for one in params)
        limits = torch.tensor([eos + 1] + [eos] * (channels - 1)).view(1, -1, 1)
        unguided = cfg_scale == 0
        return cls(
            temperature=column(one.temperature or 1.0 for one in params),
            cfg_scale=cfg_scale,
            # The code that crosses top p stays: from 1 on all do, whatever rounding says.
            top_p=column(one.top_p if one.top_p < 1 else 2.0 for one in params),
            greedy=greedy.view(-1, 1),
            limits=limits,
            too_many=too_many if too_many.any() else None,
            unguided=unguided,
            unsayable=unguided & (torch.arange(vocabulary) >= limits) if unguided.any() else None,
            eos=eos,
            candidates=candidates,
            all_greedy=bool(greedy.all()),
            room=Room.of(len(params), channels, vocabulary, candidates),
        )

    def __call__(self, cond_RCV: Tensor, uncond_RCV: Tensor, uniforms_RC: Tensor) -> Tensor:
        """The next codes [R, C].

        cond and uncond are float32 logits (uncond counts only where cfg_scale is not 0);
        uniforms lie in [0, 1). Rows of temperature 0 take the most likely code.
        """
        codes, logits = self.candidates_of(cond_RCV, uncond_RCV)
        first, (likeliest, said) = codes[..., 0], self.room.codes
        is_first, is_none = self.room.flags
        # A small top k may keep forbidden codes only: like the references' argmax, take code 0.
        torch.eq(logits[..., 0], NEVER, out=is_none)
        likeliest.copy_(first).masked_fill_(is_none, 0)
        if self.all_greedy:
            return likeliest
        drawn = draw(codes, self.probabilities(codes, logits), uniforms_RC, self.room)
        # EOS is the only choice where it is the likeliest.
        torch.eq(first, self.eos, out=is_first)
        is_first.logical_or_(is_none).logical_or_(self.greedy)
        return torch.where(is_first, likeliest, drawn, out=said)

    def candidates_of(self, cond_RCV: Tensor, uncond_RCV: Tensor) -> tuple[Tensor, Tensor]:
        """(codes, their conditional logits), both [R, C, N], likeliest first.

        Candidates are the top k of guided = cond + cfg_scale * (cond - uncond); without guidance,
        of what may be said at all. What is no audio, or beyond a row's top k, has -inf.
        """
        (ordered, logits, _), (best, order, codes) = self.room.floats, self.room.numbers
        guided, marks = self.room.guided, self.room.marks
        torch.sub(cond_RCV, uncond_RCV, out=guided)
        torch.addcmul(cond_RCV, guided, self.cfg_scale, out=guided)
        if self.unsayable is not None:
            guided.masked_fill_(self.unsayable, NEVER)
            self._without_lesser_eos(guided)
        torch.topk(guided, self.candidates, dim=-1, out=(ordered, best))
        torch.gather(cond_RCV, -1, best, out=logits)
        logits.masked_fill_(torch.ge(best, self.limits, out=marks), NEVER)
        if self.too_many is not None:
            logits.masked_fill_(self.too_many, NEVER)
        torch.sort(logits, dim=-1, descending=True, out=(ordered, order))
        return torch.gather(best, -1, order, out=codes), ordered

    def _without_lesser_eos(self, guided_RCV: Tensor) -> None:
        """-inf for EOS on channel 0 of rows without guidance, where another code is likelier."""
        channel, lesser = guided_RCV[:, :1], self.room.flags[0][:, :1, None]
        likeliest = torch.argmax(channel, dim=-1, keepdim=True, out=self.room.places[0][:, :1])
        torch.ne(likeliest, self.eos, out=lesser)
        lesser.logical_and_(self.unguided)
        channel[..., self.eos : self.eos + 1].masked_fill_(lesser, NEVER)

    def probabilities(self, codes_RCN: Tensor, logits_RCN: Tensor) -> Tensor:
        """How likely each candidate is to be drawn, [R, C, N]; they need not add up to 1.

        Those of the smallest set whose probability reaches top p; 0 for the rest, and for EOS,
        which is said where it is the likeliest and never drawn.
        """
        (_, scores, chances), marks = self.room.floats, self.room.marks
        torch.div(logits_RCN, self.temperature, out=scores)
        scores.masked_fill_(torch.eq(codes_RCN, self.eos, out=marks), NEVER)
        torch.softmax(scores, dim=-1, out=chances)
        before = torch.cumsum(chances, dim=-1, out=scores).sub_(chances)
        return chances.masked_fill_(torch.ge(before, self.top_p, out=marks), 0)


def draw(codes_RCN: Tensor, chances_RCN: Tensor, uniforms_RC: Tensor, room: Room) -> Tensor:
    """Codes [R, C] by inverting the cumulative chances at the row's own uniforms.

    In float64, so that a uniform just below 1 cannot round into a code without a chance.
    """
    cumulative = room.cumulative.copy_(chances_RCN).cumsum_(dim=-1)
    target = room.target.copy_(uniforms_RC.unsqueeze(-1)).mul_(cumulative[..., -1:])
    place, code = room.places
    torch.searchsorted(cumulative, target, right=True, out=place)
    place.clamp_(max=codes_RCN.shape[-1] - 1)
    return torch.gather(codes_RCN, -1, place, out=code).squeeze(-1)
