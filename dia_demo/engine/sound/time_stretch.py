"""The speed of speech without its pitch, changed while the samples arrive.

A phase vocoder with a quarter of a window between windows. On a whole take it gives what
`librosa.effects.time_stretch` gives, which needs all samples at once and seconds to be imported.
"""

from __future__ import annotations

import numpy as np

from dia_demo.audio import SPEEDS, window_size
from dia_demo.engine.sound.take_audio import TakeAudio

_TINY = 1e-12


class TimeStretch:
    """One wave, said faster (speed above 1) or slower: the returned samples, in order, are the
    same however the wave arrives. Raises InputError outside 0.5 to 2."""

    def __init__(self, sample_rate: int, speed: float) -> None:
        SPEEDS.check("speed", speed)
        self._speed = speed
        self._size = window_size(sample_rate)
        self._hop = self._size // 4
        # Of even length, without its last point: shifted by the hop, the squares sum to a constant.
        self._window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(self._size) / self._size)
        # The first window is centred on the first sample.
        self._input = np.zeros(self._size // 2)
        self._skip = self._size // 2
        self._received = self._returned = 0
        self._spectra: list[np.ndarray] = []  # Of the windows from `_first` on.
        self._first = 0
        self._frames = 0  # Windows of the result so far.
        self._phasor = np.ones(self._size // 2 + 1, complex)
        self._sum = np.zeros(self._size)
        self._weight = np.zeros(self._size)

    def push(self, samples: np.ndarray) -> np.ndarray:
        """Add float32 [k]; returns the samples that are final."""
        self._received += len(samples)
        self._analyse(samples)
        frames = []
        while int(self._frames * self._speed) + 1 < self._first + len(self._spectra):
            frames.append(self._next_frame())
        return self._trimmed(frames)

    def finish(self) -> np.ndarray:
        """The rest: in all, the number of samples divided by the speed."""
        self._analyse(np.zeros(self._size // 2))
        windows = self._first + len(self._spectra)
        self._spectra += [np.zeros(self._size // 2 + 1, complex)] * 2
        frames = []
        while self._frames * self._speed < windows:
            frames.append(self._next_frame())
        # What the last windows still overlap.
        returned = self._returned
        rest = self._trimmed([*frames, self._sum / np.maximum(self._weight, _TINY)])
        length = round(self._received / self._speed) - returned
        return np.pad(rest, (0, max(0, length - len(rest))))[:length]

    def _analyse(self, samples: np.ndarray) -> None:
        self._input = np.concatenate([self._input, samples])
        while len(self._input) >= self._size:
            # One at a time: the result must not depend on how many there are.
            self._spectra.append(np.fft.rfft(self._window * self._input[: self._size]))
            self._input = self._input[self._hop :]

    def _next_frame(self) -> np.ndarray:
        """The next hop of samples: between two windows, magnitudes are mixed and phases go on."""
        place = self._frames * self._speed
        index, part = int(place), place % 1
        del self._spectra[: index - self._first]
        self._first = index
        before, after = self._spectra[:2]
        if self._frames == 0:
            self._phasor = _phasor(before)
        magnitude = (1 - part) * np.abs(before) + part * np.abs(after)
        self._sum += self._window * np.fft.irfft(magnitude * self._phasor, self._size)
        self._weight += self._window**2
        self._phasor = _phasor(self._phasor * _phasor(after) * _phasor(before).conj())
        self._frames += 1
        made = self._sum[: self._hop] / np.maximum(self._weight[: self._hop], _TINY)
        for store in (self._sum, self._weight):
            store[: -self._hop] = store[self._hop :]
            store[-self._hop :] = 0
        return made

    def _trimmed(self, pieces: list[np.ndarray]) -> np.ndarray:
        """Float32 samples, without the half window before the first one."""
        made = np.concatenate([np.zeros(0), *pieces]).astype(np.float32)
        skipped = min(self._skip, len(made))
        self._skip -= skipped
        self._returned += len(made) - skipped
        return made[skipped:]


def _phasor(spectrum: np.ndarray) -> np.ndarray:
    """Complex numbers of magnitude 1 with the same phases; 1 for 0."""
    magnitude = np.abs(spectrum)
    return np.where(magnitude > 0, spectrum / np.maximum(magnitude, 1e-300), 1)


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
