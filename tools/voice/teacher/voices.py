"""The teacher's voices: a source, the middle of its pitch, formants shifted up or down."""

from __future__ import annotations

from dataclasses import dataclass

from tools.voice.teacher.phones import HOP, SAMPLE_RATE, UNVOICED
from tools.voice.teacher.sources import SOURCES, Source


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
    "rms mid": Voice(SOURCES["rms"], 150.0, 1.0, warp=1.08),
    "rms high": Voice(SOURCES["rms"], 205.0, 0.85, warp=1.15),
    "rms child": Voice(SOURCES["rms"], 250.0, 0.8, warp=1.2),
    "awb": Voice(SOURCES["awb"], 125.0, 0.9),
    "awb deep": Voice(SOURCES["awb"], 108.0, 0.9, warp=1.04),
    "awb mid": Voice(SOURCES["awb"], 160.0, 0.9, warp=1.07),
    "awb high": Voice(SOURCES["awb"], 190.0, 0.9, warp=1.13),
}
# between them: (Hz, formants), so that a model learns to follow a prompt instead of nine names
BETWEEN = {
    "rms": (
        (132, 1.02),
        (128, 1.08),
        (165, 1.05),
        (138, 1.12),
        (180, 1.12),
        (215, 1.12),
        (160, 1.17),
        (225, 1.17),
    ),
    "awb": ((116, 1.02), (142, 1.05), (134, 1.09), (150, 1.1), (175, 1.1), (205, 1.15)),
}
GAINS = {"rms": 0.95, "awb": 0.9}
VOICES |= {
    f"{source} {hertz}": Voice(SOURCES[source], hertz, GAINS[source], warp)
    for source, voices in BETWEEN.items()
    for hertz, warp in voices
}
# never trained on: for prompts alone
UNSEEN = {
    "rms unseen": Voice(SOURCES["rms"], 190.0, 0.9, warp=1.09),
    "awb unseen": Voice(SOURCES["awb"], 167.0, 0.9, warp=1.085),
}
# the voices that a model of many is measured on: distinct, and each well understood
EIGHT = ("rms", "rms mid", "rms high", "rms child", "awb deep", "awb", "awb mid", "awb high")
# the voices of scripts' two speakers, for a model that knows no others
SPEAKERS = {"S1": VOICES["rms high"], "S2": VOICES["rms"]}
