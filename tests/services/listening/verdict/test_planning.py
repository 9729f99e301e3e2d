"""What a design can find: the plan promises what real verdicts on simulated votes give."""

from __future__ import annotations

import numpy as np
import pytest

from dia_demo.services.listening.verdict.planning import RATE, SCRIPT_SD, chances, mean_log_odds
from dia_demo.services.listening.verdict.result import evaluate
from tests.services.listening.verdict.test_verdicts import CLAIM, plan_of, votes_for


def test_the_better_side_wins_at_the_rate_that_is_told():
    taste = np.random.default_rng(1).normal(mean_log_odds(), SCRIPT_SD, 200_000)
    assert np.mean(1 / (1 + np.exp(-taste))) == pytest.approx(RATE, abs=0.005)


@pytest.mark.long
@pytest.mark.parametrize(
    "scripts, seeds, settings, ties", [(12, 1, 2, 0.3), (12, 3, 2, 0.0), (12, 3, 3, 0.2)]
)
def test_the_plan_promises_what_verdicts_give(scripts, seeds, settings, ties):
    random, tests, found = np.random.default_rng(5), 200, 0
    plan = plan_of(scripts, seeds, settings)
    for _ in range(tests):
        taste = random.normal(0, SCRIPT_SD / np.sqrt(2), (scripts, settings))
        taste[:, 0] += mean_log_odds()

        def better(trial, taste=taste):
            if random.random() < ties:
                return None
            first, second = trial.settings
            lead = taste[trial.script, first] - taste[trial.script, second]
            return first if random.random() < 1 / (1 + np.exp(-lead)) else second

        sentence = evaluate(plan, votes_for(plan, better)).sentence
        found += sentence.startswith(CLAIM) and sentence.split(": ")[1].startswith("top-k 2 ")
    assert found / tests == pytest.approx(chances(scripts, seeds, settings, ties).found, abs=0.1)


def test_more_votes_never_find_much_less_where_scripts_are_many():
    """An even number of seeds is not wasted: with the sign alone, a fourth vote found no more."""
    found = [chances(16, seeds, ties=0.0).found for seeds in (1, 2, 3, 4, 5)]
    assert all(more > fewer for fewer, more in zip(found, found[1:], strict=False))


def test_ties_and_more_settings_find_less():
    assert chances(12, 1, ties=0.3).found < chances(12, 1, ties=0.0).found - 0.1
    assert chances(12, 1, settings=3, ties=0.0).found < chances(12, 1, ties=0.0).found - 0.1


def test_scripts_without_a_majority_are_foretold():
    assert chances(10, 2, ties=0.0).too_few > 0.3 > chances(10, 3, ties=0.0).too_few == 0
