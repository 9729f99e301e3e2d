"""Votes: what counts as one, and that none is lost once it was given."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest
import soundfile

from dia_demo.errors import InputError
from dia_demo.services.listening.comparison import Comparison
from dia_demo.services.listening.votes import votes as votes_module
from tests.helpers.comparisons import HEARD


def with_clips_of(seconds: int, comparison: Comparison) -> Comparison:
    for path in (comparison.folder / "clips").iterdir():
        soundfile.write(path, np.zeros(seconds * 8000, np.int16), 8000)
    return comparison


@pytest.mark.parametrize(
    "answer, heard, strength, message",
    [
        ("A", {"A": 9.0}, None, "Listen to each clip"),
        ("A", {}, None, "Listen to each clip"),
        ("A", {"A": 0.1, "B": 9.0}, None, "Listen to each clip"),
        ("C", HEARD, None, "A vote is one of"),
        ("X", HEARD, None, "A vote is one of"),
        ("A", HEARD, 4, "strength"),
    ],
)
def test_an_invalid_vote_is_refused(voting, answer, heard, strength, message):
    with pytest.raises(InputError, match=message):
        voting.vote(voting.plan.trials[0].id, answer, heard, strength)
    assert not (voting.folder / "votes.csv").exists() and not voting.votes


def test_ten_seconds_of_a_long_clip_are_enough(voting):
    long_clips = with_clips_of(14, voting)
    trial = long_clips.plan.trials[0]
    with pytest.raises(InputError, match="Listen to each clip to the end, or for 10 s"):
        long_clips.vote(trial.id, "A", {"A": 9.8, "B": 12.0})
    assert long_clips.vote(trial.id, "A", {"A": 10.0, "B": 12.0}).seconds_a == 10.0


def test_a_short_clip_must_be_heard_to_its_end(voting):
    short_clips = with_clips_of(4, voting)
    trial = short_clips.plan.trials[0]
    with pytest.raises(InputError, match="Listen to each clip to the end"):
        short_clips.vote(trial.id, "A", {"A": 3.7, "B": 4.0})
    assert short_clips.vote(trial.id, "A", {"A": 3.95, "B": 4.0})


def test_seconds_that_were_repeated_do_not_open_the_vote(voting):
    long_clips = with_clips_of(14, voting)
    trial, heard = long_clips.plan.trials[0], {"A": 30.0, "B": 30.0}
    with pytest.raises(InputError, match="Listen to each clip"):
        long_clips.vote(trial.id, "A", heard, covered={"A": 3.0, "B": 12.0})
    vote = long_clips.vote(trial.id, "A", heard, covered={"A": 11.0, "B": 12.0})
    assert vote.seconds_a == 30.0, "the record has all the seconds"


def test_nobody_votes_twice_or_after_the_reveal(voting):
    first, second = voting.plan.trials[:2]
    voting.vote(first.id, "A", HEARD)
    with pytest.raises(InputError, match="already"):
        voting.vote(first.id, "B", HEARD)
    voting.reveal()
    with pytest.raises(InputError, match="votes are no longer accepted"):
        voting.vote(second.id, "A", HEARD)
    assert Comparison.open(voting.folder).plan.revealed and len(voting.revealed_pairs()) == 4


def test_votes_are_on_the_disk_before_they_count(voting, monkeypatch):
    synced = []
    real = votes_module.os.fsync
    monkeypatch.setattr(votes_module.os, "fsync", lambda fd: synced.append(fd) or real(fd))
    voting.vote(voting.plan.trials[0].id, "A", HEARD)
    assert len(synced) == 2, "the line, and the name of a new file"
    assert set(Comparison.open(voting.folder).votes) == {voting.plan.trials[0].id}


def test_a_crash_in_the_middle_of_a_line_loses_no_other_vote(voting):
    first, second, third, _ = voting.plan.trials
    voting.vote(first.id, "A", HEARD, 2, 'said "yes", twice\nthen =1+1')
    path = voting.folder / "votes.csv"
    path.write_bytes(path.read_bytes() + f"{second.id},2,pref".encode())
    reopened = Comparison.open(voting.folder)
    assert set(reopened.votes) == {first.id}
    reopened.vote(third.id, "B", HEARD, 1, "=2+2")
    last = Comparison.open(voting.folder)
    assert set(last.votes) == {first.id, third.id}
    assert last.votes[first.id].note == 'said "yes", twice then =1+1'
    assert last.votes[third.id].note == "=2+2" and "'=2+2" in path.read_text()


def test_a_file_of_version_1_opens_and_goes_on_with_its_columns(voting):
    first, second, *_ = voting.plan.trials
    voting.vote(first.id, "A", HEARD, 2)
    path = voting.folder / "votes.csv"
    lines = list(csv.reader(path.read_text().splitlines()))
    assert lines[0][-2:] == ["rater", "version"] and lines[1][-2:] == ["owner", "2"]
    path.write_bytes(votes_module.csv_lines([line[:-2] for line in lines]))
    older = Comparison.open(voting.folder)
    assert older.votes[first.id].rater == "owner"
    older.vote(second.id, "B", HEARD)
    assert len({len(line) for line in csv.reader(path.read_text().splitlines())}) == 1
    assert set(Comparison.open(voting.folder).votes) == {first.id, second.id}


def test_a_vote_carries_all_that_rebuilds_its_trial(voting):
    trial = voting.plan.trials[0]
    vote = voting.vote(trial.id, "B", HEARD, 1)
    settings = [json.loads(vote.settings_a), json.loads(vote.settings_b)]
    assert sorted(one["temperature"] for one in settings) == [0.7, 1.9]
    assert (vote.seed, vote.order, vote.script) == (trial.seed, 1, trial.script + 1)
    assert len(vote.script_sha256) == 64 and vote.time and vote.seconds_b == 9.0
