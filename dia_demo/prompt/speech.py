"""Whether a sound is speech, and where in it the speech is. No recogniser: pitch and levels.

Speech alternates between voiced sounds, whose pitch glides, and unvoiced ones, in syllables that
differ in level. A tone, noise, a siren or notes lack at least one of these.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from dia_demo.audio import SILENCE_DB

RATE = 16000  # of the waves analysed here, Hz
FRAME_SECONDS = 0.01
_HOP, _WINDOW = 160, 640
_PITCHES = (60.0, 450.0)  # Hz
# Windows that are transformed together, so that a minute takes hardly more memory than a second.
_AT_ONCE = 128
# A frame is voiced above this autocorrelation at the lag of its pitch.
_VOICED = 0.6
# A pitch is steady if it changes by less than this in a frame, in cents.
_STEADY_CENTS = 2.0
# Frames: the shortest voiced sound, the longest consonants before the first or after the last one,
# and how much of anything else is a background; dB by which consonants are louder than that.
_SHORTEST_VOICED, _CONSONANTS, _BACKGROUND, _ABOVE = 4, 40, 15, 6.0
# Frames: the rank of the level that counts as loud, and what a background is averaged over.
_LOUDEST, _SMOOTH = 20, 5


@dataclass(frozen=True)
class Traits:
    """What tells speech from other sounds, of the frames that are not silent.

    Takes in 16 voices: voiced 0.66 to 0.87, steady up to 0.11, range_db from 13.5.
    voiced: the share of frames with a pitch. steady: the share of neighbouring voiced frames with
    the same pitch. range_db: between the quiet and the loud frames.
    """

    seconds: float
    voiced: float
    steady: float
    range_db: float

    def problem(self) -> str | None:
        """What this sound is instead of speech; None if it may be speech."""
        if self.voiced < 0.15:
            return "noise: it has no voice in it"
        if self.range_db < 6 or self.voiced > 0.97:
            return "a tone or hum: it has no syllables"
        if self.steady > 0.35 or (self.steady > 0.2 and self.range_db < 10):
            return "music or tones: its pitch does not move as a voice's does"
        return None


def frame_levels(wave: np.ndarray, rate: int) -> np.ndarray:
    """The level of each frame of FRAME_SECONDS, in dB of full scale, at least -120."""
    step = max(1, round(FRAME_SECONDS * rate))
    pieces = wave[: len(wave) // step * step].reshape(-1, step).astype(np.float64)
    return 10 * np.log10(np.maximum((pieces**2).mean(axis=1), 1e-12))


def is_silent(wave: np.ndarray, rate: int) -> bool:
    """Whether no frame of a wave can be heard."""
    return bool(frame_levels(wave, rate).max(initial=-np.inf) < SILENCE_DB)


def loud_frames(levels: np.ndarray) -> np.ndarray:
    """Which frames are not silent, bool: those within 35 dB of the loud ones, less where a steady
    background is louder than that.

    Silence and clicks beside the speech make no difference.
    """
    if len(levels) < _LOUDEST:
        return np.zeros(len(levels), bool)
    loud = np.sort(levels)[-_LOUDEST]
    smooth = np.convolve(levels, np.full(_SMOOTH, 1 / _SMOOTH), mode="valid")
    floor = np.percentile(smooth, 3)
    return levels > np.clip(floor + 8, loud - 35, loud - 20)


def speech_frames(wave: np.ndarray) -> np.ndarray:
    """Which frames of a wave [n] at RATE may be speech, bool: those that are not silent, between
    the first voiced sound and the last one, with the consonants around them.

    So the noise of a room before and after the speech is none of it, however loud it is.
    """
    levels = frame_levels(wave, RATE)
    active = loud_frames(levels)
    voiced = np.zeros(len(active), bool)
    _, strength = _pitches(_windows(wave, len(active)))
    voiced[: len(strength)] = strength > _VOICED
    sounds = _runs(voiced & active, _SHORTEST_VOICED)
    if not sounds:
        return active
    start, end = max(0, sounds[0][0] - _CONSONANTS), sounds[-1][1] + _CONSONANTS
    for outside, margin in ((slice(0, start), slice(start, sounds[0][0])),
                            (slice(end, None), slice(sounds[-1][1], end))):  # fmt: skip
        if active[outside].sum() >= _BACKGROUND:
            # Loud enough to be taken for speech; consonants are louder.
            active[margin] &= levels[margin] > np.median(levels[outside][active[outside]]) + _ABOVE
        active[outside] = False
    return active


def _runs(flags: np.ndarray, shortest: int) -> list[tuple[int, int]]:
    """The runs [start, end) of true flags that are long enough."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], flags, [False]]).astype(int)))
    return [(int(a), int(b)) for a, b in edges.reshape(-1, 2) if b - a >= shortest]


def spans(active: np.ndarray, longest_gap: int, shortest: int) -> list[tuple[int, int]]:
    """The runs of active frames [start, end), joined over gaps up to `longest_gap`, without those
    shorter than `shortest`: a click beside the speech is none of it."""
    joined: list[list[int]] = []
    for start, end in _runs(active, 1):
        if joined and start - joined[-1][1] <= longest_gap:
            joined[-1][1] = end
        else:
            joined.append([start, end])
    return [(start, end) for start, end in joined if active[start:end].sum() >= shortest]


