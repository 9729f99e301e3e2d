"""The bars of voice prompts and of capitals: they find what is planted."""

from pathlib import Path

import numpy as np
import pytest
import soundfile

from dia_demo.errors import InputError
from dia_demo.prompt.decode import decode
from dia_demo.services.take import VoicePrompt
from tests.helpers.voices import speech_like
from tools import check_voices
from tools.voice_bars import inputs
from tools.voice_bars.inputs import CLEAN, KINDS, Kind
from tools.voice_bars.studio import Studio

RATE = 16000  # of the embedded voice, Hz
VOICE = 0.5 * speech_like(6.0, RATE) / np.abs(speech_like(6.0, RATE)).max()
TITLE = "voice prompt, damaged"


def recorded(kind: str, folder: Path) -> tuple[np.ndarray, int]:
    """The channels [n, channels] of VOICE in a file of this kind, and their rate."""
    KINDS[kind].write(folder / "a.wav", VOICE, RATE)
    return decode(folder / "a.wav", max_seconds=20)


def level(wave: np.ndarray) -> float:
    return 20 * float(np.log10(np.sqrt(np.square(wave).mean())))


@pytest.mark.parametrize(
    "name, before, after",
    [
        ("1.5 s of silence before", 1.5, 0),
        ("3 s of silence after", 0, 3),
        ("3 s of silence before and after", 3, 3),
    ],
)
def test_silence_is_as_long_as_its_name_says(tmp_path, name, before, after):
    channels, rate = recorded(name, tmp_path)
    sounds = np.flatnonzero(np.abs(channels[:, 0]) > 1e-3)
    own = np.flatnonzero(np.abs(VOICE) > 1e-3)
    assert (sounds[0] - own[0]) / rate == pytest.approx(before, abs=0.01)
    assert len(channels) / rate == pytest.approx(len(VOICE) / RATE + before + after, abs=0.01)


@pytest.mark.parametrize("db", [-6, -24, -36])
def test_a_quiet_prompt_is_as_quiet_as_its_name_says(tmp_path, db):
    channels, _ = recorded(f"{db} dB", tmp_path)
    assert level(channels) - level(VOICE) == pytest.approx(db, abs=0.2)


def test_channels_are_silent_inverted_or_cancel_each_other(tmp_path):
    left, right = recorded("left channel silent", tmp_path)[0].T
    assert not left.any() and level(right) == pytest.approx(level(VOICE), abs=0.1)
    left, right = recorded("right channel inverted and louder", tmp_path)[0].T
    assert np.corrcoef(left, right)[0, 1] < -0.99 and level(right) > level(left) + 5
    mixed = recorded("right channel inverted, nothing left when mixed", tmp_path)[0].mean(axis=1)
    assert np.abs(mixed).max() < 1e-4


def test_rates_offset_and_sizes_are_in_the_file(tmp_path):
    for name, rate in {"8 kHz": 8000, "22.05 kHz": 22050, "44.1 kHz": 44100}.items():
        assert recorded(name, tmp_path)[1] == rate
    offset = recorded("constant offset", tmp_path)[0]
    assert offset.mean() == pytest.approx(inputs.OFFSET, abs=1e-3) and offset.max() < 1
    whole, _ = recorded(CLEAN, tmp_path)
    again, _ = recorded("sizes 0 in the header", tmp_path)
    data = (tmp_path / "a.wav").read_bytes()
    assert data[4:8] == bytes(4) == data[data.index(b"data") + 4 :][:4]
    assert np.array_equal(again, whole)
    assert soundfile.info(tmp_path / "a.wav").frames == 0, "as other programs see it"


def noise(wave: np.ndarray, rate: int) -> tuple[np.ndarray, int]:
    return 0.2 * np.random.default_rng(0).standard_normal(len(wave)), rate


