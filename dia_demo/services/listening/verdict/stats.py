"""Statistics of votes: exact binomial tests, intervals, Bradley-Terry. Pure functions.

Numbers in, numbers out; `result` puts them into words. scipy.stats takes long to import, so that is
done where it is used.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

SIGNIFICANT = 0.05
CONFIDENCE = 0.95
_NORMAL_975 = 1.959963984540054


def binomial_two_sided(k: int, n: int) -> float:
    """The exact two-sided p-value of k of n votes for one side, each as likely (1 where n is 0)."""
    from scipy.stats import binomtest

    return float(binomtest(k, n).pvalue) if n else 1.0


def binomial_at_least(k: int, n: int) -> float:
    """The chance of k or more of n right answers: the one-sided p-value against guessing."""
    from scipy.stats import binom

    return float(binom.sf(k - 1, n, 0.5))


@lru_cache(maxsize=4096)
def clopper_pearson(k: int, n: int) -> tuple[float, float]:
    """The exact (conservative) 95% interval of a rate seen k times in n; (0, 1) where n is 0."""
    from scipy.stats import binomtest

    if n == 0:
        return 0.0, 1.0
    interval = binomtest(k, n).proportion_ci(CONFIDENCE, method="exact")
    return float(interval.low), float(interval.high)


@lru_cache(maxsize=1024)
def fewest_significant(n: int, level: float = SIGNIFICANT) -> int | None:
    """The fewest of n votes for one side whose two-sided p is below `level`; None if no number
    is."""
    majority = range(n // 2 + 1, n + 1)
    return next((k for k in majority if binomial_two_sided(k, n) < level), None)


def fewest_above_chance(n: int, level: float = SIGNIFICANT) -> int | None:
    """The fewest of n right answers that guessing gives less often than `level`; None if no number
    does."""
    return next((k for k in range(n + 1) if binomial_at_least(k, n) < level), None)


def sign_flip_test(leads: Sequence[int]) -> tuple[int, int, float]:
    """How many leads are positive, how many negative, and the exact two-sided p-value of their sum
    if each sign is as likely as the other.

    The leads must be independent: the votes on one script are not, so they enter as one lead. Where
    all leads are equally large, this is the sign test. Otherwise larger ones count more, so that no
    vote is wasted: with the sign alone, a fourth vote on a script makes nothing but draws.
    """
    positive, negative = sum(lead > 0 for lead in leads), sum(lead < 0 for lead in leads)
    sizes = Counter(abs(int(lead)) for lead in leads if lead)
    return positive, negative, _flip_tail(tuple(sorted(sizes.items())), abs(int(sum(leads))))


@lru_cache(maxsize=65536)
def _flip_tail(sizes: tuple[tuple[int, int], ...], total: int) -> float:
    """The chance that leads of these (size, count) and random signs add up to `total` or more, on
    either side."""
    pmf = np.ones(1)
    for size, count in sizes:
        group = np.zeros(2 * size * count + 1)
        group[:: 2 * size] = _even_chances(count)
        pmf = np.convolve(pmf, group)
    sums = np.abs(np.arange(len(pmf)) - len(pmf) // 2)
    return float(min(1.0, pmf[sums >= total].sum()))


@lru_cache(maxsize=1024)
def _even_chances(n: int) -> np.ndarray:
    """The probabilities [n + 1] of 0 to n of n votes for one side, each as likely."""
    from scipy.stats import binom

    return binom.pmf(np.arange(n + 1), n, 0.5)


@dataclass(frozen=True)
class BradleyTerry:
    """Log-strengths [K] with mean 0, their covariance [K, K], standard errors and 95% intervals
    [K, 2].

    softened: some setting won or lost everything, so no finite estimate exists, and half a vote
    was added to each side of every pair that was compared.
    """

    strengths: np.ndarray
    covariance: np.ndarray
    errors: np.ndarray
    intervals: np.ndarray
    softened: bool

    def differ(self, first: int, second: int) -> bool:
        """Whether the 95% interval of the difference of two strengths excludes zero.

        Two strengths are correlated, so their own intervals may overlap and the difference still
        be clear.
        """
        contrast = np.zeros(len(self.strengths))
        contrast[first], contrast[second] = 1.0, -1.0
        error = np.sqrt(contrast @ self.covariance @ contrast)
        return bool(abs(contrast @ self.strengths) > _NORMAL_975 * error)


def bradley_terry(wins: np.ndarray) -> BradleyTerry:
    """Fit wins [K, K], where wins[i, j] counts i preferred to j (a tie is half a win for each).

    Maximum likelihood by Newton's method; errors from the inverse information (Hunter 2004).
    Raises ValueError if the settings fall into groups that were never compared.
    """
    wins = np.asarray(wins, dtype=float) * (1 - np.eye(len(wins)))
    if not _all_reachable(wins + wins.T > 0):
        raise ValueError("not every setting was compared with the others")
    softened = not _all_reachable(wins > 0)
    if softened:
        wins = wins + 0.5 * (wins + wins.T > 0)
    strengths = np.zeros(len(wins))
    for _ in range(200):
        slope, information = _derivatives(wins, strengths)
        step = np.linalg.pinv(information, hermitian=True) @ slope
        # Far from the top a full Newton step can overshoot.
        strengths = strengths + step / max(1.0, np.abs(step).max())
        if np.abs(step).max() < 1e-13:
            break
    strengths -= strengths.mean()
    _, information = _derivatives(wins, strengths)
    covariance = np.linalg.pinv(information, hermitian=True)
    errors = np.sqrt(np.diag(covariance))
    reach = _NORMAL_975 * errors
    intervals = np.stack([strengths - reach, strengths + reach], axis=1)
    return BradleyTerry(strengths, covariance, errors, intervals, softened)


def _derivatives(wins: np.ndarray, strengths: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The log-likelihood's gradient [K] and its information matrix [K, K]."""
    ahead = 1 / (1 + np.exp(strengths[None] - strengths[:, None]))
    games = wins + wins.T
    slope = wins.sum(axis=1) - (games * ahead).sum(axis=1)
    weight = games * ahead * (1 - ahead)
    return slope, np.diag(weight.sum(axis=1)) - weight


def _all_reachable(edges: np.ndarray) -> bool:
    """Whether every node leads to every other."""
    reach = edges | np.eye(len(edges), dtype=bool)
    for _ in range(len(edges)):
        reach = (reach.astype(int) @ reach.astype(int)) > 0
    return bool(reach.all())
