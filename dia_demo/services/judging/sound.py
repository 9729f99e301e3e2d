"""What can be measured of a chunk's samples alone: where its sound is, how loud, how noisy."""

from __future__ import annotations

import numpy as np

PIECE_SECONDS = 0.010
# A piece is sound unless it is this far below the loud pieces, or below QUIET_DB of full scale.
BELOW_LOUD_DB = 35.0
QUIET_DB = -60.0
# Speech changes its level all the time; noise stays within this many dB (standard deviation).
STEADY_DB = 2.5


class Sound:
    """The level of every 10 ms of float32 [n], and which of them are sound."""

    def __init__(self, samples: np.ndarray, sample_rate: int) -> None:
        self.samples, self.sample_rate = samples, sample_rate
        self.piece = max(1, round(PIECE_SECONDS * sample_rate))
        whole = len(samples) // self.piece * self.piece
        power = np.square(samples[:whole], dtype=np.float64).reshape(-1, self.piece).mean(axis=1)
        self.levels = 10 * np.log10(np.maximum(power, 1e-12))
        loud = float(np.percentile(self.levels, 90)) if len(self.levels) else QUIET_DB
        self.is_sound = self.levels > max(loud - BELOW_LOUD_DB, QUIET_DB)

    @property
    def is_silent(self) -> bool:
        """Whether there is no sound at all."""
        return not self.is_sound.any()

    @property
    def bounds(self) -> tuple[int, int]:
        """The first and the last sample of its sound, without the end; (0, 0) for silence."""
        sounds = np.flatnonzero(self.is_sound)
        if not len(sounds):
            return 0, 0
        return int(sounds[0]) * self.piece, min(int(sounds[-1] + 1) * self.piece, len(self.samples))

    @property
    def seconds(self) -> float:
        """How long it sounds, without its pauses."""
        return int(self.is_sound.sum()) * self.piece / self.sample_rate

    def is_sound_between(self, start: float, end: float) -> np.ndarray:
        """Which pieces from `start` to `end`, in seconds, are sound."""
        return self.is_sound[self._piece_at(start) : self._piece_at(end)]

    def end_before_silence(self, after: float) -> int:
        """The last sample, without the end, of the sound before the first silent piece that is
        `after` these seconds or later."""
        at = self._piece_at(after)
        quiet = np.flatnonzero(~self.is_sound[at:])
        sounds = np.flatnonzero(
            self.is_sound[: at + int(quiet[0])] if len(quiet) else self.is_sound
        )
        last = int(sounds[-1] + 1) if len(sounds) else 0
        return min(last * self.piece, len(self.samples))

    def quietest(self, start: float, end: float) -> int:
        """The sample in the middle of the quietest piece from `start` to `end`, in seconds."""
        first = self._piece_at(start)
        levels = self.levels[first : max(first + 1, self._piece_at(end))]
        best = first + (int(levels.argmin()) if len(levels) else 0)
        return min(best * self.piece + self.piece // 2, len(self.samples))

    def _piece_at(self, seconds: float) -> int:
        return max(0, round(seconds * self.sample_rate / self.piece))
