"""Bradley-Terry strengths whose errors count raters and scripts, not votes; a bootstrap by script.

The strengths are the usual maximum-likelihood ones. Their covariance is the sandwich with two-way
clusters (Cameron, Gelbach and Miller 2011): votes of one rater, and votes on one script, may agree
with each other for any reason.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dia_demo.services.listening.verdict.stats import bradley_terry

METHOD_STRENGTHS = "Bradley-Terry strengths with two-way clustered errors (raters, scripts)"
METHOD_BOOTSTRAP = "bootstrap over scripts (expanded percentile, 10,000 samples)"
SAMPLES = 10_000


@dataclass(frozen=True)
class ClusteredStrengths:
    """Log-strengths [K] with mean 0, their covariance [K, K] and degrees of freedom."""

    strengths: np.ndarray
    covariance: np.ndarray
    df: int

    def difference(self, first: int, second: int) -> tuple[float, float, float]:
        """The difference of two strengths, its standard error, and its two-sided p-value."""
        from scipy.special import stdtr

        contrast = np.zeros(len(self.strengths))
        contrast[first], contrast[second] = 1.0, -1.0
        error = float(np.sqrt(max(contrast @ self.covariance @ contrast, 0.0)))
        lead = float(contrast @ self.strengths)
        p = float(2 * stdtr(self.df, -abs(lead) / error)) if error else 1.0
        return lead, error, p

    def intervals(self) -> np.ndarray:
        """The 95% interval of each strength against the mean of all, [K, 2]."""
        from scipy.special import stdtrit

        reach = stdtrit(self.df, 0.975) * np.sqrt(np.clip(np.diag(self.covariance), 0, None))
        return np.stack([self.strengths - reach, self.strengths + reach], 1)


def clustered_strengths(
    systems: np.ndarray, scores: np.ndarray, raters: Sequence, scripts: Sequence, count: int
) -> ClusteredStrengths | None:
    """Of votes [n]. systems: the two of each vote [n, 2]. scores: 1 for the first, -1 for the
    second, 0 for a tie. count: of all systems.

    None with fewer than two raters or scripts, or where not all systems were compared.
    """
    first, second = systems[:, 0], systems[:, 1]
    won = (scores + 1) / 2
    wins = np.zeros((count, count))
    np.add.at(wins, (first, second), won)
    np.add.at(wins, (second, first), 1 - won)
    try:
        strengths = bradley_terry(wins).strengths
    except ValueError:
        return None
    expected = 1 / (1 + np.exp(strengths[second] - strengths[first]))
    weight = expected * (1 - expected)
    pull = np.zeros((len(won), count))
    rows = np.arange(len(won))
    pull[rows, first] = won - expected
    pull[rows, second] = expected - won
    information = np.zeros((count, count))
    for one, other, sign in (
        (first, first, 1),
        (second, second, 1),
        (first, second, -1),
        (second, first, -1),
    ):
        np.add.at(information, (one, other), sign * weight)
    groups = [_numbers(raters), _numbers(scripts)]
    sizes = [int(group.max()) + 1 for group in groups]
    if min(sizes) < 2:
        return None
    cells = _numbers(groups[0] * sizes[1] + groups[1])
    meat = sum(
        _meat(pull, group) * size / (size - 1) for group, size in zip(groups, sizes, strict=True)
    )
    both = meat - _meat(pull, cells)
    # Where nothing varies between clusters the difference may have no variance left.
    meat = both if np.linalg.eigvalsh(both).min() > -1e-9 else meat
    bread = np.linalg.pinv(information, hermitian=True)
    return ClusteredStrengths(strengths, bread @ meat @ bread, min(sizes) - 1)


def _numbers(names: Sequence | np.ndarray) -> np.ndarray:
    return np.unique(np.asarray(names), return_inverse=True)[1]


def _meat(pull: np.ndarray, groups: np.ndarray) -> np.ndarray:
    sums = np.zeros((int(groups.max()) + 1, pull.shape[1]))
    np.add.at(sums, groups, pull)
    return sums.T @ sums


def script_interval(
    script_means: np.ndarray, confidence: float = 0.95
) -> tuple[np.ndarray, np.ndarray] | None:
    """The bootstrap interval of a mean over scripts, from means by script [..., scripts], for the
    raters of the test; None with fewer than two scripts. Always the same for the same means.

    Percentiles that are expanded for few scripts (Hesterberg 2015), since plain ones are too
    narrow by the factor sqrt(1 - 1/n) and the normal instead of the t distribution.
    """
    from scipy.special import ndtr, stdtrit

    scripts = script_means.shape[-1]
    if scripts < 2:
        return None
    random = np.random.default_rng(scripts)
    weights = random.multinomial(scripts, np.full(scripts, 1 / scripts), SAMPLES) / scripts
    quantile = stdtrit(scripts - 1, (1 + confidence) / 2) * np.sqrt(scripts / (scripts - 1))
    tail = ndtr(-quantile)
    low, high = np.quantile(script_means @ weights.T, [tail, 1 - tail], axis=-1)
    return low, high
