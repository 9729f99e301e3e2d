"""The codec's frame grid and flite's phones, by the way they are voiced."""

from __future__ import annotations

SAMPLE_RATE = 16000
HOP = 384  # samples per codec frame: 24 ms, 41.67 frames/s

PAUSE = "pau"
PHONES = (
    "pau aa ae ah ao aw ax ay b ch d dh eh er ey f g hh ih iy jh k l m n ng ow oy p r s sh t th "
    "uh uw v w y z zh"
).split()
UNVOICED = frozenset("p t k f th s sh ch hh pau".split())
VOICED_FRICATIVES = frozenset("z zh v dh jh".split())
VOICED_STOPS = frozenset("b d g".split())
VOWELS = frozenset("aa ae ah ao aw ax ay eh er ey ih iy ow oy uh uw".split())


def phone_kind(phone: str) -> str:
    """Which of the vocoder's mixtures of pulses and noise a phone has."""
    if phone in UNVOICED:
        return "unvoiced"
    if phone in VOICED_FRICATIVES:
        return "fricative"
    return "stop" if phone in VOICED_STOPS else "voiced"
