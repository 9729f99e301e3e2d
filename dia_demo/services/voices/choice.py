"""The voices that a person chooses for S1 and S2: kept ones, a model's own by name, or the seed's.

Two kept voices, or one of both speakers, are the take's voice prompt. A voice by name is a mark
that the engine sets.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from dia_demo.engine.events import SpokenWord
from dia_demo.engine.family import ModelInfo
from dia_demo.errors import InputError
from dia_demo.prompt.voice_file import SUFFIX, VoiceFile
from dia_demo.services.take import Request, VoicePrompt
from dia_demo.services.voices.kept import KeptVoices

MOST_CHOICES = 2


def add_voices(
    request: Request,
    choices: Sequence[str | None],
    kept: KeptVoices,
    *,
    with_files: bool = False,
) -> Request:
    """The request with the chosen voices of S1 and S2.

    choices: for each of the first speakers the name of a kept voice or of a voice of the model;
    None or "" for the seed's. A voice of two speakers is for both. with_files: a choice may also be
    the path of a voice file, which a stranger must not name. Raises InputError for a voice that
    does not exist or does not fit.
    """
    choices = [choice or None for choice in choices]
    if not any(choices):
        return request
    if len(choices) > MOST_CHOICES:
        raise InputError(f"There are two speakers, so at most 2 voices, not {len(choices)}.")
    if request.voice is not None:
        raise InputError("Give a voice prompt or a kept voice, not both.")
    info = request.model
    found = [None if name is None else _find(name, info, kept, with_files) for name in choices]
    files = [voice if isinstance(voice, VoiceFile) else None for voice in found]
    names = [voice if isinstance(voice, str) else None for voice in found] + [None]
    if any(names) and any(voice is not None and len(voice.speakers) > 1 for voice in files):
        raise InputError("A kept voice of two speakers is for both of them: choose no other voice.")
    return replace(request, voice=_prompt_of(files), voices=(names[0], names[1]))


def _find(name: str, info: ModelInfo, kept: KeptVoices, with_files: bool) -> VoiceFile | str:
    """A kept voice or a voice file; or the name of one of the model's own voices."""
    if with_files and name.endswith(SUFFIX):
        return VoiceFile.read(Path(name))
    if (voice := kept.find(name)) is not None:
        return voice
    own = () if info.config.voices is None else info.config.voices.voices
    for one in own:
        if one.name.casefold() == name.casefold():
            return one.name
    known = ", ".join([voice.name for voice in kept.list()] + [one.name for one in own])
    raise InputError(f"There is no voice {name!r}. There are: {known or 'none yet'}.")


def _prompt_of(files: Sequence[VoiceFile | None]) -> VoicePrompt | None:
    """One voice prompt of the kept voices of S1 and S2, in this order."""
    chosen = [voice for voice in files if voice is not None]
    if not chosen:
        return None
    identities = [voice.identity if voice is not None else "" for voice in files] + [""]
    if len(chosen[0].speakers) > 1 and all(voice.name == chosen[0].name for voice in chosen):
        chosen = chosen[:1]
    else:
        chosen = [
            voice.extract_speaker(speaker)
            for speaker, voice in enumerate(files, start=1)
            if voice is not None
        ]
    if len({(voice.codec, voice.codes.shape[1]) for voice in chosen}) > 1:
        first, second = chosen
        raise InputError(
            f"{first.name} and {second.name} were kept from models with different codecs, so one "
            "take cannot have both."
        )
    return VoicePrompt(
        codes=np.concatenate([voice.codes for voice in chosen]).astype(np.int64),
        transcript=" ".join(voice.transcript for voice in chosen),
        codec=chosen[0].codec,
        kept=(identities[0], identities[1]),
        words=_words_of(chosen),
        are_words_estimated=any(voice.are_words_estimated for voice in chosen),
    )


def _words_of(voices: Sequence[VoiceFile]) -> tuple[SpokenWord, ...]:
    """The words of voices that follow one another, unless those of one are not known."""
    if not all(voice.words for voice in voices):
        return ()
    words, start = [], 0.0
    for voice in voices:
        words += [SpokenWord(word, start + at, speaker) for word, at, speaker in voice.words]
        start += voice.seconds
    return tuple(words)