@pytest.fixture
def try_kinds(tmp_path, monkeypatch):
    """A trial of these kinds beside the clean one, without a model: a take says its script, but
    after the quiet prompt of its kind no word of it. Returns the lines by their titles."""

    def try_kinds(**kinds: Kind):
        studio = Studio(tmp_path, "nano", None)
        read = {}

        def sounds(requests):
            for request in requests:
                prompt = request.voice and request.voice.read(request.model, 1024, 20.0)
                marker = VOICE if prompt is None else prompt.samples
                read[marker.tobytes()] = request.script, prompt
                yield marker

        def hear(sound, rate):
            script, prompt = read[sound.tobytes()]
            return "" if "louder" in " ".join(prompt.notes) else script

        monkeypatch.setattr(studio, "sounds", lambda requests: list(sounds(requests)))
        monkeypatch.setattr(inputs, "hear_pieces", hear)
        monkeypatch.setattr(inputs, "KINDS", {CLEAN: Kind(), **kinds})
        trials = [inputs._prompts_trial(studio, number) for number in range(2)]
        return {line.measure: line for line in inputs._lines_of_prompts(trials)}

    return try_kinds


def test_a_kind_after_which_words_are_lost_is_missed(try_kinds):
    lines = try_kinds(damaged=KINDS["-24 dB"], other=KINDS["3 s of silence before and after"])
    assert not lines[TITLE].is_met and "+100.0 points (100.0% against 0.0%)" in lines[TITLE].result
    assert lines["voice prompt, other"].is_met and lines["voice prompt, clean"].is_met


def test_a_refusal_counts_as_met_only_with_the_reason(try_kinds):
    met = try_kinds(damaged=Kind(noise, reason="noise"))[TITLE]
    assert met.is_met and met.count == 2
    assert "2 refused, 0 without the reason: “is not speech, but noise" in met.result
    missed = try_kinds(damaged=Kind(noise, reason="channel"))[TITLE]
    assert not missed.is_met and "2 refused, 2 without the reason: “is not" in missed.result


def test_a_clean_prompt_that_is_refused_is_missed(try_kinds):
    assert not try_kinds(**{CLEAN: Kind(noise)})["voice prompt, clean"].is_met


@pytest.mark.parametrize("name", KINDS)
def test_no_refusal_for_another_reason_is_taken_for_the_reason(name, tmp_path):
    soundfile.write(tmp_path / "a.wav", noise(VOICE, RATE)[0], RATE)
    studio = Studio(tmp_path, "nano", None)
    voice = VoicePrompt.from_file(tmp_path / "a.wav", "[S1] Hello.")
    why = inputs.refusal(studio, studio.request("[S1] Hello.", seed=0, voice=voice))
    with pytest.raises(InputError):
        voice.read(studio.request("[S1] Hello.", seed=0).model, 1024, 20.0)
    trial = {"voice": "a", "seconds": 6, "words": 9, "wrong": {CLEAN: 0}, "refused": {name: why}}
    assert not inputs._line_of_kind(name, [trial]).is_met


@pytest.mark.parametrize("lost", [0, 1])
def test_words_that_are_lost_in_capitals_are_missed(tmp_path, monkeypatch, lost):
    studio = Studio(tmp_path, "nano", None, is_quick=True)
    scripts = []

    def sounds(requests):
        scripts.extend(request.script for request in requests)
        return [np.full(1, len(scripts) - len(requests) + k) for k in range(len(requests))]

    def hear(sound, rate):
        words = scripts[int(sound[0])].split()
        return " ".join(words[: len(words) - lost] if words[-1].isupper() else words)

    monkeypatch.setattr(studio, "sounds", sounds)
    monkeypatch.setattr(inputs, "hear_pieces", hear)
    trials = [inputs._capitals_trial(studio, number) for number in range(3)]
    (line,) = inputs._lines_of_capitals(trials)
    assert line.count == 6 and line.is_met is (lost == 0)
    assert [script.isupper() for script in scripts[:4]] == [True, True, False, False]


@pytest.mark.long
def test_a_quick_look_at_voice_prompts_and_capitals(tmp_path, capsys):
    """One take of each: a word more or less decides, so only that all are there."""
    options = ["--only", "prompts", "--only", "capitals", "--threads", "1"]
    check_voices.main(["--quick", "--work", str(tmp_path), *options])
    out = capsys.readouterr().out
    assert out.count("| voice prompt, ") == len(KINDS) and "failed" not in out
    assert out.count("; 0 refused |") == len(KINDS) - 1
    assert "| sentences in capitals: word error against small letters" in out
