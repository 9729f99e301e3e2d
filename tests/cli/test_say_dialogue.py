"""`say` with scripts of any length: parts, resume, subtitles, times of words, JSON."""

import json
import signal

import numpy as np
import pytest
import soundfile

from dia_demo.services.judging.judge import Verdict
from tests.helpers.cli import SCRIPT, error_line

TURNS = [f"[S{1 + k % 2}] Line number {k}." for k in range(4)]
# In parts because of its pause.
LONG = " ".join(["(pause 0.2)", *TURNS])
TOKENS = ("--max-tokens", 280)
SHORT_PAUSE = "[S1] Hello there. (pause 1.5) [S2] Hi."


@pytest.fixture(autouse=True)
def every_part_is_good(monkeypatch):
    """A model of random weights says nothing."""
    good = Verdict((), False, 2.0)
    monkeypatch.setattr("dia_demo.services.dialogue.run.judge", lambda *_: good)


def folders(tmp_path) -> list:
    return list(tmp_path.glob(".*.parts"))


def test_a_long_script_is_made_in_parts(say, tmp_path):
    out = ("-o", "a.wav", "--words", "w.json", "--subtitles", "s.vtt", "--json")
    code, stdout, stderr = say(LONG, *TOKENS, "--codes", "c.npy", *out)
    figures = json.loads(stdout)
    assert code == 0, stderr
    samples, rate = soundfile.read("a.wav")
    assert figures["audio_seconds"] == pytest.approx(len(samples) / rate, abs=0.01)
    assert figures["finish_reason"] == "end" and figures["seed"] == 1
    assert [chunk["index"] for chunk in figures["chunks"]] == list(range(len(figures["chunks"])))
    assert set(figures["chunks"][0]) == {
        "index", "script", "seed", "seconds", "words_per_second", "verdict", "remade"
    }  # fmt: skip
    assert " ".join(chunk["script"] for chunk in figures["chunks"]) == " ".join(TURNS)
    assert "times are those of whole turns" in stderr
    words = json.loads((tmp_path / "w.json").read_text())
    assert [word["turn"] for word in words] == list(range(4))
    assert words[0]["word"] == "Line number 0."
    assert {word["speaker"] for word in words} == {"S1", "S2"}
    assert all(a["end"] <= b["start"] + 0.01 for a, b in zip(words, words[1:], strict=False))
    assert (tmp_path / "s.vtt").read_text().startswith("WEBVTT")
    assert np.load("c.npy").shape[1] == 3
    assert not folders(tmp_path)


def test_a_short_script_is_one_take_as_ever(say):
    assert say(SCRIPT, "-o", "a.wav", "--json")[0] == 0
    code, out, _ = say(SCRIPT, "-o", "b.wav", "--chunks", "off", "--json")
    a, b = soundfile.read("a.wav")[0], soundfile.read("b.wav")[0]
    np.testing.assert_array_equal(a, b)
    (chunk,) = json.loads(out)["chunks"]
    assert chunk["script"] == SCRIPT and chunk["remade"] == 0


def test_a_pause_is_made_of_a_short_script_too(say):
    code, out, _ = say(SHORT_PAUSE, "-o", "a.wav", *TOKENS, "--json")
    assert code == 0 and len(json.loads(out)["chunks"]) == 2


@pytest.mark.long
def test_an_interrupted_run_goes_on(say, tmp_path, monkeypatch):
    arguments = (LONG, *TOKENS, "--join", "flowing")
    assert say(*arguments, "-o", "whole.wav")[0] == 0

    def interrupt(*_) -> Verdict:
        signal.raise_signal(signal.SIGINT)  # Ctrl-C
        return Verdict((), False, 2.0)

    with monkeypatch.context() as patch:
        patch.setattr("dia_demo.services.dialogue.run.judge", interrupt)
        code, out, err = say(*arguments, "-o", "a.wav")
    assert code == 1 and "1 of" in err and "the same command makes the others" in err
    assert len(folders(tmp_path)) == 1 and not (tmp_path / "a.wav").exists()
    code, out, err = say(*arguments, "-o", "a.wav")
    assert code == 0 and "note: 1 of" in err and not folders(tmp_path)
    np.testing.assert_array_equal(soundfile.read("a.wav")[0], soundfile.read("whole.wav")[0])


@pytest.mark.parametrize(
    "arguments, message",
    [
        (("--subtitles", "a.txt", "-o", "a.wav"), "written as .srt or .vtt"),
        (("--words", "w.json", "--codes", "c.npy"), "need the audio"),
        (("--max-tokens", 5000, "-o", "a.wav"), "max_tokens must be a whole number"),
        (("--retries", 11, "-o", "a.wav"), "retries must be a whole number from 0 to 10"),
        (("--words", "no/w.json", "-o", "a.wav"), "does not exist"),
    ],
)
def test_what_cannot_be_done_is_said_at_once(say, arguments, message):
    assert message in error_line(say(LONG, *TOKENS, *arguments))


def test_500_turns_and_a_turn_of_5000_characters_are_planned(say, monkeypatch):
    planned = []

    def remember(synthesis, plan, options):
        planned.append(plan)
        raise KeyboardInterrupt

    monkeypatch.setattr("dia_demo.cli.commands.say.say_dialogue", remember)
    turns = " ".join(f"[S{1 + k % 2}] All these words." for k in range(500))
    for script in (turns, f"[S1] {'All these words. ' * 300}"):
        assert say(script, *TOKENS, "-o", "a.wav")[0] == 130
    assert all(len(plan.chunks) > 80 for plan in planned)
