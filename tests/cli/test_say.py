"""`say`: the files it writes, the keys of its JSON, voice prompts."""

import io
import json
import sys
from pathlib import Path

import numpy as np
import pytest
import soundfile

from dia_demo.audio import read_metadata
from dia_demo.codec import codec
from tests.helpers.cli import SCRIPT, error_line
from tests.helpers.models.checkpoints import SMALL, random_codes, write_small
from tests.helpers.voices import write_voice

KEYS = (
    "audio_seconds, wall_seconds, realtime_factor, token_seconds, codec_seconds, "
    "first_audio_seconds, steps, finish_reason, seed, model, precision, device, sample_rate, "
    "peak_rss_bytes, expected_seconds, numerics, surplus_turns, shared_with, voices, remarks, "
    "chunks"
).split(", ")


# What it makes


@pytest.mark.parametrize("suffix", [".wav", ".flac", ".WAV", ".mp3", ".opus"])
def test_say_writes_a_sound_file(say, suffix):
    code, out, err = say(SCRIPT, "-o", f"take{suffix}")
    samples, rate = soundfile.read(f"take{suffix}")
    assert code == 0 and rate == 16000
    expected = SMALL.frames_within(60) * 256
    if suffix == ".mp3":  # Padded to whole frames of the encoder.
        assert expected <= len(samples) < expected + 2000
    else:
        assert len(samples) == expected
    assert f"take{suffix}" in out and "seed 1" in out and "Max tokens" in out
    metadata = read_metadata(f"take{suffix}")
    assert metadata["script"] == SCRIPT and metadata["settings"]["seed"] == 1


def test_the_last_line_of_output_is_json_with_the_documented_keys(say):
    code, out, err = say(SCRIPT, "-o", "take.wav", "--json")
    figures = json.loads(out.splitlines()[-1])
    assert code == 0 and list(figures) == KEYS
    assert figures["finish_reason"] == "max_tokens" and figures["seed"] == 1
    assert figures["audio_seconds"] == pytest.approx(SMALL.frames_within(60) * 256 / 16000)
    expected = figures["audio_seconds"] / figures["wall_seconds"]
    assert figures["realtime_factor"] == pytest.approx(expected)
    assert figures["first_audio_seconds"] > 0 and figures["sample_rate"] == 16000


def test_codes_without_a_sound_file_load_no_codec(say, monkeypatch):
    monkeypatch.setattr(codec, "find_codec", lambda *_, **__: pytest.fail("a codec was loaded"))
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


def test_what_the_page_warns_of_is_told(say):
    """Whatever the script has, its take is made."""
    wrong = "[S1] Hello [S3] there."
    code, _, err = say(wrong, "-o", "take.wav")
    assert code == 0 and "warning: “[S3]” is not a speaker" in err and "Max tokens" not in err
    _, _, err = say(f"[S1] Hello.\n{wrong}", "-o", "take.wav")
    assert "warning: Line 2: “[S3]” is not a speaker" in err
    _, _, err = say(f"{wrong} (pause 1s) [S2] Hi.", "-o", "take.wav", "--max-tokens", 200)
    assert "warning: “[S3]” is not a speaker" in err
    _, _, err = say(SCRIPT, "-o", "take.wav")
    assert "speaker" not in err


def test_temperature_0_is_greedy_whatever_the_seed(say):
    for seed in (1, 2):
        assert say(SCRIPT, "--codes", f"{seed}.npy", "--temperature", 0, "--seed", seed)[0] == 0
    np.testing.assert_array_equal(np.load("1.npy"), np.load("2.npy"))


def test_the_reported_seed_reproduces_the_take(cli, folder):
    base = ("say", SCRIPT, "--model", folder, "--threads", 1, "--max-tokens", 60, "--json")
    code, out, err = cli(*base, "--codes", "a.npy")
    seed = json.loads(out)["seed"]
    assert cli(*base, "--codes", "b.npy", "--seed", seed)[0] == 0
    assert json.loads(cli(*base, "--codes", "c.npy")[1])["seed"] != seed
    np.testing.assert_array_equal(np.load("a.npy"), np.load("b.npy"))


