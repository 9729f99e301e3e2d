"""The reference of the sampler in engine/sampling.py, and cases for both."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import torch
from torch import Tensor

from dia_demo.config import DecoderConfig, GenerationParams
from dia_demo.engine.sampling import NOT_FINITE, effective_top_p, slots

NEG_INF, LOWEST = np.float32(-np.inf), np.finfo(np.float32).min


@dataclass(frozen=True)
class ReferenceSampler:
    """The sampler of dia_demo/engine/sampling.py as operations of NumPy, one step after another.

    The parameters of R rows as arrays [R, 1, 1]. N counts the candidates that a channel keeps.
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
    def create(
        cls, params: Sequence[GenerationParams], branches: Sequence[int], decoder: DecoderConfig
    ) -> ReferenceSampler:
        """branches: how many slots each row has in the logits, 2, or 1 (without guidance, or with
        distilled guidance), which is used for both."""

        def column(values: Iterable[float]) -> np.ndarray:
            return np.array(list(values), np.float32).reshape(-1, 1, 1)

        eos, channels, vocabulary = decoder.eos, decoder.num_channels, decoder.vocab_size
        cond, uncond = slots(branches)
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
            top_p=column(map(effective_top_p, params)),
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


def sample(make, params, eos, cond_RCV, uncond_RCV, uniforms_RC) -> torch.Tensor:
    """Codes [R, C] of rows with two branches each."""
    rows, channels, vocab = cond_RCV.shape
    sizes = SimpleNamespace(eos=eos, num_channels=channels, vocab_size=vocab)
    logits = torch.stack((cond_RCV, uncond_RCV), 1).flatten(0, 1)
    sampler = make(params, [2] * rows, sizes)
    return torch.from_numpy(sampler(logits, uniforms_RC.numpy()).copy())


def random_case(seed: int):
    """(cond, uncond, params, eos): any size, sharpness and setting, EOS sometimes the likeliest."""
    rng = np.random.default_rng(seed)
    torch.manual_seed(seed)
    channels, codes = int(rng.integers(1, 10)), int(rng.integers(4, 200))
    vocab = codes + 4
    sharpness = float(rng.choice([0.1, 1.0, 5.0, 20.0]))
    cond = sharpness * torch.randn(channels, vocab)
    uncond = cond + sharpness * float(rng.choice([0.1, 1.0])) * torch.randn(channels, vocab)
    if rng.random() < 0.3:
        cond[0, codes] = cond[0].max() + 1
    params = GenerationParams(
        temperature=float(rng.choice([0.01, 0.3, 1.0, 1.2, 1.8, 5.0])),
        cfg_scale=float(rng.choice([0.0, 0.5, 1.0, 3.0, 20.0])),
        top_p=float(rng.choice([0.01, 0.3, 0.9, 0.95, 0.999, 1.0])),
        top_k=int(rng.choice([1, 2, 7, 45, vocab - 1, vocab]).clip(1, vocab)),
    )
    return cond, uncond, params, codes
