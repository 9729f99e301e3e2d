"""Damaged plan files: one message, whatever is wrong."""

from __future__ import annotations

import json

import pytest

from dia_demo.errors import InputError
from dia_demo.services.listening.comparison import Comparison
from dia_demo.services.listening.plan.plan_file import plan_bytes, plan_from_bytes


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


def test_a_plan_of_an_earlier_version_is_read(voting):
    path = voting.folder / "plan.json"
    raw = json.loads(path.read_text())
    for setting in raw["settings"]:
        for name in ("normalise", "voice_s1", "voice_s2"):
            del setting[name]
    path.write_text(json.dumps(raw))
    for setting in Comparison.open(voting.folder).plan.settings:
        assert (setting.normalise, setting.voice_s1, setting.voice_s2) == (False, "", "")


def test_the_voices_of_a_setting_are_in_the_file(voting):
    path = voting.folder / "plan.json"
    raw = json.loads(path.read_text())
    raw["settings"][0]["voice_s1"] = "rms deep"
    path.write_text(json.dumps(raw))
    plan = Comparison.open(voting.folder).plan
    assert plan.settings[0].voice_s1 == "rms deep"
    assert plan_from_bytes(plan_bytes(plan)).settings == plan.settings


@pytest.mark.parametrize(
    "text",
    ["", "{", "[1]", "null", "[" * 100_000, '{"a": 1e999}', " " * 8_000_001],
    ids=["empty", "cut", "a list", "null", "nested", "infinity", "8 MB"],
)
def test_what_is_no_plan_gets_one_message(voting, text):
    (voting.folder / "plan.json").write_text(text)
    with pytest.raises(InputError):
        Comparison.open(voting.folder)
