"""The waveform check: speech passes, and what a broken device sounds like is named."""

import numpy as np
import pytest

from dia_demo import audio
from dia_demo.accelerator import guard
from dia_demo.accelerator.guard import check_waveform
from dia_demo.errors import RunError


def speech(seconds=2.0, rate=44100) -> np.ndarray:
    """A voice-like wave: harmonics of 120 Hz falling off, in syllables."""
    t = np.arange(int(seconds * rate)) / rate
    wave = sum(np.sin(2 * np.pi * 120 * k * t) / k**1.5 for k in range(1, 30))
    return (0.1 * wave * (0.2 + np.sin(2 * np.pi * 2 * t) ** 2)).astype(np.float32)


def test_speech_passes_the_waveform_check():
    check_waveform(speech(), 44100)


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda x: np.where(np.arange(len(x)) == 9, np.nan, x), "NaN or infinite"),
        (lambda x: 0 * x, "silent"),
        (lambda x: np.clip(40 * x, -1, 1), "clipped"),
        (lambda x: x + 0.2, "offset"),
        (lambda x: 0.5 * np.sign(np.sin(np.arange(len(x)) / 40)), "crest factor"),
        (lambda x: x + 0.2 * np.random.default_rng(0).standard_normal(len(x)), "hiss"),
    ],
)
def test_what_is_no_speech_is_named(spoil, words):
    with pytest.raises(RunError, match=words):
        check_waveform(spoil(speech()).astype(np.float32), 44100)


def test_high_band_is_a_share_of_power():
    noise = np.random.default_rng(0).standard_normal(44100)
    assert guard.high_band_share(noise) == pytest.approx(0.5, abs=0.02)
    assert guard.high_band_share(np.zeros(10)) == 0 == guard.high_band_share(np.zeros(0))
    assert guard.high_band_share(speech()) < 0.01 and audio.health(speech(), 44100).crest_db > 6
