"""What a waveform tells without a recogniser: pitch, who speaks when, and with which spectrum.

Everything here is numpy on 16 kHz mono; nothing knows scripts or models.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tools.voice import teacher

PITCH_TOLERANCE = 0.1
FRAME = 0.005  # seconds of WORLD's pitch track
SHORTEST_RUN = 0.15  # seconds: less of one pitch is no turn
BANDS, LOWEST, HIGHEST = 40, 700.0, 7500.0  # the spectrum above most of the pitch's own harmonics


def pitch_track(wave: np.ndarray) -> np.ndarray:
    """Hz every FRAME seconds, 0 where nothing is voiced."""
    world = teacher.pyworld()
    f0, t = world.dio(wave.astype(np.float64), teacher.SAMPLE_RATE, frame_period=FRAME * 1000)
    return world.stonemask(wave.astype(np.float64), f0, t, teacher.SAMPLE_RATE)


def median_pitch(wave: np.ndarray) -> float:
    """Hz; 0 where nothing is voiced."""
    f0 = pitch_track(wave)
    return float(np.median(f0[f0 > 0])) if (f0 > 0).any() else 0.0


def pitch_is(wave: np.ndarray, hertz: float) -> bool:
    return abs(median_pitch(wave) / hertz - 1) < PITCH_TOLERANCE


@dataclass(frozen=True)
class Run:
    """A stretch of one speaker: tag, first and last sample of what is voiced with its pitch."""

    tag: str
    start: int
    end: int


def runs(wave: np.ndarray) -> list[Run]:
    """Who speaks when, by pitch alone: every voiced moment goes to the nearer voice."""
    f0 = pitch_track(wave)
    tags = list(teacher.VOICES)
    away = np.stack([np.abs(np.log(np.maximum(f0, 1) / v.f0)) for v in teacher.VOICES.values()])
    whose = np.where((f0 > 0) & (away.min(0) < 0.2), away.argmin(0), -1)
    # a median over the voiced moments alone: stray octaves are no speaker
    voiced = np.flatnonzero(whose >= 0)
    least = int(SHORTEST_RUN / FRAME)
    found: list[list[int]] = []
    for k in voiced:
        if found and whose[found[-1][0]] == whose[k]:
            found[-1].append(k)
        else:
            found.append([k])
    merged: list[list[int]] = []
    for group in (g for g in found if len(g) >= least):
        if merged and whose[merged[-1][0]] == whose[group[0]]:
            merged[-1] += group
        else:
            merged.append(group)
    step = FRAME * teacher.SAMPLE_RATE
    return [Run(tags[whose[g[0]]], int(g[0] * step), int((g[-1] + 1) * step)) for g in merged]


def turns(wave: np.ndarray) -> list[tuple[str, np.ndarray]]:
    """The take cut between its runs, halfway: (speaker by pitch, waveform) of every turn."""
    found = runs(wave)
    edges = [
        0,
        *((a.end + b.start) // 2 for a, b in zip(found, found[1:], strict=False)),
        len(wave),
    ]
    return [(run.tag, wave[a:b]) for run, a, b in zip(found, edges[:-1], edges[1:], strict=True)]


def spectrum(wave: np.ndarray) -> np.ndarray:
    """Mean log power in BANDS mel bands, without its mean: the shape of a voice."""
    from librosa.filters import mel

    size = 1024
    count = max(1, (len(wave) - size) // 256 + 1)
    wave = np.pad(wave, (0, max(0, size - len(wave))))
    frames = np.stack([wave[k * 256 : k * 256 + size] for k in range(count)]) * np.hanning(size)
    power = np.abs(np.fft.rfft(frames)) ** 2
    loud = power[power.sum(1) > 0.01 * power.sum(1).max()]
    filters = mel(
        sr=teacher.SAMPLE_RATE, n_fft=size, n_mels=BANDS, fmin=LOWEST, fmax=HIGHEST, norm=None
    )
    shape = np.log(loud @ filters.T + 1e-6).mean(0)
    return shape - shape.mean()


def typical_spectra(spoken: dict[str, list[np.ndarray]]) -> dict[str, np.ndarray]:
    """Each voice's mean spectrum over its waveforms."""
    return {tag: np.mean([spectrum(w) for w in waves], 0) for tag, waves in spoken.items()}


def nearest_voice(wave: np.ndarray, typical: dict[str, np.ndarray]) -> str:
    """Whose spectrum this is."""
    shape = spectrum(wave)
    return min(typical, key=lambda tag: float(np.square(shape - typical[tag]).sum()))
