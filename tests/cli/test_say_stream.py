"""`say - --stream`: stdin as it arrives, in a file that has its settings inside."""

import json
import os
import sys

import pytest
import soundfile

from dia_demo.audio import read_metadata
from dia_demo.cli.main import main


@pytest.fixture
def stdin(monkeypatch):
    """Where a test writes what comes on stdin."""
    read, write = os.pipe()
    with os.fdopen(read) as end:
        monkeypatch.setattr(sys, "stdin", end)
        yield write


def test_stdin_is_spoken_into_a_file(stdin, tmp_path, capsys):
    os.write(stdin, "[S1] Yes. [S2] Caf\u00e9".encode()[:-1])  # In the middle of a letter.
    os.write(stdin, "\u00e9.".encode()[1:])
    os.close(stdin)
    path = tmp_path / "stream.wav"
    options = ["--stream", "--seed", "3", "--threads", "1", "--json", "-o", str(path)]
    assert main(["say", "-", *options]) == 0
    figures = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert figures["sentences"] == 2 and figures["seed"] == 3
    samples, rate = soundfile.read(path)
    assert len(samples) / rate == pytest.approx(figures["audio_seconds"], abs=1e-3)
    assert read_metadata(path)["settings"]["seed"] == 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["Hello.", "--stream", "-o", "a.wav"], "give - as the script"),
        (["-", "--stream", "--codes", "a.npy"], "needs a file"),
        (["-", "--stream", "-o", "a.wav", "--words", "a.json"], "do not go with --stream"),
    ],
)
def test_what_does_not_go_with_it_is_said(options, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["say", *options]) == 2
    assert message in capsys.readouterr().err


def test_nothing_on_stdin_leaves_no_file(stdin, tmp_path, capsys):
    os.close(stdin)
    assert main(["say", "-", "--stream", "-o", str(tmp_path / "a.wav")]) == 2
    assert "no words on standard input" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
