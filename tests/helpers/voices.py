"""A sound with what tells speech from other sounds: syllables, a gliding pitch, hisses, pauses."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from dia_demo.services.voices.kept import KeptVoices

RATE = 16000
# Where nobody has kept a voice.
NO_VOICES = KeptVoices(Path("no such folder"))
SYLLABLE_SECONDS = 0.2


def speech_like(seconds: float, rate: int = RATE, level: float = 0.3) -> np.ndarray:
    """float32 [n] at `rate`: from its start to its end, without silence around it."""
    time = np.arange(round(seconds * rate)) / rate
    pitch = 120 * 2 ** (0.3 * np.sin(2 * np.pi * 0.7 * time) + 0.1 * np.sin(2 * np.pi * 2.3 * time))
    phase = 2 * np.pi * np.cumsum(pitch) / rate
    voice = sum(np.sin(k * phase) / k for k in range(1, 12))
    hiss = np.random.default_rng(0).standard_normal(len(time))
    # Of each syllable the first quarter is unvoiced, then the voice rises and falls, and the last
    # twentieth is the closure before the next one.
    place = (time % SYLLABLE_SECONDS) / SYLLABLE_SECONDS
    wave = np.where(place < 0.25, 0.15 * hiss, voice * np.sin(np.pi * (place - 0.25) / 0.75))
    wave = np.where(place < 0.95, wave, 0.01 * hiss)
    return (level * wave / np.abs(wave).max()).astype(np.float32)


def write_voice(
    path: Path, seconds: float = 2.0, rate: int = RATE, channels: int = 1, level: float = 0.3
) -> Path:
    """`speech_like` as a file of floats, the same in every channel."""
    import soundfile

    wave = speech_like(seconds, rate, level)
    soundfile.write(path, np.stack([wave] * channels, axis=1), rate, subtype="FLOAT")
    return path
