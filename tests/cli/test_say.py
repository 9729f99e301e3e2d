"""The command line's contract: exit codes, one line on stderr, JSON keys, files."""

import errno
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import soundfile
import torch

from dia_demo.audio import read_metadata
from dia_demo.cli.main import main
from dia_demo.engine import engine as engine_module
from dia_demo.files import ROOT
from tests.helpers.checkpoints import SMALL, random_codes, write_small

SCRIPT = "[S1] Hello there. [S2] Hi."
KEYS = (
    "audio_seconds, wall_seconds, realtime_factor, token_seconds, codec_seconds, "
    "first_audio_seconds, steps, finish_reason, seed, model, precision, device, sample_rate, "
    "peak_rss_bytes"
).split(", ")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_small(tmp_path_factory.mktemp("cli") / "small", codec=True)


@pytest.fixture
def cli(folder, tmp_path, monkeypatch, capsys):
    """Runs a command in an empty folder: (exit code, stdout, stderr)."""
    monkeypatch.chdir(tmp_path)
    for name in ("DIA_MODEL", "DIA_PRECISION", "DIA_THREADS", "DIA_QUEUE"):
        monkeypatch.delenv(name, raising=False)

    def run(*arguments):
        code = main([str(argument) for argument in arguments])
        out = capsys.readouterr()
        return code, out.out, out.err

    return run


@pytest.fixture
def say(cli, folder):
    """`say` with the small model, few tokens and a seed; what a test gives comes last and wins."""

    def run(script, *arguments):
        usual = ("--model", folder, "--threads", 1, "--max-tokens", 60, "--seed", 1)
        return cli("say", script, *usual, *arguments)

    return run


def told(result, code=2) -> str:
    """The one line of an error, nothing on stdout."""
    got, out, err = result
    assert got == code and out == "", (got, out, err)
    assert err.startswith("error: ") and err.endswith("\n") and err.count("\n") == 1, err
    return err


# What it makes


@pytest.mark.parametrize("suffix", [".wav", ".flac", ".WAV"])
def test_say_writes_a_sound_file(say, suffix):
    code, out, err = say(SCRIPT, "-o", f"take{suffix}")
    samples, rate = soundfile.read(f"take{suffix}")
    assert code == 0 and rate == 16000
    assert len(samples) == SMALL.frames_within(60) * 256
    assert f"take{suffix}" in out and "seed 1" in out and "max tokens" in out
    metadata = read_metadata(f"take{suffix}")
    assert metadata["script"] == SCRIPT and metadata["settings"]["seed"] == 1


def test_json_is_the_last_line_and_holds_the_promised_keys(say):
    code, out, err = say(SCRIPT, "-o", "take.wav", "--json")
    figures = json.loads(out.splitlines()[-1])
    assert code == 0 and list(figures) == KEYS
    assert figures["finish_reason"] == "max_tokens" and figures["seed"] == 1
    assert figures["audio_seconds"] == pytest.approx(SMALL.frames_within(60) * 256 / 16000)
    expected = figures["audio_seconds"] / figures["wall_seconds"]
    assert figures["realtime_factor"] == pytest.approx(expected)
    assert figures["first_audio_seconds"] > 0 and figures["sample_rate"] == 16000


def test_codes_without_a_sound_file_load_no_codec(say, monkeypatch):
    monkeypatch.setattr(engine_module, "open_codec", lambda *_: pytest.fail("a codec was loaded"))
    code, out, err = say(SCRIPT, "--codes", "take.npy", "--json")
    codes = np.load("take.npy")
    assert code == 0 and codes.dtype == np.int16 and codes.shape == (SMALL.frames_within(60), 3)
    assert codes.min() >= 0 and codes.max() < SMALL.num_codes
    figures = json.loads(out.splitlines()[-1])
    assert figures["codec_seconds"] == 0 and figures["first_audio_seconds"] is None


def test_codes_beside_a_sound_file_are_those_of_the_sound(say):
    assert say(SCRIPT, "--codes", "alone.npy")[0] == 0
    assert say(SCRIPT, "--codes", "both.npy", "-o", "take.wav")[0] == 0
    np.testing.assert_array_equal(np.load("alone.npy"), np.load("both.npy"))


