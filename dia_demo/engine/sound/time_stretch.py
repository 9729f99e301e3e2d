"""The speed of speech without its pitch, changed while the samples arrive.

WSOLA (Verhelst and Roelands, 1993): windows of the sound are laid over each other closer together
or farther apart, each taken from where it continues the one before best. So consonants stay as they
are, which a phase vocoder blurs: see docs/dialogues.md for the words that are understood.
"""

from __future__ import annotations

import numpy as np

from dia_demo.audio import SPEEDS
from dia_demo.engine.sound.take_audio import TakeAudio

WINDOW_SECONDS = 0.032
# A window may be taken from so much earlier or later: more than half a period of any voice.
REACH_SECONDS = 0.010


class TimeStretch:
    """One wave, said faster (speed above 1) or slower: the returned samples, in order, are the
    same however the wave arrives. Raises InputError outside 0.25 to 4."""

    def __init__(self, sample_rate: int, speed: float) -> None:
        SPEEDS.check("speed", speed)
        self._speed = speed
        self._hop = round(WINDOW_SECONDS * sample_rate / 2)
        self._size = 2 * self._hop
        self._reach = round(REACH_SECONDS * sample_rate)
        # Without its last point: shifted by the hop, the windows sum to 1.
        self._window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(self._size) / self._size)
        # The first window is centred on the first sample; nothing is before it.
        self._input = np.zeros(self._reach + self._hop)
        self._first = 0  # The place of self._input[0].
        self._frames = 0
        self._continuation = 0  # Where the last window would go on.
        self._tail = np.zeros(self._hop)  # Of that window, where the next one overlaps.
        self._received = self._returned = 0

    def push(self, samples: np.ndarray) -> np.ndarray:
        """Add float32 [k]; returns the samples that are final."""
        self._received += len(samples)
        self._input = np.concatenate([self._input, samples])
        return self._take_ready()

    def finish(self) -> np.ndarray:
        """The rest: in all, the number of samples divided by the speed."""
        length = round(self._received / self._speed)
        pieces = [np.zeros(0, np.float32)]
        while (missing := length - self._returned) > 0:
            self._input = np.concatenate([self._input, np.zeros(self._size)])
            pieces.append(self._take_ready()[:missing])
        return np.concatenate(pieces)

    def _take_ready(self) -> np.ndarray:
        """The samples of all windows that lie within the input."""
        pieces = [np.zeros(0)]
        while self._needed <= self._first + len(self._input):
            pieces.append(self._next_hop())
        made = np.concatenate(pieces).astype(np.float32)
        self._returned += len(made)
        return made

    @property
    def _needed(self) -> int:
        """The end of the input that the next window depends on."""
        return max(self._middle + self._reach, self._continuation) + self._size

    @property
    def _middle(self) -> int:
        """The first place of the next window, were it taken from where the speed says."""
        return round(self._frames * self._hop * self._speed) + self._reach

    def _next_hop(self) -> np.ndarray:
        """Lay the next window over the last one; returns what no other one overlaps. Half of the
        first window is before the first sample."""
        place = self._best_place() - self._first
        self._continuation = place + self._first + self._hop
        window = self._window * self._input[place : place + self._size]
        made = self._tail + window[: self._hop]
        self._tail = window[self._hop :]
        self._frames += 1
        unused = min(self._continuation, self._middle - self._reach) - self._first
        self._input = self._input[unused:]
        self._first += unused
        return made if self._frames > 1 else made[:0]

    def _best_place(self) -> int:
        """The place within reach whose samples are most like those that follow the last window."""
        if not self._frames:
            return self._middle
        start = self._continuation - self._first
        wanted = self._input[start : start + self._size]
        low = self._middle - self._reach - self._first
        near = self._input[low : low + self._size + 2 * self._reach]
        energy = np.concatenate([[0.0], np.cumsum(near**2)])
        energy = np.maximum(energy[self._size :] - energy[: -self._size], 1e-9)
        likeness = np.correlate(near, wanted, "valid") / np.sqrt(energy)
        best = int(likeness.argmax()) if likeness.max() > 0 else self._reach
        return self._middle - self._reach + best


class StretchedAudio:
    """A finished take (see `TakeAudio`) at another speed, finished once more: stretching blurs the
    ends and stretches the silence."""

    def __init__(self, sample_rate: int, speed: float) -> None:
        self._stretch = TimeStretch(sample_rate, speed)
        self._audio = TakeAudio(sample_rate)

    def push(self, samples: np.ndarray) -> np.ndarray:
        """Add float32 [k] of the take; returns the samples that are final."""
        return self._audio.push(self._stretch.push(samples))

    def finish(self, ended_by_itself: bool) -> np.ndarray:
        """The rest; see `TakeAudio.finish`."""
        rest = self._audio.push(self._stretch.finish())
        return np.concatenate([rest, self._audio.finish(ended_by_itself)])
