"""Who speaks in a waveform (16 kHz, mono), by pitch and spectral envelope; no recogniser, no model.

A profile is a voice's typical pitch and spectrum. Distances are measured in the spread that single
takes of one voice have, so that pitch and spectrum count alike.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace

import numpy as np

from dia_demo.prompt.voice_traits import spectrum
from training.voice.teacher.melody import pitch_track
from training.voice.teacher.phones import SAMPLE_RATE

BANDS, LOWEST, HIGHEST = 40, 300.0, 7500.0  # mel bands of the envelope
FLOOR = 0.3, 0.15  # least spread: of pitch in semitones, of a band's log power


@dataclass(frozen=True)
class Traits:
    """The median pitch of a take in semitones from 100 Hz, its envelope [BANDS], and the spectrum
    that the app measures (none of a mean of takes)."""

    pitch: float
    envelope: np.ndarray
    spectrum: tuple[float, ...] = ()


@dataclass(frozen=True)
class Profiles:
    """The mean traits of each voice, and the spread of single takes around them.

    `limit`: 99% of the pairs of takes of one voice are nearer to each other.
    """

    voices: dict[str, Traits]
    pitch_spread: float
    envelope_spread: float
    limit: float = 0.0


def envelope(wave: np.ndarray) -> np.ndarray:
    """Mean log power in BANDS mel bands over the loud frames, without its mean."""
    from librosa.filters import mel

    size = 1024
    wave = np.pad(wave, (0, max(0, size - len(wave))))
    frames = np.lib.stride_tricks.sliding_window_view(wave, size)[::256] * np.hanning(size)
    power = np.abs(np.fft.rfft(frames)) ** 2
    loud = power[power.sum(1) >= 0.01 * power.sum(1).max()]
    filters = mel(sr=SAMPLE_RATE, n_fft=size, n_mels=BANDS, fmin=LOWEST, fmax=HIGHEST, norm=None)
    bands = np.log(loud @ filters.T + 1e-6).mean(0)
    return bands - bands.mean()


def traits(wave: np.ndarray) -> Traits | None:
    """None where nothing is voiced."""
    f0 = pitch_track(wave)[1] if len(wave) else np.zeros(0)
    if not (f0 > 0).any():
        return None
    pitch = float(12 * np.log2(np.median(f0[f0 > 0]) / 100))
    return Traits(pitch, envelope(wave), tuple(spectrum(wave)))


def profiles(takes: dict[str, list[Traits]]) -> Profiles:
    """From at least two takes of each voice."""
    voices = {
        name: Traits(
            float(np.mean([t.pitch for t in each])), np.mean([t.envelope for t in each], 0)
        )
        for name, each in takes.items()
    }
    pairs = [(t, voices[name]) for name, each in takes.items() for t in each]
    pitch = np.sqrt(np.mean([(t.pitch - v.pitch) ** 2 for t, v in pairs]))
    bands = np.sqrt(np.mean([np.square(t.envelope - v.envelope).mean() for t, v in pairs]))
    known = Profiles(voices, max(float(pitch), FLOOR[0]), max(float(bands), FLOOR[1]))
    same = [
        distance(a, b, known) for each in takes.values() for a, b in itertools.combinations(each, 2)
    ]
    return replace(known, limit=float(np.quantile(same, 0.99)))


def distance(a: Traits, b: Traits, known: Profiles) -> float:
    """Squared distance; about 2 between a take and its own voice's profile."""
    pitch = (a.pitch - b.pitch) / known.pitch_spread
    return float(pitch**2 + np.square((a.envelope - b.envelope) / known.envelope_spread).mean())


def differ(a: Traits | None, b: Traits | None, known: Profiles) -> bool:
    """Whether two takes are farther apart than takes of one voice; silence differs from all."""
    return a is None or b is None or distance(a, b, known) > known.limit


def identify(take: Traits | None, known: Profiles) -> str | None:
    """The nearest voice; None where nothing is voiced."""
    if take is None:
        return None
    return min(known.voices, key=lambda name: distance(take, known.voices[name], known))
