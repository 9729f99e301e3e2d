"""The teacher's voices: a source, the middle of its pitch, formants shifted up or down."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from math import exp, log, log2
from random import Random

from training.voice.teacher.phones import HOP, SAMPLE_RATE, UNVOICED
from training.voice.teacher.sources import SOURCES, Source


@dataclass(frozen=True)
class Voice:
    source: Source
    f0: float  # Hz, the middle of its pitch
    gain: float
    warp: float = 1.0  # > 1 shifts formants up (a shorter vocal tract)

    def pulses(self, phone: str, frames: int, semitones: int) -> int:
        """Pitch pulses in a phone; an unvoiced one has the same whole number in every frame."""
        if phone in UNVOICED:
            return frames * round(self.f0 * HOP / SAMPLE_RATE)
        return max(1, round(frames * HOP * self.f0 * 2 ** (semitones / 12) / SAMPLE_RATE))


VOICES = {
    "rms": Voice(SOURCES["rms"], 120.0, 1.1),
    "rms deep": Voice(SOURCES["rms"], 108.0, 1.05, warp=1.04),
    "rms high": Voice(SOURCES["rms"], 205.0, 0.85, warp=1.15),
    "rms child": Voice(SOURCES["rms"], 250.0, 0.8, warp=1.2),
    "awb": Voice(SOURCES["awb"], 125.0, 0.9),
    "awb deep": Voice(SOURCES["awb"], 108.0, 0.9, warp=1.04),
    "awb mid": Voice(SOURCES["awb"], 160.0, 0.9, warp=1.07),
    "awb high": Voice(SOURCES["awb"], 190.0, 0.9, warp=1.13),
}
# Between them (Hz, formants), so that a model learns to follow a prompt instead of eight names.
# All are told apart after the codec too, which draws some pairs of voices together.
BETWEEN = {
    "rms": (
        (122, 1.16),
        (135, 1.0),
        (138, 1.12),
        (145, 1.0),
        (147, 1.2),
        (160, 1.17),
        (165, 1.05),
        (180, 1.12),
        (191, 1.2),
        (198, 1.0),
        (220, 1.02),
    ),
    "awb": ((116, 1.15), (134, 1.09), (150, 1.13), (178, 1.0), (205, 1.15)),
}
GAINS = {"rms": 0.95, "awb": 0.9}
VOICES |= {
    f"{source} {hertz}": Voice(SOURCES[source], hertz, GAINS[source], warp)
    for source, voices in BETWEEN.items()
    for hertz, warp in voices
}
# never trained on, for prompts alone; the teacher's takes are identified among EIGHT
UNSEEN = {
    "rms unseen": Voice(SOURCES["rms"], 175.0, 0.95, warp=1.02),
    "awb unseen": Voice(SOURCES["awb"], 144.0, 0.9, warp=1.0),
}
# what voices without a name are drawn from: Hz, formants times what, how often the source
FREE = {"rms": ((104.0, 255.0), (1.0, 1.2), 0.6), "awb": ((106.0, 210.0), (1.0, 1.15), 0.4)}
FREE_NAME = re.compile(r"(\w+) ([\d.]+) Hz x ([\d.]+)")
NEAR = 1.0, 0.03  # semitones and formants: nothing free is nearer to an unseen voice in both
# steps in which a voice's pitch (semitones) and formants are told to a model that learns them
PITCH_STEP, WARP_STEP = 0.5, 0.02
PITCHES, WARPS = 32, 11  # so many of them, from the least of FREE
# how far a voice nearby is: at most so many semitones, so much in formants
NEARBY = 4.0, 0.06
# the voices that a model of many is measured on: distinct, and each well understood
EIGHT = (
    "rms deep",
    "rms 138",
    "rms 165",
    "rms high",
    "rms child",
    "awb deep",
    "awb mid",
    "awb high",
)
# the voices of scripts' two speakers, for a model that knows no others
SPEAKERS = {"S1": VOICES["rms high"], "S2": VOICES["rms"]}


def free_name(source: str, f0: float, warp: float) -> str:
    """What FREE_NAME reads."""
    return f"{source} {f0:.1f} Hz x {warp:.3f}"


def free_voice(r: Random) -> str:
    """The name of a voice of any pitch and formants, but none near those that stay unseen."""
    while True:
        source = r.choices(list(FREE), [share for *_, share in FREE.values()])[0]
        (low, high), (small, large), _ = FREE[source]
        f0, warp = exp(r.uniform(log(low), log(high))), r.uniform(small, large)
        if not any(
            voice.source.flite == source
            and abs(12 * log2(f0 / voice.f0)) < NEAR[0]
            and abs(warp - voice.warp) < NEAR[1]
            for voice in UNSEEN.values()
        ):
            return free_name(source, f0, warp)


def nearby_voice(name: str, r: Random) -> str:
    """The name of a voice of the same source, somewhat off in pitch and formants.

    It may be near one that stays unseen: nothing is taught to speak like it.
    """
    voice = voice_named(name)
    (low, high), (small, large), _ = FREE[voice.source.flite]
    f0 = voice.f0 * 2 ** (r.uniform(-NEARBY[0], NEARBY[0]) / 12)
    warp = voice.warp + r.uniform(-NEARBY[1], NEARBY[1])
    return free_name(voice.source.flite, min(max(f0, low), high), min(max(warp, small), large))


def traits_of(name: str) -> tuple[int, int]:
    """Its pitch in steps, below PITCHES; its source and formants, below len(FREE) * WARPS."""
    voice = voice_named(name)
    lowest = min(low for (low, _), *_ in FREE.values())
    pitch = round(12 * log2(voice.f0 / lowest) / PITCH_STEP)
    warp = round((voice.warp - 1) / WARP_STEP)
    return (
        min(max(pitch, 0), PITCHES - 1),
        list(FREE).index(voice.source.flite) * WARPS + min(max(warp, 0), WARPS - 1),
    )


def nearest_voice(name: str, others: Iterable[str]) -> str:
    """That of `others` in VOICES which is nearest: of the same source, by pitch and formants."""
    voice = VOICES[name]

    def distance(other: Voice) -> float:
        semitones = 12 * abs(log2(other.f0 / voice.f0))
        return semitones / NEAR[0] + abs(other.warp - voice.warp) / NEAR[1]

    alike = [n for n in others if n in VOICES and VOICES[n].source == voice.source]
    return min(alike, key=lambda other: distance(VOICES[other]))


def voice_named(name: str) -> Voice:
    """One of VOICES or UNSEEN, or what free_voice has drawn."""
    drawn = FREE_NAME.fullmatch(name)
    if drawn:
        source, f0, warp = drawn.groups()
        return Voice(SOURCES[source], float(f0), GAINS[source], float(warp))
    return (VOICES | UNSEEN)[name]
