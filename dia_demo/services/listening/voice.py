"""The voice prompt and the kept voices of a comparison: files beside its plan, so that any machine
can use them."""

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
from dia_demo.services.voices.kept import KeptVoices
from dia_demo.untrusted import read_codes

# The folder of kept voices beside a plan.
VOICES = "voices"


def keep_voices(
    folder: Path, plan: ComparisonPlan, prompt: VoicePrompt | None, kept: KeptVoices
) -> ComparisonPlan:
    """Copy a voice prompt, and those of the kept voices that the plan names, into its folder; they
    may change or be removed where they are. Returns the plan that names the prompt.

    Raises InputError for a damaged voice, RunError if it cannot be written, OSError for a prompt.
    """
    copies = KeptVoices(folder / VOICES)
    for name in voice_names(plan):
        voice = kept.find(name)
        if voice is not None and copies.find(name) is None:
            copies.add(voice)
    return plan if prompt is None else _keep_prompt(folder, plan, prompt)


def _keep_prompt(folder: Path, plan: ComparisonPlan, prompt: VoicePrompt) -> ComparisonPlan:
    if prompt.codes is not None:
        name = "voice.npy"
        np.save(folder / name, prompt.codes)
    else:
        assert prompt.audio is not None, "a prompt is audio or codes"
        suffix = prompt.audio.suffix.lower()
        if suffix in PROMPT_SUFFIXES:
            name = f"voice{suffix}"
            shutil.copyfile(prompt.audio, folder / name)
        else:
            # Any other file that can be read.
            name = f"voice{STORED_SUFFIX}"
            write_decoded(folder / name, prompt.audio)
    return replace(plan, voice_file=name, voice_transcript=prompt.transcript)


def voice_names(plan: ComparisonPlan) -> set[str]:
    """The voices that the settings of a plan name: kept ones and the model's own."""
    return {name for setting in plan.settings for name in setting.voice_names if name is not None}


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
