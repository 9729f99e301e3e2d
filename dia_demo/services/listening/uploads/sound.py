"""Uploaded clips as sound: decoded, mixed to one channel and brought to one sample rate."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dia_demo.audio import integrated_loudness
from dia_demo.config import Range
from dia_demo.errors import InputError
from dia_demo.services.listening.clips import at_rate

RATES = Range(8000, 192_000)
# Of the clips of a comparison. What is above half of it nobody hears.
HIGHEST_RATE = 48_000
SECONDS = Range(0.5, 120.0)
MOST_CHANNELS = 2


@dataclass(frozen=True)
class SoundHeader:
    """What a file says of itself. frames: in each channel."""

    rate: int
    frames: int
    channels: int

    @property
    def seconds(self) -> float:
        return self.frames / self.rate


def read_header(path: Path, name: str) -> SoundHeader:
    """The header of a clip. name: for messages.

    Raises InputError if it is no sound, has another rate, length or number of channels than
    allowed. A compressed file may unpack to any length, so this is asked before it is decoded.
    """
    import soundfile

    try:
        info = soundfile.info(str(path))
    except (OSError, soundfile.LibsndfileError, RuntimeError) as error:
        raise InputError(f"{name} cannot be read as sound: save it again.") from error
    header = SoundHeader(info.samplerate, info.frames, info.channels)
    RATES.check(f"The sample rate of {name}", header.rate)
    if not 1 <= header.channels <= MOST_CHANNELS:
        raise InputError(f"{name} has {header.channels} channels: use one or two.")
    SECONDS.check(f"The length of {name} in seconds", round(header.seconds, 2))
    return header


def read_sound(path: Path, name: str, header: SoundHeader, rate: int) -> np.ndarray:
    """A clip as float32 [n] at `rate`, mixed to one channel.

    Raises InputError if it is damaged, or has no measurable loudness.
    """
    import soundfile

    try:
        with soundfile.SoundFile(str(path)) as file:
            channels = file.read(header.frames, dtype="float32", always_2d=True)
    except (OSError, soundfile.LibsndfileError, RuntimeError) as error:
        raise InputError(f"{name} is damaged: save it again.") from error
    if len(channels) < header.frames or not np.isfinite(channels).all():
        raise InputError(f"{name} is damaged: save it again.")
    wave = at_rate(channels.mean(axis=1), header.rate, rate)
    if integrated_loudness(wave, rate) is None:
        raise InputError(f"{name} is silent, so its level cannot be matched: replace it.")
    return wave
