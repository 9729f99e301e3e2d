"""What a result claims, over plans and votes made up: false alarms, rounds, corrections, ties."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dia_demo.config import GenerationParams
from dia_demo.services.listening.plan.plan import NAMES, make_plan
from dia_demo.services.listening.plan.setting import Setting
from dia_demo.services.listening.verdict.result import evaluate
from dia_demo.services.listening.votes.votes import make_vote

HEARD = {"A": 9.0, "B": 9.0}
CLAIM = "Clear"


def plan_of(scripts: int, seeds: int, settings: int = 2):
    """A plan that nobody makes: the result depends on its trials and their sides alone."""
    sides = [Setting(GenerationParams(top_k=2 + index)) for index in range(settings)]
    texts = tuple(f"[S1] Script {index}." for index in range(scripts))
    return make_plan("preference", sides, texts, tuple(range(seeds)))


def votes_for(plan, better):
    """Votes on every trial. better(trial): the index of the setting that wins, None for a tie."""
    votes = {}
    # Not in the plan's own order, which is drawn at random: the votes follow from the test's seed.
    for trial in sorted(plan.trials, key=lambda trial: (trial.script, trial.seed, trial.settings)):
        winner = better(trial)
        secret = plan.secrets[trial.id]
        answer = "none"
        if winner is not None:
            answer = "AB"[secret.setting_of(trial, 0) != winner]
        votes[trial.id] = make_vote(plan, trial, answer, None, "", HEARD)
    return votes


def chosen(trial, taste, random) -> int:
    """The setting that wins a trial when taste[script] is the log odds of its first one."""
    first_wins = random.random() < 1 / (1 + np.exp(-taste[trial.script]))
    return trial.settings[0 if first_wins else 1]


@pytest.mark.long
@pytest.mark.parametrize("scripts, seeds", [(1, 20), (2, 10), (4, 5), (20, 1)])
def test_taste_that_differs_by_script_raises_few_false_alarms(scripts, seeds):
    """Nobody is better on average; on each script one side is, by a normal draw of one logit."""
    random = np.random.default_rng(20 * scripts + seeds)
    plan, tests, alarms = plan_of(scripts, seeds), 600, 0
    for _ in range(tests):
        taste = random.normal(0, 1, scripts)
        votes = votes_for(plan, lambda trial, taste=taste: chosen(trial, taste, random))
        alarms += evaluate(plan, votes).sentence.startswith(CLAIM)
    assert alarms / tests <= 0.05


@pytest.mark.parametrize("scripts, seeds", [(1, 20), (12, 1)])
@pytest.mark.slow
def test_a_round_without_a_better_setting_is_seldom_settled(scripts, seeds):
    random = np.random.default_rng(scripts)
    plan, tests, alarms = plan_of(scripts, seeds, 3), 200, 0
    for _ in range(tests):
        taste = random.normal(0, 1, (scripts, 3))
        votes = votes_for(
            plan,
            lambda trial, taste=taste: chosen(
                trial, taste[:, trial.settings[0]] - taste[:, trial.settings[1]], random
            ),
        )
        alarms += evaluate(plan, votes).sentence.startswith(CLAIM)
    assert alarms / tests <= 0.05


def test_a_preference_across_scripts_is_reported_for_those_scripts():
    plan = plan_of(10, 2)
    votes = votes_for(plan, lambda trial: 1 if trial.script < 9 else 0)
    found = evaluate(plan, votes)
    assert found.sentence == (
        "Clear preference: top-k 3 was chosen in 18 of 20 pairs and is ahead on 9 of 10 scripts, "
        "which chance alone does only one time in 47."
    )
    assert found.notes == () and found.overall.p == pytest.approx(0.0215, abs=1e-4)


def test_one_script_many_times_counts_once():
    """A plan from elsewhere may hold it twice, which a plan made here may not."""
    plan = plan_of(8, 1)
    same = replace(plan, scripts=("[S1] The same.",) * 8)
    found = evaluate(same, votes_for(same, lambda trial: 0))
    assert CLAIM not in found.sentence and "on 1 script only" in found.notes[0]
    assert CLAIM in evaluate(plan, votes_for(plan, lambda trial: 0)).sentence


def test_too_few_scripts_give_advice_to_add_scripts():
    plan = plan_of(5, 4)
    found = evaluate(plan, votes_for(plan, lambda trial: 0))
    assert CLAIM not in found.sentence and "Too few scripts" in found.sentence
    assert "on 5 scripts only" in found.notes[0]
    assert "at least 6 scripts before adding seeds" in found.notes[0]
    six = plan_of(6, 1)
    assert evaluate(six, votes_for(six, lambda trial: 0)).notes == ()


def test_rows_of_parts_carry_no_p_value_of_their_own():
    """Of the rows of a null test some were below 0.05 in every third."""
    plan, round_plan = plan_of(8, 8), plan_of(2, 2, 3)
    found = evaluate(plan, votes_for(plan, lambda trial: trial.seed % 2))
    in_round = evaluate(round_plan, votes_for(round_plan, lambda trial: trial.settings[0]))
    rows = [*found.by_script, *found.by_seed, *in_round.by_pair]
    assert len(rows) == 19 and all(row.p is None and row.interval[0] >= 0 for row in rows)


def ranked(wins: dict[tuple[int, int], list[int]], scripts: int):
    """The result of a round: wins[first, second] names the winner on each script."""
    plan = plan_of(scripts, 1, 3)
    return evaluate(plan, votes_for(plan, lambda trial: wins[trial.settings][trial.script]))


def test_first_is_settled_by_the_difference_not_by_intervals_that_lie_apart():
    """Strengths of a round are correlated: their intervals overlap long before their difference
    is in doubt."""
    against_b, against_c = [0] * 14 + [1] * 6, [2] * 6 + [0] * 14
    result = ranked({(0, 1): against_b, (0, 2): against_c, (1, 2): [1] * 10 + [2] * 10}, scripts=20)
    first, second = result.ranking[:2]
    assert first.setting == "A" and first.low < second.high, "the intervals overlap"
    assert result.sentence.startswith(
        "Clear first place: top-k 2 is ahead of top-k 3 on 8 of 8 scripts"
    )


def test_seeds_of_one_script_do_not_settle_a_round():
    plan = plan_of(1, 20, 3)
    result = evaluate(plan, votes_for(plan, lambda trial: trial.settings[0]))
    assert CLAIM not in result.sentence
    assert "top-k 2 leads, but is ahead of top-k 3 on only 1 of 1 script." in result.sentence
    assert "More scripts would settle it, more seeds would not" in result.sentence


def test_equal_strengths_share_the_first_place():
    result = ranked({(0, 1): [0, 1] * 3, (0, 2): [0] * 6, (1, 2): [1] * 6}, 6)
    assert result.sentence == "Top-k 2 and top-k 3 share the first place."
    even = ranked({pair: [pair[0], pair[1]] * 3 for pair in ((0, 1), (0, 2), (1, 2))}, 6)
    assert even.sentence == "Top-k 2, top-k 3 and top-k 4 share the first place."
    assert {one.setting for one in even.ranking} == set(NAMES[:3])
