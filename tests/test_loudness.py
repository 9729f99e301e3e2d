"""Level matching: one loudness by pyloudnorm, peaks never raised, lengths that tell nothing."""

from __future__ import annotations

import numpy as np
import pyloudnorm
import pytest

from dia_demo.errors import RunError
from dia_demo.loudness import match_levels, true_peak

RATE = 44100


def speech_like(seconds: float, level: float, seed: int = 0) -> np.ndarray:
    """Noise in bursts, as loud as `level`."""
    random = np.random.default_rng(seed)
    t = np.arange(int(seconds * RATE)) / RATE
    bursts = 0.5 + 0.5 * np.sin(2 * np.pi * 2.3 * t + seed)
    return (level * bursts * random.standard_normal(t.size) / 4).astype(np.float32)


def lufs(clip: np.ndarray) -> float:
    return pyloudnorm.Meter(RATE).integrated_loudness(clip / 32767)


@pytest.mark.parametrize("levels", [(0.9, 0.1), (0.05, 0.8), (0.5, 0.5), (0.9, 0.4, 0.02)])
def test_matched_clips_have_equal_loudness(levels):
    waves = [speech_like(2 + index, level, index) for index, level in enumerate(levels)]
    matched = match_levels(waves, RATE)
    # Without the silence that evens out the lengths.
    loudness = [lufs(clip[: wave.size]) for clip, wave in zip(matched.clips, waves, strict=True)]
    assert max(loudness) - min(loudness) < 0.1
    assert len({len(clip) for clip in matched.clips}) == 1
    for clip, wave, gain in zip(matched.clips, waves, matched.gains_db, strict=True):
        assert clip.dtype == np.int16 and gain <= 0
        assert np.abs(clip / 32767).max() <= np.abs(wave).max() + 1 / 32767


def test_the_quieter_clip_is_left_as_it_is():
    loud, quiet = speech_like(2, 0.8), speech_like(2, 0.2, 1)
    matched = match_levels([loud, quiet], RATE)
    assert matched.gains_db[1] == 0 and matched.gains_db[0] < -6
    assert np.array_equal(matched.clips[1], np.rint(quiet * 32767).astype(np.int16))


def test_silence_behind_a_short_clip_does_not_change_its_level():
    """Measured with 9 s of silence behind it, a clip of 3 s came out about 0.2 LU too loud."""
    short, long = speech_like(3, 0.5), speech_like(12, 0.5, 1)
    matched = match_levels([short, long], RATE)
    trimmed = matched.clips[0][: short.size]
    assert not matched.clips[0][short.size :].any() and matched.clips[0].size == long.size
    assert lufs(trimmed) == pytest.approx(lufs(matched.clips[1]), abs=0.02)


def test_the_true_peak_lies_between_the_samples():
    """A tone of a quarter of the rate, 45 degrees off, touches only 0.707 of its peak."""
    tone = np.sin(2 * np.pi * np.arange(RATE) / 4 + np.pi / 4).astype(np.float32)
    assert np.abs(tone).max() == pytest.approx(0.7071, abs=1e-3)
    assert true_peak(tone, RATE) == pytest.approx(1.0, abs=0.02)
    assert true_peak(np.zeros(0, np.float32), RATE) == 0


def test_peaks_beyond_full_scale_bring_all_clips_down():
    tone = 1.3 * np.sin(2 * np.pi * np.arange(RATE) / 4 + np.pi / 4).astype(np.float32)
    matched = match_levels([tone, tone], RATE)
    assert matched.gains_db[0] == matched.gains_db[1] < -1
    assert true_peak(matched.clips[0] / 32767, RATE) <= 1.01


@pytest.mark.parametrize("bad", [np.zeros(2 * RATE, np.float32), speech_like(0.2, 0.5)])
def test_what_has_no_loudness_is_refused(bad):
    with pytest.raises(RunError, match="too short or too quiet"):
        match_levels([speech_like(2, 0.5), bad], RATE)
