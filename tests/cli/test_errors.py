"""Errors of the command line: exit codes, and one line on stderr."""

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import soundfile
import torch

from dia_demo.engine.engine import Engine
from dia_demo.files import ROOT
from tests.helpers.cli import SCRIPT, error_line
from tests.helpers.models.checkpoints import SMALL, write_small

# What cannot be


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--temperature", 9), "temperature must be a number from 0 to 5"),
        (("--temperature", "nan"), "temperature"),
        (("--temperature", "hot"), "--temperature"),
        (("--cfg-scale", -1), "cfg_scale"),
        (("--top-p", 0), "top_p"),
        (("--top-k", 69), "top_k must be a whole number from 1 to 68"),
        (("--top-k", 1.5), "--top-k"),
        (("--max-tokens", 4), "max_tokens must be a whole number from 5 to 600"),
        (("--max-tokens", 601), "max_tokens"),
        (("--seed", -1), "seed must be a whole number from 0 to 4294967295"),
        (("--speed", 9), "speed"),
        (("--threads", 0), "threads"),
        (("--threads", 1024), "threads"),
        (("--precision", "float16"), "float32"),
        (("--device", "tpu"), "xpu"),
        (("--device", "xpu"), "Use the CPU, the default"),
        (("--model", "nothing here"), "nothing here"),
        (("--model", ""), "hub name"),
        (("--no-such-option",), "--no-such-option"),
    ],
)
def test_values_that_cannot_be_are_refused_in_one_line(say, arguments, said):
    assert said in error_line(say(SCRIPT, "--codes", "a.npy", *arguments))
    assert not Path("a.npy").exists()


@pytest.mark.parametrize("arguments", [(), ("nonsense",), ("say",), ("say", SCRIPT)])
def test_a_command_that_is_none_is_refused_in_one_line(cli, arguments):
    error_line(cli(*arguments))


@pytest.mark.parametrize("script", ["", "   \n", "[S1] " + "word " * 2000, "[S1] a\0b"])
def test_a_script_that_cannot_be_said_is_refused(say, script):
    error_line(say(script, "--codes", "a.npy"))


@pytest.mark.parametrize("name", ["take.aac", "take", "take.wav.txt", "wav"])
def test_a_sound_file_of_another_kind_is_refused(say, name):
    assert ".mp3 or .opus" in error_line(say(SCRIPT, "-o", name))


@pytest.mark.parametrize("option", ["-o", "--codes"])
def test_a_place_that_cannot_be_written_is_refused_before_the_take_is_made(
    say, option, tmp_path, monkeypatch
):
    """Minutes of speaking must not end in 'no such folder'."""
    monkeypatch.setattr(Engine, "stream", lambda *_: pytest.fail("the take was made"))
    assert "does not exist" in error_line(say(SCRIPT, option, "no/such/folder/take.wav"))
    (tmp_path / "taken.wav").mkdir()
    assert "taken.wav" in error_line(say(SCRIPT, option, "taken.wav"))
    (tmp_path / "file").touch()
    error_line(say(SCRIPT, option, "file/take.wav"))


def test_a_full_disk_is_a_failure_of_the_run(say, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    assert "take.wav could not be written" in error_line(say(SCRIPT, "-o", "take.wav"), code=1)
    monkeypatch.setattr("numpy.save", full)
    assert "take.npy could not be written" in error_line(say(SCRIPT, "--codes", "take.npy"), code=1)
    assert [path.name for path in tmp_path.iterdir() if path.suffix != ".npy"] == []


def test_a_damaged_model_is_refused_in_one_line(say, tmp_path):
    broken = write_small(tmp_path / "broken")
    (weights,) = broken.glob("*.safetensors")
    weights.write_bytes(weights.read_bytes()[:-100])
    assert "corrupted" in error_line(say(SCRIPT, "--codes", "a.npy", "--model", broken))


def test_a_failed_run_leaves_no_file(say, monkeypatch):
    nan = torch.tensor(float("nan"))
    monkeypatch.setattr(
        "dia_demo.model.cpu_model.CpuModel.__call__", lambda self, codes, _: nan.expand(2, 1, 3, 68)
    )
    said = error_line(say(SCRIPT, "--codes", "a.npy"), code=1)
    assert "non-finite" in said and not Path("a.npy").exists()


# As a process


def run_process(*arguments, **options):
    command = [sys.executable, "-m", "dia_demo", *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, **options)


@pytest.mark.long
def test_a_process_reads_its_script_from_stdin(folder, tmp_path):
    options = ("--model", folder, "--threads", 1, "--max-tokens", 60, "--seed", 1, "--json")
    out = run_process("say", "-", "-o", tmp_path / "take.wav", *options, input=SCRIPT)
    assert out.returncode == 0, out.stderr
    assert all(line.startswith("warning: ") for line in out.stderr.splitlines()), out.stderr
    assert json.loads(out.stdout)["sample_rate"] == 16000
    assert soundfile.info(tmp_path / "take.wav").frames == SMALL.frames_within(60) * 256


@pytest.mark.slow
def test_a_process_ends_with_the_code_of_its_error():
    out = run_process("say", "", "-o", "/tmp/never.wav", "--model", "no such model")
    assert out.returncode == 2 and out.stdout == "" and out.stderr.count("\n") == 1


# Output that cannot be written


@pytest.mark.parametrize("option", ["-o", "--codes"])
def test_a_name_that_is_too_long_is_refused_before_the_take_is_made(say, option, monkeypatch):
    monkeypatch.setattr(Engine, "stream", lambda *_: pytest.fail("the take was made"))
    assert "File name too long" in error_line(say(SCRIPT, option, "a" * 296 + ".wav"))


def test_the_longest_name_a_file_may_have_is_written(say):
    name = "a" * 251 + ".wav"
    assert say(SCRIPT, "-o", name)[0] == 0 and Path(name).is_file()


@pytest.mark.long
def test_a_reader_that_has_had_enough_meets_no_traceback():
    """`doctor | head -1`."""
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as pipe:
        command = [sys.executable, "-m", "dia_demo", "doctor"]
        out = subprocess.run(command, cwd=ROOT, stdout=pipe, stderr=subprocess.PIPE, timeout=300)
    assert (out.returncode, out.stderr) == (1, b"")


@pytest.mark.long
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_an_output_that_is_full_is_a_failure_in_one_line(folder, tmp_path):
    command = [sys.executable, "-m", "dia_demo", "say", SCRIPT, "--model", str(folder)]
    command += ["-o", str(tmp_path / "take.wav"), "--max-tokens", "40"]
    with open("/dev/full", "wb") as full:
        out = subprocess.run(command, cwd=ROOT, stdout=full, stderr=subprocess.PIPE, timeout=300)
    said = [line for line in out.stderr.splitlines() if not line.startswith(b"warning: ")]
    assert (out.returncode, len(said)) == (1, 1), out.stderr
    assert said[0].startswith(b"error: ") and b"No space left" in said[0]


def test_a_value_of_any_length_is_quoted_in_short(cli, tmp_path):
    folder = write_small(tmp_path / "long")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"model_type": "x" * 10**6}))
    said = error_line(cli("say", SCRIPT, "--codes", "a.npy", "--model", folder))
    assert "describes a model of type" in said and len(said) < 3000
