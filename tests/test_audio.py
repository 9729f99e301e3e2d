"""Waveforms at rest: files come back as written, bad prompts are refused by name and number."""

import resource
import struct
from pathlib import Path

import numpy as np
import pytest
import soundfile

from dia_demo.audio import (
    health,
    read_metadata,
    spectrogram,
    to_int16,
    write_audio,
)
from dia_demo.errors import InputError, RunError

RATE = 24000


def sine(seconds=4.0, rate=RATE, hz=440.0, level=0.3):
    return (level * np.sin(2 * np.pi * hz * np.arange(int(seconds * rate)) / rate)).astype("f")


def pitch(samples, rate):
    spectrum = np.abs(np.fft.rfft(samples * np.hanning(samples.size)))
    return float(np.argmax(spectrum)) * rate / samples.size


# Files

SETTINGS = {"script": "[S1] Hé “there”\n[S2] 漢字", "seed": 4294967295, "temperature": 1.8}


@pytest.mark.parametrize("suffix", [".wav", ".flac", ".WAV"])
@pytest.mark.parametrize("extra", ["", "x", "long " * 5000])
def test_a_written_file_reads_back_unchanged(tmp_path, suffix, extra):
    samples = sine(0.5)
    settings = SETTINGS | {"extra": extra}
    path = write_audio(tmp_path / f"take{suffix}", samples, RATE, settings)
    back, rate = soundfile.read(path, dtype="int16")
    assert rate == RATE
    assert np.array_equal(back, to_int16(samples))
    assert read_metadata(path) == settings
    assert [one.name for one in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("suffix", [".mp3", ".opus"])
@pytest.mark.parametrize("rate", [16000, 44100])
@pytest.mark.parametrize("extra", ["", "long " * 9_900], ids=["short", "long"])
def test_a_compressed_file_sounds_the_same(tmp_path, suffix, rate, extra):
    samples = 0.3 * np.sin(2 * np.pi * 440 / rate * np.arange(2 * rate)).astype("f")
    settings = SETTINGS | {"extra": extra}
    path = write_audio(tmp_path / f"take{suffix}", samples, rate, settings)
    back, kept_rate = soundfile.read(path, dtype="float32")
    assert kept_rate == (48000 if (suffix, rate) == (".opus", 44100) else rate)
    assert len(back) / kept_rate == pytest.approx(2, abs=0.01)
    middle = back[kept_rate // 2 : -kept_rate // 2]
    assert np.abs(np.fft.rfft(middle * np.hanning(len(middle)))).argmax() == pytest.approx(
        440 * len(middle) / kept_rate, abs=1
    )
    assert np.sqrt((middle**2).mean()) == pytest.approx(0.3 / np.sqrt(2), rel=0.02)
    assert read_metadata(path) == settings


def test_settings_that_a_format_has_no_room_for_are_said(tmp_path):
    settings = {"script": "x" * 60_000}
    with pytest.raises(RunError, match="Opus cannot store .*: choose WAV"):
        write_audio(tmp_path / "take.opus", sine(0.5), RATE, settings)
    assert list(tmp_path.iterdir()) == []


def test_a_format_without_room_for_them_leaves_the_codes_out(tmp_path):
    settings = SETTINGS | {"codes": "x" * 60_000}
    path = write_audio(tmp_path / "take.opus", sine(0.5), RATE, settings)
    assert read_metadata(path) == SETTINGS
    assert read_metadata(write_audio(tmp_path / "a.mp3", sine(0.5), RATE, settings)) == settings


def test_conversion_to_int16_clips():
    assert to_int16(np.array([0, 1, -1, 3, -3, 0.5], "f")).tolist() == [
        0, 32767, -32767, 32767, -32767, 16384,
    ]  # fmt: skip


def test_non_finite_audio_is_never_handed_over(tmp_path):
    broken = sine(0.1)
    broken[7] = np.nan
    with pytest.raises(RunError):
        write_audio(tmp_path / "a.wav", broken, RATE, {})
    assert list(tmp_path.iterdir()) == []


def test_other_formats_are_refused_with_the_allowed_ones(tmp_path):
    with pytest.raises(InputError, match=r"\.mp3 or \.opus.*take\.aac"):
        write_audio(tmp_path / "take.aac", sine(0.1), RATE, {})


def test_a_place_that_cannot_be_written_leaves_nothing(tmp_path):
    with pytest.raises(RunError, match="folder"):
        write_audio(tmp_path / "missing" / "a.wav", sine(0.1), RATE, {})
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_leaves_the_older_file_as_it_was(tmp_path):
    path = write_audio(tmp_path / "a.wav", sine(0.1), RATE, {"take": 1})
    before = path.read_bytes()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, hard))
    try:
        with pytest.raises(RunError, match="space"):
            write_audio(path, sine(4.0), RATE, {"take": 2})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_files_without_our_settings_have_none(tmp_path):
    soundfile.write(tmp_path / "plain.wav", sine(0.1), RATE)
    soundfile.write(tmp_path / "plain.flac", sine(0.1), RATE)
    (tmp_path / "text.wav").write_text("no audio")
    (tmp_path / "cut.wav").write_bytes(b"RIFF\x00\x00")
    for name in ("plain.wav", "plain.flac", "text.wav", "cut.wav", "missing.wav"):
        assert read_metadata(tmp_path / name) is None


