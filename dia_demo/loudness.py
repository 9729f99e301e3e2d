"""Level matching for a fair comparison: louder clips are attenuated, and none is amplified.

Loudness is the integrated loudness of ITU-R BS.1770 (pyloudnorm, through `dia_demo.audio`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dia_demo.audio import integrated_loudness, to_int16
from dia_demo.errors import RunError

TOLERANCE_LU = 0.1
OVERSAMPLING = 4


@dataclass(frozen=True)
class Matched:
    """Clips int16 [n] of one loudness and one length, and the gain in dB (<= 0) each one got."""

    clips: tuple[np.ndarray, ...]
    gains_db: tuple[float, ...]


def true_peak(samples: np.ndarray, sample_rate: int) -> float:
    """The true peak of float32 [n], oversampled four times (BS.1770)."""
    import soxr

    if not len(samples):
        return 0.0
    wide = soxr.resample(np.asarray(samples, np.float32), sample_rate, OVERSAMPLING * sample_rate)
    return float(max(np.abs(wide).max(initial=0.0), np.abs(samples).max(initial=0.0)))


def match_levels(waves: Sequence[np.ndarray], sample_rate: int) -> Matched:
    """Bring float32 [n] waves to the loudness of the quietest, and pad them to one length.

    If a clip would still exceed full scale between its samples, all are attenuated together. Raises
    RunError if a wave is too short (under 0.4 s) or too quiet to have a loudness.
    """
    gains = _gains([_loudness_or_error(wave, sample_rate) for wave in waves])
    peaks = [
        true_peak(wave, sample_rate) * 10 ** (gain / 20)
        for wave, gain in zip(waves, gains, strict=True)
    ]
    over = 20 * np.log10(max(1.0, *peaks))
    gains = [gain - over for gain in gains]
    clips = [_turn_down(wave, gain) for wave, gain in zip(waves, gains, strict=True)]
    levels = [_loudness_or_error(clip / 32767, sample_rate) for clip in clips]
    if max(levels) - min(levels) > TOLERANCE_LU:
        raise RunError(
            f"The clips could not be matched in loudness ({max(levels) - min(levels):.2f} LU "
            "apart), because one of them is close to silence: try another seed."
        )
    # Last: silence behind a clip hides its length, but would change its measured loudness.
    longest = max(len(clip) for clip in clips)
    padded = tuple(np.pad(clip, (0, longest - len(clip))) for clip in clips)
    return Matched(padded, tuple(float(gain) for gain in gains))


def _gains(loudness: list[float]) -> list[float]:
    return [min(loudness) - level for level in loudness]


def _turn_down(wave: np.ndarray, gain_db: float) -> np.ndarray:
    return to_int16(wave * np.float32(10 ** (gain_db / 20)))


def _loudness_or_error(wave: np.ndarray, sample_rate: int) -> float:
    loudness = integrated_loudness(wave, sample_rate)
    if loudness is None:
        raise RunError(
            f"A take of {len(wave) / sample_rate:.1f} s is too short or too quiet to be compared "
            "at equal loudness: try another seed or a longer script."
        )
    return loudness