def test_codes_go_to_the_very_name_that_was_given(say, tmp_path):
    """numpy appends .npy to names without it."""
    assert say(SCRIPT, "--codes", "take.codes")[0] == 0
    assert [path.name for path in tmp_path.iterdir()] == ["take.codes"]


def test_temperature_0_is_greedy_whatever_the_seed(say):
    for seed in (1, 2):
        assert say(SCRIPT, "--codes", f"{seed}.npy", "--temperature", 0, "--seed", seed)[0] == 0
    np.testing.assert_array_equal(np.load("1.npy"), np.load("2.npy"))


def test_a_seed_is_the_take_and_a_seed_nobody_gave_is_told(cli, folder):
    base = ("say", SCRIPT, "--model", folder, "--threads", 1, "--max-tokens", 60, "--json")
    code, out, err = cli(*base, "--codes", "a.npy")
    seed = json.loads(out)["seed"]
    assert cli(*base, "--codes", "b.npy", "--seed", seed)[0] == 0
    assert json.loads(cli(*base, "--codes", "c.npy")[1])["seed"] != seed
    np.testing.assert_array_equal(np.load("a.npy"), np.load("b.npy"))


@pytest.mark.slow
def test_every_setting_reaches_the_model(say):
    """One that is parsed and dropped leaves the codes as they were."""
    assert say(SCRIPT, "--codes", "usual.npy")[0] == 0
    usual = np.load("usual.npy")
    for option in (
        ("--temperature", 3), ("--cfg-scale", 0), ("--top-p", 0.2), ("--top-k", 2),
        ("--max-tokens", 50), ("--seed", 5), ("--precision", "bfloat16"),
    ):  # fmt: skip
        assert say(SCRIPT, "--codes", "changed.npy", *option)[0] == 0, option
        changed = np.load("changed.npy")
        assert changed.shape != usual.shape or (changed != usual).any(), option


def test_defaults_are_the_checkpoints_own(cli, tmp_path):
    folder = write_small(tmp_path / "own")
    generation = dict(temperature=0.7, guidance_scale=1.5, top_p=0.8, top_k=9, max_length=40)
    (folder / "generation_config.json").write_text(json.dumps(generation))
    base = ("say", SCRIPT, "--model", folder, "--threads", 1, "--seed", 3)
    assert cli(*base, "--codes", "a.npy")[0] == 0
    spelt = ("--temperature", 0.7, "--cfg-scale", 1.5, "--top-p", 0.8, "--top-k", 9)
    assert cli(*base, "--codes", "b.npy", *spelt, "--max-tokens", 40)[0] == 0
    assert len(np.load("a.npy")) == SMALL.frames_within(40)
    np.testing.assert_array_equal(np.load("a.npy"), np.load("b.npy"))


def test_a_dash_reads_the_script_from_stdin(say, monkeypatch):
    assert say(SCRIPT, "--codes", "given.npy")[0] == 0
    monkeypatch.setattr(sys, "stdin", io.StringIO(SCRIPT))
    assert say("-", "--codes", "read.npy")[0] == 0
    np.testing.assert_array_equal(np.load("given.npy"), np.load("read.npy"))


def test_the_model_comes_from_the_environment_where_none_is_given(cli, folder, monkeypatch):
    monkeypatch.setenv("DIA_MODEL", str(folder))
    code, out, err = cli(
        "say", SCRIPT, "--max-tokens", 60, "--threads", 1, "--codes", "a.npy", "--json"
    )
    assert code == 0 and json.loads(out)["model"] == str(folder)


# Voice prompts


def test_voice_codes_stand_in_for_a_prompt(say):
    np.save("voice.npy", random_codes(SMALL, 20).astype(np.int16))
    voice = ("--voice-codes", "voice.npy")
    code, out, err = say("[S2] After.", "--codes", "a.npy", *voice, "--voice-transcript", "[S1] A.")
    assert code == 0 and err == ""
    assert len(np.load("a.npy")) == SMALL.frames_within(60, 20)
    code, out, err = say("[S1] A.\n[S2] After.", "--codes", "b.npy", *voice)
    assert code == 0 and err.startswith("warning: ") and "transcript" in err
    assert err.count("\n") == 1
    np.testing.assert_array_equal(np.load("a.npy"), np.load("b.npy"))


