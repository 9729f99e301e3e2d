"""Processes that write what must not be lost, until they are killed: see write_faults.py."""

from __future__ import annotations

import sys
from itertools import count
from pathlib import Path

import numpy as np

from dia_demo.prompt.voice_file import VoiceFile
from dia_demo.services.listening.comparison import Comparison
from dia_demo.services.voices.kept import KeptVoices

HEARD = {"A": 99.0, "B": 99.0, "X": 99.0}


def voice_of(number: int) -> VoiceFile:
    """Another voice for every number: big enough to be killed in the middle of its file."""
    codes = np.random.default_rng(number).integers(0, 1024, (20_000, 9)).astype(np.int16)
    return VoiceFile(f"voice {number}", codes, "[S1] Hello.", "codec", 44100, 86.0, "nano")


def write_voices(folder: Path) -> None:
    """Keep one voice after another; says which ones are kept."""
    voices = KeptVoices(folder)
    done = {voice.name for voice in voices.own_voices()}
    for number in count():
        voice = voice_of(number)
        if voice.name not in done:
            voices.add(voice)
            print(voice.name, flush=True)


def write_votes(folder: Path) -> None:
    """Vote on one pair after another; says which votes are confirmed."""
    comparison = Comparison.open(folder)
    for trial in comparison.plan.trials:
        if trial.id not in comparison.votes:
            comparison.vote(trial.id, "A", HEARD, note="heard twice " * 30)
            print(trial.id, flush=True)


if __name__ == "__main__":
    kind, where = sys.argv[1:]
    {"voices": write_voices, "votes": write_votes}[kind](Path(where))
