"""The votes as a table: one row per pair, settings by their values, clips by their numbers."""

from __future__ import annotations

import csv

import pytest

from dia_demo.errors import InputError
from dia_demo.services.listening.archive import export_zip
from dia_demo.services.listening.plan.plan import make_plan
from dia_demo.services.listening.store import ComparisonStore
from dia_demo.services.listening.votes.table import COLUMNS, write_table
from dia_demo.services.listening.votes.votes import make_vote
from dia_demo.services.people import new_key
from tests.helpers.comparisons import HEARD, SCRIPTS


def rows_of(path) -> list[dict]:
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_every_pair_has_a_row(voting, tmp_path):
    first, *_ = voting.plan.trials
    voting.vote(first.id, "A", HEARD, 2, "=warm, “clear”")
    rows = rows_of(write_table(voting.plan, voting.votes, tmp_path / "votes.csv"))
    assert len(rows) == len(voting.plan.trials) and list(rows[0]) == list(COLUMNS)
    assert [row["pair"] for row in rows] == ["1", "2", "3", "4"]
    row = rows[0]
    secret = voting.plan.secrets[first.id]
    names = ["temperature 0.7", "temperature 1.9"]
    assert [row["clip_1"], row["clip_2"]] == (names[::-1] if secret.flip else names)
    assert row["answer"] == "1" and row["chosen"] == row["clip_1"]
    assert row["note"] == "'=warm, “clear”", "a spreadsheet must not run a note"
    assert row["text"] == voting.plan.scripts[first.script] and float(row["seconds_1"]) == 9.0
    assert rows[1]["answer"] == rows[1]["chosen"] == "" and rows[1]["clip_1"] in names


def test_abx_has_its_own_columns(two_settings, tmp_path):
    plan = make_plan("abx", two_settings, SCRIPTS[:1], (1, 2))
    trial = plan.trials[0]
    x = plan.secrets[trial.id].x
    vote = make_vote(plan, trial, "AB"[x], None, "", HEARD)
    rows = rows_of(write_table(plan, {trial.id: vote}, tmp_path / "votes.csv"))
    assert rows[0]["correct"] == "yes" and rows[0]["answer"] == rows[0]["clip_x"] == str(x + 1)
    assert rows[0]["chosen"] == "" and float(rows[0]["seconds_x"]) == 9.0


def test_the_table_comes_with_the_end(voting, synthesis, tmp_path):
    store, key = ComparisonStore(tmp_path / "kept", synthesis), new_key()
    identity = store.load(key, export_zip(voting.folder, tmp_path / "x.zip"))
    with pytest.raises(InputError, match="answers"):
        store.export_table(key, identity)
    store.get(key, identity).reveal()
    path = store.export_table(key, identity)
    assert len(rows_of(path)) == 4 and path.is_relative_to(synthesis.settings.served_folder)
    store.delete(key, identity)
    assert not path.exists()
