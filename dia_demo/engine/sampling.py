"""From logits to codes, as Dia-1.6B-0626 does it: pure functions over rows.

The steps and their order are those of nari-labs/dia (June 2025) and of transformers' Dia logits
processors: guidance decides which codes may be drawn, the conditional logits how likely they are.
Shape letters are explained in model/layers.py; N counts the candidates a channel keeps. Logits are
float32, codes int64.

`Sampler` is a few dozen operations on small arrays, which take longer to call than to compute.
`CompiledSampler` does the same in one call, and `make_sampler` chooses it where it compiles.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import torch
from torch import Tensor

from dia_demo.config import DecoderConfig, GenerationParams
from dia_demo.model.cpu_model import torch_threads

log = logging.getLogger(__name__)

NEG_INF, LOWEST = np.float32(-np.inf), np.finfo(np.float32).min
# The code of a row whose logits are not all finite.
NOT_FINITE = -1


@dataclass(frozen=True)
class Sampler:
    """The parameters of R rows as arrays [R, 1, 1], made once for as long as the rows stay.

    It is written for few operations, on the candidates rather than on all codes.
    """

    cond: np.ndarray  # int64 [R]: each row's slot with the text
    uncond: np.ndarray  # int64 [R]: and without it, or the same again
    temperature: np.ndarray
    cfg_scale: np.ndarray
    top_p: np.ndarray
    greedy: np.ndarray  # [R, 1]
    limits: np.ndarray  # [1, C, 1]: codes from here on are no audio
    beyond_top_k: np.ndarray | None  # [R, 1, N]: candidates beyond a row's top k; None: none are
    unguided: np.ndarray  # [R, 1]
    forbidden: np.ndarray | None  # [R, C, V]: codes that rows without guidance never sample, if any
    eos: int
    candidates: int

    @classmethod
    def of(
        cls, params: Sequence[GenerationParams], halves: Sequence[int], decoder: DecoderConfig
    ) -> Sampler:
        """halves: how many slots each row has in the logits, 2, or 1 (without guidance, or with
        distilled guidance), which is used for both."""

        def column(values: Iterable[float]) -> np.ndarray:
            return _float32(values).reshape(-1, 1, 1)

        eos, channels, vocabulary = decoder.eos, decoder.num_channels, decoder.vocab_size
        cond, uncond = _slots(halves)
        top_k = np.array([row.top_k for row in params]).reshape(-1, 1, 1)
        candidates = min(int(top_k.max()), vocabulary)
        beyond_top_k = np.arange(candidates) >= top_k
        greedy = column(row.temperature for row in params) == 0
        cfg_scale = column(row.cfg_scale for row in params)
        limits = np.array([eos + 1] + [eos] * (channels - 1)).reshape(1, -1, 1)
        unguided = cfg_scale == 0
        return cls(
            cond=cond,
            uncond=uncond,
            temperature=column(row.temperature or 1.0 for row in params),
            cfg_scale=cfg_scale,
            top_p=column(map(_top_p, params)),
            greedy=greedy[..., 0],
            limits=limits,
            beyond_top_k=beyond_top_k if beyond_top_k.any() else None,
            unguided=unguided[..., 0],
            forbidden=unguided & (np.arange(vocabulary) >= limits) if unguided.any() else None,
            eos=eos,
            candidates=candidates,
        )

    def __call__(self, logits_BCV: Tensor, uniforms_RC: np.ndarray) -> np.ndarray:
        """The next codes [R, C], from the logits of all slots and float32 uniforms in [0, 1).

        Rows of temperature 0 take the most likely code. Rows whose logits are not all finite have
        NOT_FINITE.
        """
        logits = logits_BCV.numpy()
        is_finite = np.isfinite(logits).all((1, 2))
        with np.errstate(invalid="ignore", over="ignore"):
            codes, likely = self.candidates_of(logits[self.cond], logits[self.uncond])
            drawn = draw(codes, self.probabilities(codes, likely), uniforms_RC)
        first, is_none = codes[..., 0], likely[..., 0] == NEG_INF
        # A small top k may keep forbidden codes only: like the references' argmax, take code 0.
        argmax = np.where(is_none, 0, first)
        # EOS is the only choice where it is the most likely code.
        found = np.where((first == self.eos) | is_none | self.greedy, argmax, drawn)
        found[~(is_finite[self.cond] & is_finite[self.uncond])] = NOT_FINITE
        return found

    def candidates_of(
        self, cond_RCV: np.ndarray, uncond_RCV: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """(codes, their conditional logits), both [R, C, N], most likely first.

        Candidates are the top k of guided = cond + cfg_scale * (cond - uncond); without guidance,
        of the codes that are not forbidden. Codes that are no audio, or beyond a row's top k, have
        -inf.
        """
        guided = cond_RCV - uncond_RCV
        guided *= self.cfg_scale
        guided += cond_RCV
        if self.forbidden is not None:
            np.copyto(guided, NEG_INF, where=self.forbidden)
            self._mask_lesser_eos(guided)
        with torch_threads(1):
            best = torch.from_numpy(guided).topk(self.candidates, dim=-1).indices.numpy()
        logits = _of_last(cond_RCV, best)
        np.copyto(logits, NEG_INF, where=best >= self.limits)
        if self.beyond_top_k is not None:
            np.copyto(logits, NEG_INF, where=self.beyond_top_k)
        order = np.argsort(-logits, axis=-1, kind="stable")
        return _of_last(best, order), _of_last(logits, order)

    def _mask_lesser_eos(self, guided_RCV: np.ndarray) -> None:
        """-inf for EOS on channel 0 of rows without guidance, where another code is more likely."""
        is_lesser = guided_RCV[:, :1].argmax(-1) != self.eos
        np.copyto(guided_RCV[:, :1, self.eos], NEG_INF, where=is_lesser & self.unguided)

    def probabilities(self, codes_RCN: np.ndarray, logits_RCN: np.ndarray) -> np.ndarray:
        """The probability of each candidate, [R, C, N], not normalised.

        Non-zero for the smallest set whose probability reaches top p; 0 for the rest, and for EOS,
        which is taken where it is the most likely code and never sampled.
        """
        scores = logits_RCN / self.temperature
        np.copyto(scores, NEG_INF, where=codes_RCN == self.eos)
        # Where no candidate is left, the two limits make the probabilities 0 instead of NaN.
        scores -= np.maximum(scores.max(-1, keepdims=True), LOWEST)
        probs = np.exp(scores, out=scores)
        probs /= np.maximum(probs.sum(-1, keepdims=True), 1)
        before = probs.cumsum(-1) - probs
        np.copyto(probs, 0, where=before >= self.top_p)
        return probs


def draw(codes_RCN: np.ndarray, probs_RCN: np.ndarray, uniforms_RC: np.ndarray) -> np.ndarray:
    """Codes [R, C] by inverting the cumulative probabilities at the row's own uniforms.

    In float64, so that a uniform just below 1 cannot round into a code of probability 0.
    """
    cumulative = probs_RCN.cumsum(-1, dtype=np.float64)
    target = uniforms_RC[..., None] * cumulative[..., -1:]
    place = np.minimum((cumulative <= target).sum(-1, keepdims=True), codes_RCN.shape[-1] - 1)
    return _of_last(codes_RCN, place)[..., 0]


def _of_last(values_RCX: np.ndarray, places_RCN: np.ndarray) -> np.ndarray:
    """np.take_along_axis on the last axis, in a third of its time."""
    rows, channels, length = values_RCX.shape
    starts = np.arange(0, values_RCX.size, length).reshape(rows, channels, 1)
    return values_RCX.reshape(-1).take(places_RCN + starts)


class CompiledSampler:
    """`Sampler` in one call (kernels/sampling.py). Raises ImportError without numba."""

    def __init__(
        self, params: Sequence[GenerationParams], halves: Sequence[int], decoder: DecoderConfig
    ) -> None:
        from dia_demo.kernels.sampling import sample

        self._sample = sample
        self._slots = _slots(halves)
        self._parameters = (
            _float32(row.temperature for row in params),
            _float32(row.cfg_scale for row in params),
            _float32(map(_top_p, params)),
            np.array([row.top_k for row in params], np.int64),
            decoder.eos,
            decoder.vocab_size,
        )
        self._codes = np.empty((len(params), decoder.num_channels), np.int64)

    def __call__(self, logits_BCV: Tensor, uniforms_RC: np.ndarray) -> np.ndarray:
        """As `Sampler`; the next call overwrites the codes."""
        if logits_BCV.stride()[1:] != (logits_BCV.shape[2], 1):
            logits_BCV = logits_BCV.contiguous()
        logits = logits_BCV.data_ptr(), 4 * logits_BCV.stride(0)
        self._sample(*logits, *self._slots, uniforms_RC, *self._parameters, self._codes)
        return self._codes


def make_sampler(
    params: Sequence[GenerationParams], halves: Sequence[int], decoder: DecoderConfig
) -> Sampler | CompiledSampler:
    """The faster of the two that works here, for these rows; halves: see `Sampler.of`."""
    if can_compile():
        return CompiledSampler(params, halves, decoder)
    return Sampler.of(params, halves, decoder)


@cache
def can_compile() -> bool:
    """Compile the sampler, once in a process; False if it does not compile or is wrong."""
    decoder = DecoderConfig(num_channels=3, vocab_size=20, eos=16)
    guided = GenerationParams(temperature=1.0, cfg_scale=2.0, top_p=0.9, top_k=9)
    rows = [guided, replace(guided, cfg_scale=0.0), replace(guided, temperature=0.0), guided]
    halves = [2, 1, 2, 2]
    logits = torch.arange(7 * 3 * 20).mul(3.7).sin().mul(4).view(7, 3, 20)
    logits[6, 1, 4] = torch.nan
    uniforms = np.linspace(0, 0.97, 12, dtype=np.float32).reshape(4, 3)
    try:
        codes = CompiledSampler(rows, halves, decoder)(logits, uniforms)
        expected = Sampler.of(rows, halves, decoder)(logits, uniforms)
        if not np.array_equal(codes, expected):
            raise ArithmeticError(f"codes {codes.tolist()} instead of {expected.tolist()}")
    except Exception as error:  # numba, its compiler and a damaged cache raise any type of error.
        log.warning("compiled sampling is not available: %s: %s", type(error).__name__, error)
        return False
    return True


def _slots(halves: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    """Each row's slots in the logits: with the text and without it, int64 [R]."""
    ends = np.cumsum(halves)
    return ends - halves, ends - 1


def _float32(values: Iterable[float]) -> np.ndarray:
    return np.array([float(value) for value in values], np.float32)


def _top_p(params: GenerationParams) -> float:
    """The code that crosses top p stays: from 1 on all do, whatever rounding says."""
    return params.top_p if params.top_p < 1 else 2.0
