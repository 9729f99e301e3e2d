"""Turns of one loudness, measured in their first seconds, whatever the pieces they arrive in."""

import numpy as np
import pytest

from dia_demo.audio import integrated_loudness
from dia_demo.engine.turns.loudness import LOUDNESS, PEAK, TurnLoudness, limit_peaks
from dia_demo.loudness import true_peak

RATE = 16000
STARTS = [0, 40_000, 120_000, 124_000, 160_000]


def talk(seconds: float, db: float, seed: int) -> np.ndarray:
    """Noise in syllables."""
    times = np.arange(round(seconds * RATE)) / RATE
    noise = np.random.default_rng(seed).normal(size=len(times))
    envelope = np.sin(2 * np.pi * 2 * times) ** 2
    return (10 ** (db / 20) * noise * envelope).astype(np.float32)


def take() -> np.ndarray:
    ends = [*STARTS[1:], 200_000]
    lengths = [(end - start) / RATE for start, end in zip(STARTS, ends, strict=True)]
    levels = (-22, -17, -30, -22, -19)
    return np.concatenate(
        [talk(n, db, k) for k, (n, db) in enumerate(zip(lengths, levels, strict=True))]
    )


def pushed(samples: np.ndarray, step: int) -> np.ndarray:
    turns, pieces = TurnLoudness(RATE), []
    for start in range(0, len(samples), step):
        known = [first for first in STARTS if first < start + step]
        finish = start + step >= len(samples)
        pieces.append(turns.push(samples[start : start + step], known, finish))
    return np.concatenate(pieces)


def test_turns_and_the_take_have_one_loudness_without_peaks():
    out = pushed(take(), 200_000)
    turns = [part for part in np.split(out, STARTS[1:]) if len(part) > RATE]
    levels = [integrated_loudness(turn, RATE) for turn in turns]
    assert max(levels) - min(levels) < 0.5 and abs(np.mean(levels) - LOUDNESS) < 0.5
    assert abs(integrated_loudness(out, RATE) - LOUDNESS) < 0.5
    assert 20 * np.log10(true_peak(out, RATE)) <= -1


@pytest.mark.parametrize("step", [384, 5000, 47_999])
def test_pieces_give_the_same_samples(step):
    np.testing.assert_array_equal(pushed(take(), step), pushed(take(), 200_000))


def test_a_turn_too_short_to_measure_has_the_gain_of_the_one_before():
    before, short = take()[120_000:124_000], pushed(take(), 200_000)[120_000:124_000]
    gain = pushed(take(), 200_000)[100_000] / take()[100_000]
    np.testing.assert_allclose(short, before * gain, rtol=1e-5)


def test_silence_stays_silence():
    assert not TurnLoudness(RATE).push(np.zeros(RATE, np.float32), [], finish=True).any()


def test_what_is_not_loud_is_not_changed_by_the_limit():
    samples = np.linspace(-0.75, 0.75, 999, dtype=np.float32)
    np.testing.assert_array_equal(limit_peaks(samples), samples)
    assert np.abs(limit_peaks(np.linspace(-4, 4, 999, dtype=np.float32))).max() <= PEAK
