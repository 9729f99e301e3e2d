"""Files that commit e053a3e wrote still open: classes may be renamed, fields on disk may not.

The folder `written_by_e053a3e` holds two comparisons that it made and that were voted on there,
without their clips, the head of a take, and two verdicts of self-checks on a stand-in for a card.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import soundfile

from dia_demo.accelerator.selfcheck.report import SelfCheckReport, StageVerdict
from dia_demo.accelerator.selfcheck.verdicts import VerdictStore
from dia_demo.services.earlier.take_metadata import form_values, read_take
from dia_demo.services.listening.comparison import Comparison
from dia_demo.untrusted import parse_as

WRITTEN = Path(__file__).with_name("written_by_e053a3e")


@pytest.fixture
def comparison_of(tmp_path):
    """A function that opens one of the old comparisons, with silent clips in place of its own."""

    def open_copy(name: str) -> Comparison:
        folder = shutil.copytree(WRITTEN / name, tmp_path / name)
        (folder / "clips").mkdir()
        for trial in json.loads((folder / "plan.json").read_text())["trials"]:
            for clip in trial["clips"]:
                soundfile.write(folder / "clips" / clip, np.zeros(32000, np.int16), 16000)
        return Comparison.open(folder)

    return open_copy


def test_an_old_comparison_goes_on_where_it_was(comparison_of):
    old = comparison_of("preference")
    assert old.result().open and old.result().voted == 3 and not old.is_unblinded
    assert not old.failed_takes() and all(trial.made for trial in old.plan.trials)
    waiting = old.next_trial()
    old.vote(waiting.id, "B", {"A": 9.0, "B": 9.0})
    overall = old.result().overall
    assert (overall.first, overall.second, overall.ties) == (0, 3, 1)


def test_a_vote_after_two_seconds_of_listening_still_counts(comparison_of):
    """Two seconds of each clip once were enough."""
    folder = comparison_of("preference").folder
    votes = folder / "votes.csv"
    votes.write_text(votes.read_text().replace(",9.0,9.0,9.0,", ",2.0,2.0,0.0,"))
    old = Comparison.open(folder)
    assert [vote.seconds_a for vote in old.votes.values()] == [2.0] * 3


def test_the_sides_of_an_old_comparison_are_read(comparison_of):
    old = comparison_of("preference")
    old.reveal()
    pairs = old.revealed_pairs()
    assert ["".join(pair.heard) for pair in pairs][:3] == ["BA", "BA", "AB"]
    assert [pair.vote.winner if pair.vote else None for pair in pairs] == ["B", "", "B", None]
    assert pairs[0].vote.note == "=a note, with comma"
    assert [len(pair.facts) for pair in pairs] == [2] * 4
    assert all(side["model"] == "nano" for pair in pairs for side in pair.facts)
    assert pairs[0].gains_db == pytest.approx((0.0, -0.455), abs=1e-3)


def test_an_old_abx_test_has_its_result(comparison_of):
    old = comparison_of("abx")
    assert old.is_unblinded and old.result().overall.rate == 0.25
    assert [setting.speed for setting in old.plan.settings] == [1.0, 1.2]
    assert {pair.x for pair in old.revealed_pairs()} <= {"A", "B"}


def test_an_old_take_fills_the_form():
    take = read_take(WRITTEN / "take.wav")
    values = form_values(take)
    assert values["script"] == "[S1] Hi." and values["max_tokens"] == 40
    assert (values["seed"], values["model"], values["precision"]) == (3, "nano", "float32")
    assert take["figures"]["finish_reason"] == "end" and take["voice_transcript"] is None


def test_old_verdicts_are_read():
    store = VerdictStore(WRITTEN / "verdicts.json")
    raw = json.loads(store.path.read_text())["reports"]
    passed, failed = (parse_as(SelfCheckReport, report) for report in raw)
    assert (
        store.note == "" and store.find(passed.key) == passed and store.find(failed.key) == failed
    )
    assert passed.passed and passed.worth_it and passed.stages[4].verdict is StageVerdict.NOTE
    assert not failed.passed and failed.problems[0].startswith("stage 1 ")
    assert [json.loads(json.dumps(report.to_dict())) for report in (passed, failed)] == raw