def test_a_voice_prompt_is_heard(say):
    time = np.arange(6400) / 16000
    soundfile.write("voice.wav", 0.3 * np.sin(2 * np.pi * 220 * time), 16000)
    voice = ("--voice-prompt", "voice.wav", "--voice-transcript", "[S1] A.")
    assert say(SCRIPT, "-o", "take.wav", "--codes", "a.npy", *voice)[0] == 0
    assert len(np.load("a.npy")) == SMALL.frames_within(60, 25)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (np.zeros((5, 9), np.int16), "[frames, 3]"),
        (np.zeros((5, 3), np.float64), "whole numbers"),
        (np.full((5, 3), 64), "0 to 63"),
        (np.zeros((60, 3), np.int16), "shorten the prompt"),
        (b"no array", "voice.npy"),
        (b"", "voice.npy"),
        (np.array([[{}] * 3], object), "voice.npy"),
    ],
)
def test_voice_codes_that_do_not_fit_are_refused(say, content, said):
    if isinstance(content, bytes):
        Path("voice.npy").write_bytes(content)
    else:
        np.save("voice.npy", content)
    assert said in told(say(SCRIPT, "--codes", "a.npy", "--voice-codes", "voice.npy"))


def lying_header(shape: str) -> bytes:
    """A .npy of three frames whose header claims another shape."""
    file = io.BytesIO()
    np.save(file, np.zeros((3, 3), np.int16))
    claim = file.getvalue().replace(b"(3, 3)", shape.encode())
    return claim.replace(b" " * (len(shape) - 6) + b"\n", b"\n")


@pytest.mark.parametrize("shape", ["(3, 4)", "(999999999, 999)", "(-3, -3)", "(((((("])
def test_voice_codes_whose_header_lies_are_refused(say, shape):
    """numpy makes room for what the header claims: a MemoryError, and a traceback."""
    Path("voice.npy").write_bytes(lying_header(shape))
    said = told(say(SCRIPT, "--codes", "a.npy", "--voice-codes", "voice.npy"))
    assert "voice.npy cannot be read" in said


def test_voice_codes_of_several_arrays_or_none_are_refused(say):
    np.savez("voice.npz", a=np.zeros(3))
    assert "one .npy" in told(say(SCRIPT, "--codes", "a.npy", "--voice-codes", "voice.npz"))
    assert "none.npy" in told(say(SCRIPT, "--codes", "a.npy", "--voice-codes", "none.npy"))


def test_a_prompt_that_is_not_audio_is_refused(say):
    Path("voice.wav").write_bytes(b"not audio")
    voice = ("--voice-prompt", "voice.wav")
    assert "cannot be read as audio" in told(say(SCRIPT, "-o", "take.wav", *voice))


@pytest.mark.parametrize(
    "arguments",
    [("--voice-transcript", "words"), ("--voice-prompt", "a.wav", "--voice-codes", "a.npy")],
)
def test_prompts_that_contradict_are_refused(say, arguments):
    assert "--voice-" in told(say(SCRIPT, "--codes", "a.npy", *arguments))


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
        (("--device", "xpu"), "--device cpu"),
        (("--model", "nothing here"), "nothing here"),
        (("--model", ""), "hub name"),
        (("--no-such-option",), "--no-such-option"),
    ],
)
def test_values_that_cannot_be_are_refused_in_one_line(say, arguments, said):
    assert said in told(say(SCRIPT, "--codes", "a.npy", *arguments))
    assert not Path("a.npy").exists()


@pytest.mark.parametrize("arguments", [(), ("nonsense",), ("say",), ("say", SCRIPT)])
def test_a_command_that_is_none_is_refused_in_one_line(cli, arguments):
    told(cli(*arguments))


@pytest.mark.parametrize("script", ["", "   \n", "[S1] " + "word " * 2000, "[S1] a\0b"])
def test_a_script_that_cannot_be_said_is_refused(say, script):
    told(say(script, "--codes", "a.npy"))


