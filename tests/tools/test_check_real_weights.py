"""The check of the real weights: a stand-in hub, random weights, takes of a second."""

from __future__ import annotations

import json
import subprocess

import numpy as np
import pytest

from dia_demo.text.checks.script_check import check_script
from tests.helpers.models.checkpoints import write_small
from tests.helpers.stand_ins.stand_in_hub import COMMIT, NAME, Hub, isolate, point_at, running_hub
from tools import check_real_weights
from tools.make_random_dia import CODECS, TINY, write_codec
from tools.real_weights import codes, takes
from tools.real_weights.dialogues import DIALOGUES

FRAMES = 40


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """A hub that has a small Dia and the codec; its address for this process and its children."""
    folder = tmp_path_factory.mktemp("hub")
    stand_in = Hub()
    stand_in.upload(write_small(folder / "dia", config=TINY))
    write_codec(folder / "codec", CODECS["tiny"])
    stand_in.upload(folder / "codec", "descript/dac_44khz")
    with pytest.MonkeyPatch.context() as patch, running_hub(stand_in) as url:
        isolate(patch, folder / "cache")
        point_at(patch, url)
        patch.setenv("HF_ENDPOINT", url)
        patch.setenv("HF_HUB_CACHE", str(folder / "cache"))
        yield stand_in


def check(work, *options) -> int:
    few = ("--dialogues", "1", "--precision", "int8", "--max-tokens", "80", "--frames", str(FRAMES))
    return check_real_weights.main([str(work), "--model", NAME, *few, *options])


@pytest.fixture(scope="module")
def work(environment, tmp_path_factory):
    """The folder after a whole run."""
    folder = tmp_path_factory.mktemp("work")
    assert check(folder) == 0
    return folder


@pytest.mark.long
def test_the_report_has_a_row_for_each_precision(work):
    text = (work / "report.md").read_text()
    assert f"### {NAME} at revision {COMMIT}" in text
    assert "| int8 | 1 | " in text and "Failed" not in text


@pytest.mark.long
def test_the_codes_are_those_of_transformers(work):
    text = (work / "report.md").read_text()
    assert f"all of {FRAMES} frames equal in 9 channels" in text


@pytest.mark.long
def test_a_take_is_kept_with_its_figures(work):
    take = json.loads((work / "takes" / "int8" / "00.json").read_text())
    assert take["precision"] == "int8" and take["seed"] == 0 and take["heard"] is not None
    assert (work / "takes" / "int8" / "00.flac").stat().st_size > 1000


@pytest.mark.long
def test_a_second_run_makes_nothing_again(work, environment, monkeypatch):
    environment.asked.clear()
    run, started = subprocess.run, []

    def watched(command, **options):
        started.append(command)
        return run(command, **options)

    monkeypatch.setattr(takes.subprocess, "run", watched)
    assert check(work) == 0
    assert started == [] and environment.requests() == []


def test_a_take_that_fails_does_not_stop_the_others(environment, tmp_path, monkeypatch):
    def fail(*_):
        raise RuntimeError("error: Not enough memory")

    monkeypatch.setattr(takes, "say", fail)
    monkeypatch.setattr(check_real_weights, "compare_codes", lambda *_: None)
    assert check(tmp_path, "--dialogues", "2") == 1
    text = (tmp_path / "report.md").read_text()
    assert text.count("error: Not enough memory") == 2 and "dialogue 1" in text


@pytest.mark.parametrize(
    "code, message",
    [
        ("import sys; sys.exit('error: The disk is full.')", "^error: The disk is full.$"),
        ("import os; os.kill(os.getpid(), 9)", "terminated by signal 9, most likely because"),
    ],
)
def test_a_process_that_fails_says_why(code, message):
    with pytest.raises(RuntimeError, match=message):
        takes.python("-c", code)


def test_a_model_that_cannot_be_fetched_is_one_sentence(environment, tmp_path, capsys):
    assert check(tmp_path, "--model", "owner/other") == 1
    assert "The hub has no model owner/other" in capsys.readouterr().err


def test_the_first_code_that_differs_is_named():
    ours = np.arange(20).reshape(10, 2)
    theirs = ours.copy()
    theirs[4:, 1] = 0
    text, are_equal = codes.describe_difference(ours, theirs)
    assert not are_equal and "equal up to frame 4, where channel 1 differs; 70.0%" in text


def test_an_earlier_end_is_named():
    ours = np.arange(20).reshape(10, 2)
    text, are_equal = codes.describe_difference(ours, ours[:8])
    assert not are_equal and "ours end after 10 frames, theirs after 8" in text


@pytest.mark.parametrize("script", DIALOGUES)
def test_a_dialogue_is_as_dia_wants_it(script):
    assert [finding.message for finding in check_script(script, max_seconds=35).findings] == []