def noise_distance(wave: np.ndarray, start: int, end: int) -> float:
    """How far the quietest moments of speech are below its loud ones, in dB, from 0: steady noise
    fills them. wave [n] at RATE. start, end: the frames of the speech, its pauses included."""
    levels = frame_levels(wave, RATE)[start:end]
    quiet, loud = np.percentile(levels, (3, 95))
    return float(loud - quiet)


def traits(wave: np.ndarray, active: np.ndarray) -> Traits:
    """Measure a wave [n] at RATE. active: which of its frames are not silent."""
    pieces = _windows(wave, len(active))
    active = active[: len(pieces)]
    if not active.any():
        return Traits(0.0, 0.0, 0.0, 0.0)
    pitch, strength = _pitches(pieces)
    voiced = (strength > _VOICED) & active
    pairs = voiced[1:] & voiced[:-1]
    cents = np.abs(1200 * np.diff(np.log2(pitch)))[pairs]
    levels = frame_levels(wave, RATE)[: len(active)][active]
    return Traits(
        seconds=float(active.sum() * FRAME_SECONDS),
        voiced=float(voiced.sum() / active.sum()),
        steady=float((cents < _STEADY_CENTS).mean()) if len(cents) else 0.0,
        range_db=float(np.subtract(*np.percentile(levels, (90, 10)))),
    )


def _windows(wave: np.ndarray, frames: int) -> np.ndarray:
    """The windows [n, _WINDOW] that begin at a wave's first frames, without their offsets."""
    count = min(frames, max(0, (len(wave) - _WINDOW) // _HOP + 1))
    pieces = wave[np.arange(count)[:, None] * _HOP + np.arange(_WINDOW)]
    return pieces - pieces.mean(axis=1, keepdims=True)


def median_pitch(wave: np.ndarray) -> float | None:
    """The median pitch in Hz of the voiced frames of a wave [n] at RATE; None without any.

    Of a frame it is the highest pitch that fits nearly as well as the best: every second or third
    period fits too.
    """
    if len(wave) < _WINDOW:
        return None
    pieces = _windows(wave, len(wave) // _HOP)
    levels = np.square(pieces).mean(axis=1)
    loud = pieces[levels > 1e-3 * levels.max()]
    pitches = np.concatenate([_voiced_pitches(windows) for windows in split(loud)])
    return float(np.median(pitches)) if len(pitches) else None


def _voiced_pitches(pieces: np.ndarray) -> np.ndarray:
    """The highest pitches in Hz of those of the windows [frames, _WINDOW] that are voiced."""
    low, lags = _correlations(pieces)
    here = lags[:, 1:-1]
    best = here.max(axis=1, initial=0.0)
    is_peak = (here >= lags[:, :-2]) & (here >= lags[:, 2:]) & (here >= 0.9 * best[:, None])
    voiced = is_peak.any(axis=1) & (best > _VOICED)
    return RATE / (low + 1 + is_peak[voiced].argmax(axis=1))


def _pitches(pieces: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The pitch in Hz and its autocorrelation of windows [frames, _WINDOW]."""
    found = [_pitches_of(windows) for windows in split(pieces)]
    pitch, strength = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return pitch, strength


def _pitches_of(pieces: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    low, lags = _correlations(pieces)
    best = lags.argmax(axis=1)
    rows, inner = np.arange(len(lags)), np.clip(best, 1, lags.shape[1] - 2)
    before, here, after = (lags[rows, inner + offset] for offset in (-1, 0, 1))
    curve = before - 2 * here + after
    shift = 0.5 * (before - after) / np.where(np.abs(curve) > 1e-9, curve, np.inf)
    return RATE / (low + inner + np.clip(shift, -1, 1)), lags[rows, best]


def _correlations(pieces: np.ndarray) -> tuple[int, np.ndarray]:
    """The autocorrelation [frames, lags] of windows [frames, _WINDOW] at the lags of all pitches;
    first the shortest lag."""
    size = 2 * _WINDOW
    spectrum = np.fft.rfft(pieces * np.hanning(_WINDOW), size)
    correlation = np.fft.irfft(np.abs(spectrum) ** 2)[:, :_WINDOW]
    # The window's own correlation, which falls with the lag.
    window = np.fft.irfft(np.abs(np.fft.rfft(np.hanning(_WINDOW), size)) ** 2)[:_WINDOW]
    low, high = (round(RATE / pitch) for pitch in reversed(_PITCHES))
    normal = correlation / np.maximum(correlation[:, :1], 1e-12) * (window[0] / window)
    return low, normal[:, low:high]


def split(windows: np.ndarray) -> Iterator[np.ndarray]:
    """At most _AT_ONCE of the windows at a time; once where there are none."""
    for first in range(0, max(1, len(windows)), _AT_ONCE):
        yield windows[first : first + _AT_ONCE]
