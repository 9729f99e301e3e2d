"""A dialogue of twelve turns by the embedded voice, and the same after it was killed."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from dia_demo.files import ROOT

pytestmark = pytest.mark.long

SCRIPT = (
    "[S1] Welcome back to the show. [S2] Glad to be here. [S1] How was the trip to the sea? "
    "[S2] It rained all week, but we had a lot of fun. [S1] What did you do all day? "
    "[S2] We played cards and told stories by the fire. (pause 1.5) [S1] And now you are back at "
    "work. [S2] Yes, and there is so much to do. [S1] Thank you for coming. [S2] Good night, "
    "everybody. [S1] Good night. [S2] See you soon."
)


def start(folder, output: str, *options: str) -> subprocess.Popen:
    command = [sys.executable, "-m", "dia_demo", "say", SCRIPT, "-o", str(folder / output)]
    command += ["--seed", "3", "--threads", "1", "--json", *options]
    return subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def test_a_killed_run_goes_on_and_gives_the_same_file(tmp_path):
    whole = start(tmp_path, "whole.wav", "--words", str(tmp_path / "w.json"))
    out, err = whole.communicate(timeout=300)
    assert whole.returncode == 0, err
    words = json.loads((tmp_path / "w.json").read_text())
    assert [word["turn"] for word in words] == sorted(word["turn"] for word in words)
    assert {word["turn"] for word in words} == set(range(12))
    assert all(a["end"] <= b["start"] + 1e-6 for a, b in zip(words, words[1:], strict=False))
    assert words[-1]["end"] < json.loads(out)["audio_seconds"]
    killed = start(tmp_path, "killed.wav")
    while killed.poll() is None and not list(tmp_path.glob(".killed.wav.*/*.npz")):
        time.sleep(0.01)
    os.kill(killed.pid, signal.SIGKILL)
    killed.communicate()
    assert not (tmp_path / "killed.wav").exists()
    again = start(tmp_path, "killed.wav")
    _, err = again.communicate(timeout=300)
    assert again.returncode == 0, err
    assert "were made before" in err
    assert (tmp_path / "killed.wav").read_bytes() == (tmp_path / "whole.wav").read_bytes()
    assert not list(tmp_path.glob(".killed.wav.*"))
