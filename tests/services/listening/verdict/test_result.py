"""Results: votes count for the setting behind the clip, against guessing, as a ranking."""

from __future__ import annotations

import pytest

from dia_demo.errors import InputError
from dia_demo.services.listening.comparison import Comparison
from dia_demo.services.listening.plan.plan import make_plan
from tests.helpers.comparisons import HEARD, SCRIPTS, make


def test_votes_count_for_the_side_behind_the_clip(voting):
    while trial := voting.next_trial():
        # Always the hotter side, wherever it is.
        secret = voting.plan.secrets[trial.id]
        voting.vote(trial.id, "A" if secret.flip else "B", HEARD, 3, "warmer")
    overall = voting.result().overall
    assert (overall.first, overall.second, overall.ties) == (0, 4, 0)
    assert overall.p == pytest.approx(0.5), "four votes, but only two scripts"
    assert "Too few scripts" in voting.result().sentence
    assert {one.heard["AB".index(one.vote.vote)] for one in voting.revealed_pairs()} == {"B"}


def test_ties_are_reported_apart(voting):
    for trial in voting.plan.trials:
        voting.vote(trial.id, "none", HEARD)
    overall = voting.result().overall
    assert (overall.decided, overall.ties, overall.rate) == (0, 4, None)


def test_results_are_split_by_script_as_well_as_by_seed(voting):
    for trial in voting.plan.trials:
        voting.vote(trial.id, "A", HEARD)
    result = voting.result()
    assert [one.label for one in result.by_script] == ["script 1", "script 2"]
    assert [one.label for one in result.by_seed] == ["seed 5", "seed 6"]
    for part in (result.by_script, result.by_seed):
        assert sum(one.first for one in part) == result.overall.first
    assert result.listening_seconds == 4 * 27


def test_abx_answers_are_scored_against_guessing(base, synthesis, tmp_path):
    plan = make_plan("abx", [base, base.change({"top_k": 3})], SCRIPTS[:1], tuple(range(6)))
    comparison = Comparison.create(tmp_path / "dir", plan, synthesis)
    make(comparison, synthesis)
    with pytest.raises(InputError, match="A, B"):
        comparison.vote(comparison.plan.trials[0].id, "none", HEARD)
    for trial in comparison.plan.trials:
        comparison.vote(trial.id, "AB"[comparison.plan.secrets[trial.id].x], HEARD)
    result = comparison.result()
    assert result.overall.first == 6 and result.overall.p == pytest.approx(1 / 64)
    assert "does not show that the setting itself is audible" in result.sentence
    assert "The difference is audible" not in result.sentence
    assert Comparison.open(tmp_path / "dir").result() == result


@pytest.mark.long
@pytest.mark.parametrize(
    "common, side",
    [({"temperature": 0.0}, {"top_k": 3}), ({}, {"speed": 1.3}), ({"top_k": 1}, {"top_p": 0.5})],
    ids=["greedy", "speed", "the same codes"],
)
def test_abx_shows_a_difference_where_no_draw_makes_one(base, synthesis, tmp_path, common, side):
    base = base.change(common)
    plan = make_plan("abx", [base, base.change(side)], SCRIPTS[:1], tuple(range(6)))
    comparison = Comparison.create(tmp_path / "dir", plan, synthesis)
    make(comparison, synthesis)
    for trial in comparison.plan.trials:
        comparison.vote(trial.id, "AB"[comparison.plan.secrets[trial.id].x], HEARD)
    assert "The difference is audible on this script" in comparison.result().sentence


def test_an_open_test_shows_counts_alone(voting):
    first, *rest = voting.plan.trials
    voting.vote(first.id, "A", HEARD, 3)
    found = voting.result()
    assert found.open and (found.voted, found.pairs) == (1, 4)
    assert found.overall is None and found.mean_strength is None
    assert not (found.by_script or found.by_seed or found.by_pair or found.ranking)
    assert found.sentence == "The test is open: 1 of 4 pairs judged."
    voting.reveal()
    assert not voting.result().open and voting.result().overall.decided == 1


def test_a_round_ranks_its_settings(base, synthesis, tmp_path):
    settings = [base.change({"top_k": k}) for k in (2, 20, 60)]
    plan = make_plan("preference", settings, SCRIPTS[:1], (1, 2, 3))
    comparison = Comparison.create(tmp_path / "dir", plan, synthesis)
    make(comparison, synthesis)
    for trial in comparison.plan.trials:
        # The later letter wins always.
        secret = comparison.plan.secrets[trial.id]
        comparison.vote(trial.id, "A" if secret.flip else "B", HEARD)
    result = comparison.result()
    assert [one.setting for one in result.ranking] == ["C", "B", "A"] and result.softened
    assert [count.label for count in result.by_pair] == [
        "A against B", "A against C", "B against C",
    ]  # fmt: skip
    assert all(count.second == 3 for count in result.by_pair)


def test_a_round_that_was_not_heard_to_the_end_ranks_nothing(base, synthesis, tmp_path):
    settings = [base.change({"top_k": k}) for k in (2, 20, 60)]
    plan = make_plan("preference", settings, SCRIPTS[:1], (1,))
    comparison = Comparison.create(tmp_path / "dir", plan, synthesis)
    make(comparison, synthesis)
    comparison.vote(comparison.next_trial().id, "A", HEARD)
    comparison.reveal()
    result = comparison.result()
    assert result.ranking == () and "not every setting" in result.sentence
    assert result.notes[0].startswith("The votes cover only 1 of 3 pairs.")
