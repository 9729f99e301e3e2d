"""A notice before speech, that what follows is computer-generated: a tone or a sentence.

Takes are judged, measured and kept without it. A file that begins with one says how long it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

import numpy as np

# The key of its length in a file's metadata.
SECONDS_KEY = "notice_seconds"
SENTENCE = "This is computer-generated speech."
# Between the notice and what follows.
PAUSE_SECONDS = 0.4
_TONES_HZ, _TONE_SECONDS, _FADE_SECONDS = (660.0, 880.0), 0.18, 0.02
# Of full scale, about as loud as a take.
_LEVEL = 0.15


class Notice(StrEnum):
    """What an operator requires before all speech (DIA_NOTICE)."""

    OFF = "off"
    TONE = "tone"
    SPOKEN = "spoken"


# For the page.
DESCRIPTIONS = {
    Notice.TONE: "Takes begin with two short tones, since their speech is computer-generated.",
    Notice.SPOKEN: f"Takes begin with the sentence “{SENTENCE}”",
}


def tone(sample_rate: int) -> np.ndarray:
    """Two short notes, float32 [n]."""
    time = np.arange(round(_TONE_SECONDS * sample_rate)) / sample_rate
    fade = np.minimum(1, np.minimum(time, _TONE_SECONDS - time) / _FADE_SECONDS)
    notes = [_LEVEL * fade * np.sin(2 * np.pi * hertz * time) for hertz in _TONES_HZ]
    return np.concatenate(notes).astype(np.float32)


def with_pause(sound: np.ndarray, sample_rate: int) -> np.ndarray:
    """A notice with the silence after it."""
    return np.concatenate([sound, np.zeros(round(PAUSE_SECONDS * sample_rate), np.float32)])


def about_notice(seconds: float) -> dict[str, float]:
    """What the metadata of a file says of its notice; nothing without one."""
    return {SECONDS_KEY: round(seconds, 4)} if seconds else {}


def seconds_in(metadata: Mapping[str, Any] | None) -> float:
    """How long the notice is that a file begins with, by its metadata; 0 without one."""
    seconds = (metadata or {}).get(SECONDS_KEY)
    return float(seconds) if isinstance(seconds, int | float) and 0 < seconds < 60 else 0.0
