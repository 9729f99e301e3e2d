"""What tells voices apart: the pitch that somebody mostly speaks at, and the mean spectrum."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from dia_demo.prompt.speech import RATE, median_pitch, split
from dia_demo.voices import SPECTRUM_BANDS as BANDS

_LOWEST, _HIGHEST = 300.0, 7500.0  # Hz
_WINDOW, _HOP = 1024, 256
# Of the power of the loudest window: quieter ones are pauses.
_LOUD = 0.01


@dataclass(frozen=True)
class VoiceTraits:
    """semitones: the median pitch above 100 Hz, None where nothing is voiced. spectrum: see
    `spectrum`; empty where it is not known."""

    semitones: float | None
    spectrum: tuple[float, ...] = ()


# Of S1 and S2.
TraitsOfBoth = tuple[VoiceTraits | None, VoiceTraits | None]


def voice_traits(wave: np.ndarray) -> VoiceTraits:
    """Those of a wave [n] at RATE."""
    hertz = median_pitch(wave)
    semitones = None if hertz is None else float(12 * np.log2(hertz / 100))
    return VoiceTraits(semitones, tuple(spectrum(wave).round(2).tolist()))


def spectrum(wave: np.ndarray) -> np.ndarray:
    """The mean log power of a wave [n] at RATE in BANDS mel bands, in nepers and without its mean,
    over the windows that are not silent."""
    wave = np.pad(wave, (0, max(0, _WINDOW - len(wave))))
    windows = np.lib.stride_tricks.sliding_window_view(wave, _WINDOW)[::_HOP]
    shape = np.hanning(_WINDOW)
    power = np.concatenate([np.abs(np.fft.rfft(part * shape)) ** 2 for part in split(windows)])
    whole = power.sum(axis=1)
    bands = np.log(power[whole >= _LOUD * whole.max()] @ _filters() + 1e-6).mean(axis=0)
    return bands - bands.mean()


def distance(one: Sequence[float], other: Sequence[float]) -> float:
    """Of two spectra, in nepers."""
    return float(np.sqrt(np.square(np.subtract(one, other)).mean()))


@cache
def _filters() -> np.ndarray:
    """Triangles that are equally wide in mel, [bins, BANDS]."""
    low_mel, high_mel = (2595 * float(np.log10(1 + hertz / 700)) for hertz in (_LOWEST, _HIGHEST))
    edges = 700 * (10 ** (np.linspace(low_mel, high_mel, BANDS + 2) / 2595) - 1)
    bins = np.fft.rfftfreq(_WINDOW, 1 / RATE)[:, None]
    low, middle, high = edges[:-2], edges[1:-1], edges[2:]
    rising, falling = (bins - low) / (middle - low), (high - bins) / (high - middle)
    return np.maximum(0, np.minimum(rising, falling))
