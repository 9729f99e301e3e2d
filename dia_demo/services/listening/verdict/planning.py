"""What a design of a listening test can find: simulated votes, judged as real ones are.

One listener votes on every script with every seed for every two settings. On average one setting is
better, but the listener's taste differs by script; some answers are "no difference". The figures on
the page, on the command line and in docs/listening.md all come from `chances`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations

import numpy as np

from dia_demo.services.listening.verdict import stats

# With fewer scripts, even a majority for the same side on all of them is not significant.
FEWEST_SCRIPTS = 6
# The rate at which the better setting wins a vote that is no tie, over all scripts, and the
# standard deviation of the taste for one side between scripts, in log odds.
RATE, SCRIPT_SD = 0.75, 1.0
# The share of "no difference" where nobody says otherwise.
TIES = 0.2
TESTS_OF_TWO, TESTS_OF_A_ROUND = 2000, 500


@dataclass(frozen=True)
class Chances:
    """How often a test finds the better setting; and how often fewer than FEWEST_SCRIPTS scripts
    have a majority if none is better, so that nothing can be concluded."""

    found: float
    too_few: float


@lru_cache(maxsize=512)
def chances(scripts: int, seeds: int, settings: int = 2, ties: float = TIES) -> Chances:
    """Of a preference test with this many scripts, seeds for each, and settings. ties: the share of
    answers that are "no difference". Always the same for the same design."""
    random = np.random.default_rng((scripts, seeds, settings, round(1000 * ties)))
    if settings == 2:
        return _chances_of_two(random, scripts, seeds, ties)
    found = [_finds_first(random, scripts, seeds, settings, ties) for _ in range(TESTS_OF_A_ROUND)]
    return Chances(float(np.mean(found)), 0.0)


def _chances_of_two(random: np.random.Generator, scripts: int, seeds: int, ties: float) -> Chances:
    taste = random.normal(mean_log_odds(), SCRIPT_SD, (TESTS_OF_TWO, scripts))
    leads = _leads(random, taste, seeds, ties)
    found = [_is_settled(row) and sum(row) > 0 for row in leads.tolist()]
    even = _leads(random, random.normal(0, SCRIPT_SD, leads.shape), seeds, ties)
    too_few = (even != 0).sum(1) < FEWEST_SCRIPTS
    return Chances(float(np.mean(found)), float(np.mean(too_few)))


def _leads(random: np.random.Generator, taste: np.ndarray, seeds: int, ties: float) -> np.ndarray:
    """By how many of `seeds` votes the first side leads where `taste` is its log odds."""
    decided = random.binomial(seeds, 1 - ties, taste.shape)
    return 2 * random.binomial(decided, 1 / (1 + np.exp(-taste))) - decided


def _finds_first(
    random: np.random.Generator, scripts: int, seeds: int, settings: int, ties: float
) -> bool:
    """Whether one simulated round settles on setting 0, which is the better one."""
    # The difference of two tastes has the deviation of a test of two.
    taste = random.normal(0, SCRIPT_SD / np.sqrt(2), (scripts, settings))
    taste[:, 0] += mean_log_odds()
    wins, scores = np.zeros((settings, settings)), np.zeros((scripts, settings), int)
    for first, second in combinations(range(settings), 2):
        leads = _leads(random, taste[:, first] - taste[:, second], seeds, ties)
        total, votes = int(leads.sum()), scripts * seeds
        wins[first, second], wins[second, first] = (votes + total) / 2, (votes - total) / 2
        scores[:, first] += leads
        scores[:, second] -= leads
    # Every two settings are compared equally often: the order of the wins is that of the strengths.
    first, second = np.argsort(-wins.sum(1), kind="stable")[:2].tolist()
    if first != 0 or not _is_settled((scores[:, first] - scores[:, second]).tolist()):
        return False
    return stats.bradley_terry(wins).differ(first, second)


def _is_settled(leads: Sequence[int]) -> bool:
    *_, p = stats.sign_flip_test(leads)
    return p < stats.SIGNIFICANT


@lru_cache(maxsize=1)
def mean_log_odds() -> float:
    """The mean log odds over scripts with which a vote is won at RATE."""
    points, weights = np.polynomial.hermite_e.hermegauss(40)
    low, high = 0.0, 5.0
    for _ in range(50):
        middle = (low + high) / 2
        won = 1 / (1 + np.exp(-(middle + SCRIPT_SD * points)))
        low, high = (middle, high) if won @ weights / weights.sum() < RATE else (low, middle)
    return low