@pytest.mark.long
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
    write_voice(Path("voice.wav"), 1.5, channels=2)
    voice = ("--voice-prompt", "voice.wav", "--voice-transcript", "[S1] A.")
    long = ("--max-tokens", "150", "--codes", "a.npy")
    code, out, err = say(SCRIPT, "-o", "take.wav", "--json", *long, *voice)
    assert code == 0 and "Channel 1 of 2" in err
    assert any("Channel 1 of 2" in remark for remark in json.loads(out)["remarks"])
    assert 0 < len(np.load("a.npy")) < SMALL.frames_within(150)


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
    assert said in error_line(say(SCRIPT, "--codes", "a.npy", "--voice-codes", "voice.npy"))


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
    said = error_line(say(SCRIPT, "--codes", "a.npy", "--voice-codes", "voice.npy"))
    assert "voice.npy cannot be read" in said


def test_voice_codes_of_several_arrays_or_none_are_refused(say):
    np.savez("voice.npz", a=np.zeros(3))
    assert "one .npy" in error_line(say(SCRIPT, "--codes", "a.npy", "--voice-codes", "voice.npz"))
    assert "none.npy" in error_line(say(SCRIPT, "--codes", "a.npy", "--voice-codes", "none.npy"))


def test_a_prompt_that_is_not_audio_is_refused(say):
    Path("voice.wav").write_bytes(b"not audio")
    voice = ("--voice-prompt", "voice.wav")
    assert "cannot be read as audio" in error_line(say(SCRIPT, "-o", "take.wav", *voice))
    soundfile.write("voice.wav", 0.3 * np.sin(np.arange(64000) / 6), 16000)
    assert "not speech" in error_line(say(SCRIPT, "-o", "take.wav", *voice))


@pytest.mark.parametrize(
    "arguments",
    [("--voice-transcript", "words"), ("--voice-prompt", "a.wav", "--voice-codes", "a.npy")],
)
def test_prompts_that_contradict_are_refused(say, arguments):
    assert "--voice-" in error_line(say(SCRIPT, "--codes", "a.npy", *arguments))


# The choice to normalise


def test_a_normalised_script_is_spoken_in_words(say):
    odd, plain = "It’s $5.", "[S1] It's five dollars."
    assert say(odd, "--codes", "as_written.npy")[0] == 0
    assert say(odd, "--codes", "normalised.npy", "-o", "take.wav", "--normalise")[0] == 0
    assert say(plain, "--codes", "in_words.npy")[0] == 0
    as_written, normalised, in_words = (
        np.load(f"{name}.npy") for name in ("as_written", "normalised", "in_words")
    )
    np.testing.assert_array_equal(normalised, in_words)
    assert not np.array_equal(as_written, in_words), "unasked, the script is read byte for byte"
    metadata = read_metadata("take.wav")
    assert metadata["normalise"] is True and metadata["script"] == odd


# A list of pronunciations


def test_a_word_is_said_as_the_list_says(say):
    Path("list.txt").write_text("# mine\nNguyen = win\n", encoding="utf-8")
    script, listed = "[S1] Hello, Nguyen.", ("--pronunciations", "list.txt")
    assert say(script, "--codes", "listed.npy", "-o", "take.wav", *listed)[0] == 0
    assert say("[S1] Hello, win.", "--codes", "win.npy")[0] == 0
    np.testing.assert_array_equal(np.load("listed.npy"), np.load("win.npy"))
    metadata = read_metadata("take.wav")
    assert metadata["script"] == script and metadata["pronunciations"] == "Nguyen = win"


def test_a_bad_list_is_refused_with_its_line(say):
    Path("list.txt").write_text("Nguyen = win\nnginx\n", encoding="utf-8")
    answer = say("[S1] Hi.", "--codes", "a.npy", "--pronunciations", "list.txt")
    assert "list.txt: Pronunciations, line 2: write" in error_line(answer)
