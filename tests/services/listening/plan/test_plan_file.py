"""Damaged plan files: one message, whatever is wrong."""

from __future__ import annotations

import json

import pytest

from dia_demo.errors import InputError
from dia_demo.services.listening.comparison import Comparison


@pytest.mark.parametrize(
    "damage, message",
    [
        (lambda raw: raw.update(version=2), "version 2"),
        (lambda raw: raw.update(format="other"), "does not describe"),
        (lambda raw: raw.pop("trials"), "damaged"),
        (lambda raw: raw.update(trials=[]), "damaged"),
        (lambda raw: raw["trials"][0].update(clips=["../../x.wav", "y.wav"]), "damaged"),
        (lambda raw: raw["trials"][0].update(settings=[0, 9]), "damaged"),
        (lambda raw: raw["takes"][0].update(id="../../etc"), "damaged"),
        (lambda raw: raw["takes"].pop(), "damaged"),
        (lambda raw: raw.update(sealed="AAAA"), "damaged"),
        (lambda raw: raw.update(voice_file="/etc/passwd"), "damaged"),
        (lambda raw: raw["settings"][0]["params"].update(warmth=1), "damaged"),
        (lambda raw: raw["settings"][0]["params"].update(temperature="hot"), "damaged"),
        (lambda raw: raw["settings"][0]["runtime"].update(precision="int7"), "precision"),
    ],
)
def test_damaged_plans_get_one_message(voting, damage, message):
    path = voting.folder / "plan.json"
    raw = json.loads(path.read_text())
    damage(raw)
    path.write_text(json.dumps(raw))
    with pytest.raises(InputError, match=message):
        Comparison.open(voting.folder)


def test_a_plan_from_before_the_choice_to_normalise_is_read(voting):
    path = voting.folder / "plan.json"
    raw = json.loads(path.read_text())
    for setting in raw["settings"]:
        del setting["normalise"]
    path.write_text(json.dumps(raw))
    assert not any(one.normalise for one in Comparison.open(voting.folder).plan.settings)


@pytest.mark.parametrize(
    "text",
    ["", "{", "[1]", "null", "[" * 100_000, '{"a": 1e999}', " " * 8_000_001],
    ids=["empty", "cut", "a list", "null", "nested", "infinity", "8 MB"],
)
def test_what_is_no_plan_gets_one_message(voting, text):
    (voting.folder / "plan.json").write_text(text)
    with pytest.raises(InputError):
        Comparison.open(voting.folder)