@pytest.mark.parametrize("name", ["take.mp3", "take", "take.wav.txt", "wav"])
def test_a_sound_file_of_another_kind_is_refused(say, name):
    assert ".wav or .flac" in told(say(SCRIPT, "-o", name))


@pytest.mark.parametrize("option", ["-o", "--codes"])
def test_a_place_that_cannot_be_written_is_refused_before_the_take_is_made(
    say, option, tmp_path, monkeypatch
):
    """Minutes of speaking must not end in 'no such folder'."""
    monkeypatch.setattr(engine_module, "run", lambda *_: pytest.fail("the take was made"))
    assert "does not exist" in told(say(SCRIPT, option, "no/such/folder/take.wav"))
    (tmp_path / "taken.wav").mkdir()
    assert "taken.wav" in told(say(SCRIPT, option, "taken.wav"))
    (tmp_path / "file").touch()
    told(say(SCRIPT, option, "file/take.wav"))


def test_a_full_disk_is_a_failure_of_the_run(say, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    assert "take.wav could not be written" in told(say(SCRIPT, "-o", "take.wav"), code=1)
    monkeypatch.setattr("numpy.save", full)
    assert "take.npy could not be written" in told(say(SCRIPT, "--codes", "take.npy"), code=1)
    assert [path.name for path in tmp_path.iterdir() if path.suffix != ".npy"] == []


def test_a_damaged_model_is_refused_in_one_line(say, tmp_path):
    broken = write_small(tmp_path / "broken")
    (weights,) = broken.glob("*.safetensors")
    weights.write_bytes(weights.read_bytes()[:-100])
    assert "damaged" in told(say(SCRIPT, "--codes", "a.npy", "--model", broken))


def test_a_run_that_fails_exits_with_1_and_leaves_no_file(say, monkeypatch):
    nan = torch.tensor(float("nan"))
    monkeypatch.setattr(
        "dia_demo.model.dia.Dia.forward", lambda self, codes, _: nan.expand(2, 1, 3, 68)
    )
    said = told(say(SCRIPT, "--codes", "a.npy"), code=1)
    assert "non-finite" in said and not Path("a.npy").exists()


# As a process


def run_process(*arguments, **options):
    command = [sys.executable, "-m", "dia_demo", *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, **options)


@pytest.mark.slow
def test_a_process_speaks_from_stdin_and_warns_at_most(folder, tmp_path):
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
    monkeypatch.setattr(engine_module, "run", lambda *_: pytest.fail("the take was made"))
    assert "File name too long" in told(say(SCRIPT, option, "a" * 296 + ".wav"))


def test_the_longest_name_a_file_may_have_is_written(say):
    name = "a" * 251 + ".wav"
    assert say(SCRIPT, "-o", name)[0] == 0 and Path(name).is_file()


@pytest.mark.slow
def test_a_reader_that_has_had_enough_meets_no_traceback():
    """`doctor | head -1`."""
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as pipe:
        command = [sys.executable, "-m", "dia_demo", "doctor"]
        out = subprocess.run(command, cwd=ROOT, stdout=pipe, stderr=subprocess.PIPE, timeout=120)
    assert (out.returncode, out.stderr) == (1, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.slow
def test_an_output_that_is_full_is_a_failure_in_one_line(folder, tmp_path):
    command = [sys.executable, "-m", "dia_demo", "say", SCRIPT, "--model", str(folder)]
    command += ["-o", str(tmp_path / "take.wav"), "--max-tokens", "40"]
    with open("/dev/full", "wb") as full:
        out = subprocess.run(command, cwd=ROOT, stdout=full, stderr=subprocess.PIPE, timeout=120)
    said = [line for line in out.stderr.splitlines() if not line.startswith(b"warning: ")]
    assert (out.returncode, len(said)) == (1, 1), out.stderr
    assert said[0].startswith(b"error: ") and b"No space left" in said[0]


def test_a_value_of_any_length_is_quoted_in_short(cli, tmp_path):
    folder = write_small(tmp_path / "long")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"model_type": "x" * 10**6}))
    said = told(cli("say", SCRIPT, "--codes", "a.npy", "--model", folder))
    assert "describes a model of type" in said and len(said) < 3000
