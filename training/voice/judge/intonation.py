"""How a voice moves and what lies below it: spread of pitch, its steps, rumble.

Pitch is in Hz per 5 ms as `melody.pitch_track` gives it, 0 where nothing is voiced.
"""

from __future__ import annotations

import numpy as np

from training.voice.teacher.phones import SAMPLE_RATE

OFFSETS = 4  # positions of the semitone grid that are tried
RUMBLE_HZ = 50.0


def semitones(f0: np.ndarray) -> np.ndarray:
    """The pitch of voiced frames, in semitones from 100 Hz."""
    return 12 * np.log2(f0[f0 > 0] / 100)


def deviation(tracks: list[np.ndarray]) -> float:
    """The standard deviation of the pitch within a sentence, in semitones; mean over sentences."""
    spreads = [semitones(f0).std() for f0 in tracks if (f0 > 0).any()]
    return float(np.mean(spreads)) if spreads else 0.0


def two_steps(tracks: list[np.ndarray]) -> float:
    """The share of voiced frames in the two most common semitones, for the worst position of the
    grid of semitones; 1 where nothing is voiced."""
    pitch = np.concatenate([semitones(f0) for f0 in tracks])
    if not len(pitch):
        return 1.0
    return max(
        float(np.sort(np.unique(np.floor(pitch + k / OFFSETS), return_counts=True)[1])[-2:].sum())
        / len(pitch)
        for k in range(OFFSETS)
    )


def rumble(waves: list[np.ndarray]) -> float:
    """Power below 50 Hz, a constant offset included, in dB of the whole."""
    low = total = 0.0
    for wave in waves:
        power = np.abs(np.fft.rfft(wave.astype(np.float64))) ** 2
        power[1:] *= 2  # the negative frequencies
        low += float(power[: int(np.ceil(RUMBLE_HZ * len(wave) / SAMPLE_RATE))].sum()) / len(wave)
        total += float(power.sum()) / len(wave)
    return float(10 * np.log10(max(low, 1e-12) / max(total, 1e-12)))
