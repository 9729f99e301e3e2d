"""One comparison for everybody who opens the page: votes and reveal are each visitor's own."""

from __future__ import annotations

import csv
import json
import shutil
from collections import Counter
from dataclasses import replace

import pytest

from dia_demo.cli import main
from dia_demo.errors import InputError
from dia_demo.services.listening import archive
from dia_demo.services.listening.audience import listeners
from dia_demo.services.listening.audience.listeners import own_order
from dia_demo.services.listening.comparison import Comparison
from dia_demo.services.listening.plan.plan import make_plan
from dia_demo.services.listening.store import ComparisonStore
from dia_demo.services.people import new_key
from tests.helpers.comparisons import HEARD, SCRIPTS


@pytest.fixture
def shared(finished, synthesis, tmp_path):
    """A comparison for everybody, on one server after the other."""
    shutil.copytree(finished.folder, tmp_path / "dir")

    def start() -> ComparisonStore:
        return ComparisonStore(tmp_path / "kept", synthesis, shared=tmp_path / "dir")

    return start


def heard_by(comparisons: ComparisonStore, key: str) -> Comparison:
    return comparisons.list(key)[0][1]


def test_each_visitor_of_a_shared_comparison_has_votes_of_their_own(shared):
    comparisons, ann, ben = shared(), new_key(), new_key()
    trial = heard_by(comparisons, ann).next_trial()
    heard_by(comparisons, ann).vote(trial.id, "A", HEARD)
    assert heard_by(comparisons, ben).votes == {}
    heard_by(comparisons, ben).vote(trial.id, "B", HEARD)
    with pytest.raises(InputError, match="already"):
        heard_by(comparisons, ben).vote(trial.id, "A", HEARD)
    again = shared()
    assert [heard_by(again, key).votes[trial.id].vote for key in (ann, ben)] == ["A", "B"]
    assert heard_by(again, new_key()).votes == {}


def test_who_ends_a_shared_comparison_ends_it_for_themselves(shared):
    comparisons, ann, ben = shared(), new_key(), new_key()
    heard_by(comparisons, ben).reveal()
    assert heard_by(comparisons, ben).is_unblinded and not heard_by(comparisons, ann).is_unblinded
    trial = heard_by(comparisons, ann).next_trial()
    heard_by(comparisons, ann).vote(trial.id, "A", HEARD)
    with pytest.raises(InputError, match="votes are no longer accepted"):
        heard_by(comparisons, ben).vote(trial.id, "A", HEARD)
    again = shared()
    assert heard_by(again, ben).is_unblinded and not heard_by(again, ann).is_unblinded
    assert not Comparison.open(heard_by(again, ann).folder).is_unblinded


def test_a_zip_of_a_shared_comparison_holds_ones_own_votes_alone(shared, tmp_path):
    comparisons, ann, ben = shared(), new_key(), new_key()
    for key, answer in ((ann, "A"), (ben, "B")):
        for trial in heard_by(comparisons, key).plan.trials:
            heard_by(comparisons, key).vote(trial.id, answer, HEARD)
    (name, _), *_ = comparisons.list(ben)
    archive.import_zip(comparisons.export(ben, name), tmp_path / "exported")
    votes = Comparison.open(tmp_path / "exported").votes
    assert {vote.vote for vote in votes.values()} == {"B"}


def test_listeners_are_bounded(shared, monkeypatch):
    monkeypatch.setattr(listeners, "MAX_LISTENERS", 2)
    comparisons, keys = shared(), [new_key() for _ in range(3)]
    for key in keys:
        heard_by(comparisons, key)  # Looking leaves nothing behind.
    trial = heard_by(comparisons, keys[0]).next_trial()
    for key in keys[:2]:
        heard_by(comparisons, key).vote(trial.id, "A", HEARD)
    with pytest.raises(InputError, match="2 people have voted here"):
        heard_by(comparisons, keys[2]).vote(trial.id, "A", HEARD)


