"""Turns at one loudness, while a take is generated.

The loudness of a turn is measured in its first seconds, which are held back so long; its gain then
stays the same until the next turn begins in silence. So what is played at once is the take, and the
samples depend on nothing but the samples before.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dia_demo.audio import integrated_loudness

LOUDNESS = -20.0  # LUFS
MEASURED_SECONDS = 3.0
LARGEST_GAIN_DB = 6.0
# Above KNEE, peaks are bent to stay below PEAK. Between its samples a wave may rise a little more.
KNEE, PEAK = 0.75, 0.86


class TurnLoudness:
    """One take, as its samples arrive."""

    def __init__(self, sample_rate: int) -> None:
        self._rate = sample_rate
        self._measured = round(MEASURED_SECONDS * sample_rate)
        self._pending = np.zeros(0, np.float32)
        self._returned = 0
        self._last_gain, self._gain = 1.0, 0.0  # 0: of a turn that is not measured yet.

    def push(self, samples: np.ndarray, starts: Sequence[int], finish: bool) -> np.ndarray:
        """Add float32 [k]; returns the samples that are final. starts: the first sample of every
        turn among all samples so far. finish: no others follow."""
        self._pending = np.concatenate([self._pending, samples])
        out = [samples[:0]]
        while len(self._pending):
            start = next((start for start in starts if start > self._returned), None)
            length = len(self._pending) if start is None else start - self._returned
            length = min(length, len(self._pending))
            is_whole = finish or (start is not None and length == start - self._returned)
            if not self._gain:
                if not is_whole and length < self._measured:
                    break
                self._last_gain = self._gain = self._gain_of(
                    self._pending[: self._measured][:length]
                )
            out.append(limit_peaks(self._pending[:length] * np.float32(self._gain)))
            self._pending = self._pending[length:]
            self._returned += length
            if is_whole:
                self._gain = 0.0
        return np.concatenate(out)

    def _gain_of(self, samples: np.ndarray) -> float:
        """The factor that brings a turn to LOUDNESS; of one too short to measure, the last."""
        loudness = integrated_loudness(samples, self._rate)
        if loudness is None:
            return self._last_gain
        gain_db = np.clip(LOUDNESS - loudness, -LARGEST_GAIN_DB, LARGEST_GAIN_DB)
        return float(10 ** (gain_db / 20))


def limit_peaks(samples: np.ndarray) -> np.ndarray:
    """Float32 [n] with peaks below PEAK; what is below KNEE stays as it is."""
    size = np.abs(samples)
    room = PEAK - KNEE
    bent = KNEE + room * np.tanh((size - KNEE) / room)
    return np.where(size > KNEE, np.copysign(bent, samples), samples).astype(np.float32)
