"""The voice prompt of a comparison: a file beside its plan, so that any machine can use it."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np

from dia_demo.audio import PROMPT_SUFFIXES, STORED_SUFFIX
from dia_demo.errors import InputError
from dia_demo.prompt.decode import write_decoded
from dia_demo.services.listening.plan.plan import ComparisonPlan
from dia_demo.services.take import VoicePrompt
from dia_demo.untrusted import read_codes


def keep_voice(folder: Path, plan: ComparisonPlan, voice: VoicePrompt | None) -> ComparisonPlan:
    """Copy a voice prompt into the folder of its plan; returns the plan that names it."""
    if voice is None:
        return plan
    if voice.codes is not None:
        name = "voice.npy"
        np.save(folder / name, voice.codes)
    else:
        assert voice.audio is not None, "a prompt is audio or codes"
        suffix = voice.audio.suffix.lower()
        if suffix in PROMPT_SUFFIXES:
            name = f"voice{suffix}"
            shutil.copyfile(voice.audio, folder / name)
        else:
            # Any other file that can be read.
            name = f"voice{STORED_SUFFIX}"
            write_decoded(folder / name, voice.audio)
    return replace(plan, voice_file=name, voice_transcript=voice.transcript)


def voice_of(folder: Path, plan: ComparisonPlan) -> VoicePrompt | None:
    """The voice prompt of a plan in its folder. Raises InputError if the file is missing."""
    if plan.voice_file is None:
        return None
    path = folder / plan.voice_file
    if not path.is_file():
        raise InputError(
            f"The voice prompt {path.name} is missing: put it back, or start a new comparison."
        )
    if path.suffix != ".npy":
        return VoicePrompt(audio=path, transcript=plan.voice_transcript)
    return VoicePrompt(codes=read_codes(path), transcript=plan.voice_transcript)