def test_the_owners_reveal_ends_the_test_for_everybody(shared, capsys):
    """From another process: `compare --score DIR --reveal` while the app goes on."""
    comparisons, ann, ben = shared(), new_key(), new_key()
    first, second, *_ = heard_by(comparisons, ann).plan.trials
    heard_by(comparisons, ann).vote(first.id, "A", HEARD)
    ben_listens = heard_by(comparisons, ben)
    assert main.main(["compare", "--score", str(comparisons.shared.folder), "--reveal"]) == 0
    for late in (ben_listens, heard_by(comparisons, ann)):
        with pytest.raises(InputError, match="has ended .* was not counted"):
            late.vote(second.id, "A", HEARD)
    again = shared()
    assert heard_by(again, ben).is_unblinded and not heard_by(again, ben).votes
    assert set(heard_by(again, ann).votes) == {first.id}
    capsys.readouterr()


def test_a_run_of_the_server_does_not_undo_a_reveal(voting):
    """The command line ends the test while this process goes on saving the plan."""
    Comparison.open(voting.folder).reveal()
    voting.remove_sound()
    assert voting.plan.revealed and Comparison.open(voting.folder).plan.revealed


def test_each_listener_has_an_order_and_sides_of_their_own(finished, two_settings):
    plan = make_plan("preference", two_settings, SCRIPTS[:1], range(12))
    heard = {name: own_order(plan, name) for name in map(str, range(40))}
    assert len({tuple(trial.id for trial in one.trials) for one in heard.values()}) > 30
    first_sides = []
    for name, one in heard.items():
        assert own_order(plan, name) == one
        flips = [one.secrets[trial.id].flip for trial in one.trials]
        assert sum(flips) == 6, "each setting is clip 1 equally often"
        first_sides.append(one.secrets[plan.trials[0].id].flip)
        for trial in one.trials:
            by_clip = {
                clip: one.secrets[trial.id].setting_of(trial, at)
                for at, clip in enumerate(trial.clips)
            }
            (old,) = (base for base in plan.trials if base.id == trial.id)
            for at, clip in enumerate(old.clips):
                assert by_clip[clip] == plan.secrets[old.id].setting_of(old, at)
    assert 10 < sum(first_sides) < 30
    assert own_order(replace(plan, salt=""), "1") == replace(plan, salt=""), "as it was voted on"


def test_the_votes_of_all_listeners_come_as_one_table(shared, tmp_path, capsys):
    comparisons, keys = shared(), [new_key() for _ in range(3)]
    for key, answer in zip(keys, ("A", "B", "none"), strict=True):
        for trial in heard_by(comparisons, key).plan.trials:
            heard_by(comparisons, key).vote(trial.id, answer, HEARD)
    folder, table = str(comparisons.shared.folder), tmp_path / "votes.csv"
    assert main.main(["compare", "--score", folder, "--csv", str(table)]) == 0
    with open(table, encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 12 and Counter(row["listener"] for row in rows) == dict.fromkeys("123", 4)
    assert {row["answer"] for row in rows if row["listener"] == "1"} in ({"1"}, {"2"}, {"none"})
    for row in rows:
        chosen = {"1": row["clip_1"], "2": row["clip_2"], "none": ""}[row["answer"]]
        assert row["chosen"] == chosen and row["time"]
    one_more = new_key()
    heard_by(comparisons, one_more).vote(trial.id, "A", HEARD)
    assert main.main(["compare", "--score", folder, "--csv", str(table)]) == 2
    assert "end the test for all 4 listeners" in capsys.readouterr().err


def test_the_command_line_scores_every_listener(shared, capsys):
    comparisons, ann, ben = shared(), new_key(), new_key()
    for key in (ann, ben):
        heard_by(comparisons, key).vote(heard_by(comparisons, key).next_trial().id, "A", HEARD)
    folder = str(comparisons.shared.folder)
    assert main.main(["compare", "--score", folder, "--json"]) == 0
    scored = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert scored["voted"] == 0 and [one["voted"] for one in scored["listeners"]] == [1, 1]
    assert main.main(["compare", "--score", folder]) == 0
    assert "Listener 2 of 2" in capsys.readouterr().out
