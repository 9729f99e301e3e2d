"""One comparison for everybody who opens the page: votes and reveal are each visitor's own."""

from __future__ import annotations

import json
import shutil

import pytest

from dia_demo.cli import main
from dia_demo.errors import InputError
from dia_demo.services.listening import archive, comparison
from dia_demo.services.listening.comparison import Comparison
from dia_demo.services.listening.store import ComparisonStore, new_key
from tests.helpers.comparisons import HEARD


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
    monkeypatch.setattr(comparison, "MAX_LISTENERS", 2)
    comparisons, keys = shared(), [new_key() for _ in range(3)]
    for key in keys:
        heard_by(comparisons, key)  # Looking leaves nothing behind.
    trial = heard_by(comparisons, keys[0]).next_trial()
    for key in keys[:2]:
        heard_by(comparisons, key).vote(trial.id, "A", HEARD)
    with pytest.raises(InputError, match="2 people have voted here"):
        heard_by(comparisons, keys[2]).vote(trial.id, "A", HEARD)


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
