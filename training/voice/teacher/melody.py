"""The pitch of a source's speech, phone by phone, by WORLD (dio and stonemask)."""

from __future__ import annotations

import sys
import types

import numpy as np

from training.voice.teacher.phones import SAMPLE_RATE
from training.voice.teacher.sources import Source, TimedPhone

PERIOD = 5.0  # ms between estimates


def pyworld():
    """pyworld asks pkg_resources for its own version; recent setuptools no longer has it."""
    if "pkg_resources" not in sys.modules:
        stub = types.ModuleType("pkg_resources")
        stub.get_distribution = lambda name: types.SimpleNamespace(version="0")
        sys.modules["pkg_resources"] = stub
    import pyworld

    return pyworld


def pitch_track(wave: np.ndarray, floor: float = 71.0, ceiling: float = 800.0):
    """(seconds, Hz) of the estimates; 0 Hz where nothing is voiced."""
    world, wave = pyworld(), np.ascontiguousarray(wave, np.float64)
    f0, seconds = world.dio(wave, SAMPLE_RATE, frame_period=PERIOD, f0_floor=floor, f0_ceil=ceiling)
    return seconds, world.stonemask(wave, f0, seconds, SAMPLE_RATE)


def melody(wave: np.ndarray, source: Source) -> tuple[np.ndarray, np.ndarray]:
    """(seconds, Hz), interpolated where nothing is voiced; level if there is no voiced speech."""
    seconds, f0 = pitch_track(wave, source.floor, source.ceiling)
    voiced = f0 > 0
    if voiced.sum() < 2:
        return seconds, np.full(len(seconds), source.f0)
    return seconds, np.exp(np.interp(seconds, seconds[voiced], np.log(f0[voiced])))


def phone_pitch(timed: list[TimedPhone], track, source: Source) -> list[float]:
    """The mean pitch of every phone, in semitones from the source's middle."""
    seconds, hertz = track
    semitones = 12 * np.log2(hertz / source.f0)
    means = []
    for _, start, end in timed:
        first, last = np.searchsorted(seconds, (start, end))
        first = min(first, len(semitones) - 1)
        means.append(float(semitones[first : max(last, first + 1)].mean()))
    return means
