"""Statistics against their definitions over many random cases; Bradley-Terry against a fit."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.stats import binom, binomtest

from dia_demo.services.listening.verdict import stats

RANDOM = np.random.default_rng(7)
CASES = [(int(RANDOM.integers(0, n + 1)), n) for n in map(int, RANDOM.integers(1, 200, 150))]


def chances(n: int) -> np.ndarray:
    """The probabilities of 0 to n of n votes, each as likely as not."""
    return np.array([math.comb(n, k) / 2**n for k in range(n + 1)])


def test_p_values_are_sums_of_chances():
    for k, n in CASES:
        pmf = chances(n)
        likely = pmf[k] * (1 + 1e-7)
        assert stats.binomial_two_sided(k, n) == pytest.approx(pmf[pmf <= likely].sum(), abs=1e-9)
        assert stats.binomial_at_least(k, n) == pytest.approx(pmf[k:].sum(), abs=1e-9)


def test_the_ends_of_the_interval_give_2_5_percent():
    for k, n in [*CASES, (0, 1), (1, 1), (0, 40), (40, 40)]:
        low, high = stats.clopper_pearson(k, n)
        assert low == 0 if k == 0 else binom.sf(k - 1, n, low) == pytest.approx(0.025)
        assert high == 1 if k == n else binom.cdf(k, n, high) == pytest.approx(0.025)


def test_no_votes_say_nothing():
    assert stats.binomial_two_sided(0, 0) == 1
    assert stats.clopper_pearson(0, 0) == (0, 1)
    assert stats.fewest_significant(0) is None


def test_impossible_counts_are_refused():
    for k, n in ((-1, 3), (4, 3)):
        with pytest.raises(ValueError):
            stats.binomial_two_sided(k, n)


@pytest.mark.parametrize(
    "k, n, p", [(6, 6, 0.031), (9, 10, 0.021), (8, 10, 0.109), (13, 16, 0.021), (15, 20, 0.041)]
)
def test_the_design_notes_table(k, n, p):
    assert round(stats.binomial_two_sided(k, n), 3) == p


def test_how_many_votes_are_needed():
    assert [stats.fewest_significant(n) for n in (5, 6, 8, 10, 16, 20)] == [None, 6, 8, 9, 13, 15]
    assert [stats.fewest_above_chance(n) for n in (4, 5, 10, 16)] == [None, 5, 9, 12]


@pytest.mark.parametrize("leads", [[3, 1, 0, -2, 5, 0], [1, 1, -1, 2, 2, 4, -3, 1], [2] * 6])
def test_signs_are_flipped_in_every_way(leads):
    signs = np.array(list(itertools.product((-1, 1), repeat=len(leads))))
    sums = np.abs(signs @ np.array(leads))
    ahead, behind, p = stats.sign_flip_test(leads)
    assert p == pytest.approx(np.mean(sums >= abs(sum(leads))))
    assert (ahead, behind) == (sum(x > 0 for x in leads), sum(x < 0 for x in leads))


def test_leads_of_one_size_have_the_sign_test():
    for size in (1, 3):
        *_, p = stats.sign_flip_test([size] * 9 + [-size] + [0] * 4)
        assert p == pytest.approx(binomtest(9, 10).pvalue)
    assert stats.sign_flip_test([0, 0]) == (0, 0, 1.0) == stats.sign_flip_test([])


def test_strengths_differ_by_the_standard_error_of_their_difference():
    """Of two settings the log odds: its error is that of the binomial, not of one strength."""
    wins = np.array([[0, 70], [30, 0]])
    fit = stats.bradley_terry(wins)
    error = np.sqrt(fit.covariance[0, 0] + fit.covariance[1, 1] - 2 * fit.covariance[0, 1])
    assert error == pytest.approx(np.sqrt(1 / 70 + 1 / 30))
    assert fit.differ(0, 1) and not stats.bradley_terry(wins[::-1, ::-1] * 0.05).differ(0, 1)


# American League baseball 1987 (Agresti, Categorical Data Analysis): wins of the row's team.
TEAMS = "Milwaukee Detroit Toronto NewYork Boston Cleveland Baltimore".split()
BASEBALL = np.array(
    [
        [0, 7, 9, 7, 7, 9, 11],
        [6, 0, 7, 5, 11, 9, 9],
        [4, 6, 0, 7, 7, 8, 12],
        [6, 8, 6, 0, 6, 7, 10],
        [6, 2, 6, 7, 0, 7, 12],
        [4, 4, 5, 6, 6, 0, 6],
        [2, 4, 1, 3, 1, 7, 0],
    ]
)
# As printed by R's BradleyTerry2 (Turner and Firth 2012) for it, relative to Baltimore.
PUBLISHED = [1.5814, 1.4364, 1.2945, 1.2476, 1.1077, 0.6839, 0.0]


def test_bradley_terry_gives_the_published_strengths():
    fit = stats.bradley_terry(BASEBALL)
    assert not fit.softened
    assert fit.strengths - fit.strengths[-1] == pytest.approx(PUBLISHED, abs=5e-5)
    assert fit.strengths.sum() == pytest.approx(0, abs=1e-12)


def test_bradley_terry_errors_are_those_of_the_curvature():
    """Against a numerical second derivative, with the last team held at 0 (0.3433 is published)."""
    fit = stats.bradley_terry(BASEBALL)

    def likelihood(free):
        s = np.append(free, 0.0)
        return -(BASEBALL * np.log1p(np.exp(s[None] - s[:, None]))).sum()

    at, h = (fit.strengths - fit.strengths[-1])[:-1], 1e-4
    steps = np.eye(6) * h
    curvature = np.array(
        [
            [
                likelihood(at + a + b)
                - likelihood(at + a - b)
                - likelihood(at - a + b)
                + likelihood(at - a - b)
                for a in steps
            ]
            for b in steps
        ]
    ) / (4 * h * h)
    covariance = np.linalg.inv(-curvature)
    assert np.sqrt(covariance[0, 0]) == pytest.approx(0.3433, abs=5e-4)
    # The same covariance, moved to strengths of mean 0.
    centre = np.eye(7) - 1 / 7
    full = np.zeros((7, 7))
    full[:6, :6] = covariance
    assert fit.errors == pytest.approx(np.sqrt(np.diag(centre @ full @ centre)), rel=1e-3)


def test_two_settings_are_the_log_odds():
    fit = stats.bradley_terry(np.array([[0, 7], [3, 0]]))
    assert fit.strengths[0] - fit.strengths[1] == pytest.approx(np.log(7 / 3))


def test_a_clean_sweep_gives_finite_strengths():
    fit = stats.bradley_terry(np.array([[0, 6, 6], [0, 0, 6], [0, 0, 0]]))
    assert fit.softened and np.isfinite(fit.strengths).all()
    assert list(np.argsort(-fit.strengths)) == [0, 1, 2]


def test_groups_never_compared_are_refused():
    wins = np.zeros((4, 4))
    wins[0, 1] = wins[1, 0] = wins[2, 3] = wins[3, 2] = 1
    with pytest.raises(ValueError, match="compared"):
        stats.bradley_terry(wins)