def chunk(name: bytes, content: bytes) -> bytes:
    return name + struct.pack("<I", len(content)) + content + b"\0" * (len(content) % 2)


def wav_with(tmp_path, *chunks: bytes) -> Path:
    """A WAV of silence that says of itself what the chunks say."""
    sound = chunk(b"fmt ", struct.pack("<HHIIHH", 1, 1, RATE, 2 * RATE, 2, 16))
    body = b"WAVE" + b"".join(chunks) + sound + chunk(b"data", b"\0" * 200)
    (tmp_path / "made.wav").write_bytes(b"RIFF" + struct.pack("<I", len(body)) + body)
    return tmp_path / "made.wav"


def test_a_nested_comment_is_no_settings(tmp_path):
    """It overflowed the JSON reader's stack wherever earlier takes were listed."""
    comment = chunk(b"LIST", b"INFO" + chunk(b"ICMT", b'{"a":' * 50_000))
    assert read_metadata(wav_with(tmp_path, comment)) is None


def test_settings_behind_very_many_chunks_are_not_looked_for(tmp_path):
    """A WAV of a million empty chunks cost 1.6 s at each listing."""
    comment = chunk(b"LIST", b"INFO" + chunk(b"ICMT", b'{"seed": 1}'))
    few, many = [chunk(b"JUNK", b"")] * 100, [chunk(b"JUNK", b"")] * 5000
    assert read_metadata(wav_with(tmp_path, *few, comment)) == {"seed": 1}
    assert read_metadata(wav_with(tmp_path, *many, comment)) is None


# Health


def test_health_of_a_sine_is_what_theory_says():
    found = health(sine(4.0, hz=997.0, level=0.5), RATE)
    assert found.finite and found.clipped_fraction == 0 and found.silent_fraction == 0
    assert found.peak == pytest.approx(0.5, abs=1e-3)
    assert found.rms_db == pytest.approx(-9.03, abs=0.01)
    assert found.crest_db == pytest.approx(3.01, abs=0.01)
    # BS.1770: a full-scale sine of 997 Hz in one channel reads -3.01 LUFS.
    assert found.loudness_lufs == pytest.approx(-9.03, abs=0.1)
    assert any("tone" in problem for problem in found.problems())


def speech_like(seconds=4.0):
    rng = np.random.default_rng(1)
    noise = rng.standard_normal(int(seconds * RATE)) * 0.05
    return (noise * (1 + np.sin(np.arange(noise.size) / 2000))).astype("f")


def test_health_names_each_problem():
    good = speech_like()
    assert health(good, RATE).problems() == ()
    assert health(good + 0.03, RATE).problems() == (), "an offset that nobody hears"
    pause = np.where(np.arange(good.size) > RATE, 0, good).astype("f")
    nan = good.copy()
    nan[0] = np.inf
    broken = {
        "NaN or infinite": nan,
        "no audio": good[:0],
        "silent": good * 1e-5,
        "clipped": np.clip(good * 20, -1, 1),
        "offset": good + 0.1,
        "silence": pause,
    }
    for word, samples in broken.items():
        assert any(word in problem for problem in health(samples, RATE).problems()), word


def test_health_survives_anything():
    for size in (0, 1, 5, 100):
        assert health(np.zeros(size, "f"), RATE).loudness_lufs is None
    assert health(np.zeros(RATE, "f"), RATE).loudness_lufs is None
    assert np.isfinite(health(speech_like(), 1000).rms_db)


# Picture


def test_spectrogram_shows_a_rising_tone_from_low_left_to_high_right():
    t = np.arange(RATE * 2) / RATE
    picture = spectrogram(np.sin(2 * np.pi * (200 * t + 1500 * t**2)), RATE, 200, 100)
    assert picture.shape == (100, 200, 3) and picture.dtype == np.uint8
    brightest = picture.sum(axis=2).argmax(axis=0)
    assert brightest[10] > brightest[100] > brightest[190]


def test_a_spectrogram_of_any_audio_has_the_requested_size():
    dark = spectrogram(np.zeros(0, "f"), RATE, 30, 20)
    assert dark.shape == (20, 30, 3) and dark.max() < 60
    assert np.array_equal(spectrogram(np.zeros(RATE, "f"), RATE, 30, 20), dark)
    for size in (1, 50, 3000):
        assert spectrogram(np.ones(size, "f"), RATE, 30, 20).shape == (20, 30, 3)
    assert np.isfinite(spectrogram(np.full(9000, np.nan, "f"), RATE, 30, 20)).all()


def test_spectrogram_misses_no_click_in_long_audio():
    wave = np.zeros(RATE * 60, "f")
    for second in range(1, 60, 7):
        wave[second * RATE] = 1.0
    lit = spectrogram(wave, RATE, 600, 40).sum(axis=(0, 2))
    for second in range(1, 60, 7):
        assert lit[second * 10 - 1 : second * 10 + 2].max() > 2 * np.median(lit)


def test_a_spectrogram_transforms_no_more_for_long_audio(monkeypatch):
    transformed, rfft = [], np.fft.rfft
    monkeypatch.setattr(
        np.fft, "rfft", lambda pieces: transformed.append(pieces.size) or rfft(pieces)
    )
    for seconds in (20, 120):
        spectrogram(np.ones(seconds * RATE, "f"), RATE, 100, 20)
    assert transformed[0] == transformed[1] <= 20 * RATE
