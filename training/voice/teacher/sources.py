"""The speech that the teacher resynthesises: flite's, with the times of its phones."""

from __future__ import annotations

import os
import subprocess
import tempfile
from dataclasses import dataclass

import numpy as np

from training.voice.teacher.phones import SAMPLE_RATE

TimedPhone = tuple[str, float, float]  # phone, start and end in seconds


@dataclass(frozen=True)
class Source:
    """One of flite's voices; its pitch: geometric mean, lowest and highest in Hz."""

    flite: str
    f0: float
    floor: float
    ceiling: float


SOURCES = {
    "rms": Source("rms", 98.0, 60.0, 220.0),
    "awb": Source("awb", 125.0, 70.0, 260.0),
}


def synthesise(text: str, source: Source) -> tuple[np.ndarray, list[TimedPhone]]:
    """Waveform at 16 kHz and the phones in it."""
    import soundfile

    handle, path = tempfile.mkstemp(suffix=".wav", dir="/dev/shm")
    os.close(handle)
    try:
        command = ["flite", "-psdur", "-voice", source.flite, "-t", text, "-o", path]
        listing = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        wave, rate = soundfile.read(path)
    finally:
        os.unlink(path)
    if rate != SAMPLE_RATE:
        raise RuntimeError(f"flite's voice {source.flite} has {rate} Hz, {SAMPLE_RATE} needed")
    return wave, timed_phones(listing)


def timed_phones(listing: str) -> list[TimedPhone]:
    """The output of `flite -psdur`, which gives the end of every phone."""
    phones, start = [], 0.0
    for token in listing.split():
        phone, end = token.rsplit(":", 1)
        if float(end) > start:
            phones.append((phone, start, float(end)))
            start = float(end)
    return phones
