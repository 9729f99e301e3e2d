"""The codes of a voice prompt: its own where they are known, else those of its sound."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dia_demo.codec.codec import Codec
from dia_demo.disclosure.notice import seconds_in
from dia_demo.engine.engine import Engine
from dia_demo.engine.events import SpokenWord
from dia_demo.errors import InputError
from dia_demo.model.cpu_model import torch_threads
from dia_demo.prompt.voice_file import VoiceFile
from dia_demo.prompt.word_times import find_words
from dia_demo.services.take import Request
from dia_demo.services.voices.keep import keep_take, take_in
from dia_demo.services.wording import ESTIMATED, NO_TRANSCRIPT, OTHER_CODEC, SPREAD
from dia_demo.text.dialogue.pauses import remove_pauses

# Sounds whose lengths differ by less have the same length, whatever the format of the file.
_SAME_SECONDS = 0.05
# What reading the values of a file may raise that this program did not write like this.
_DAMAGED = ArithmeticError, AttributeError, KeyError, TypeError, ValueError


@dataclass(frozen=True)
class PromptCodes:
    """A voice prompt as a row gets it: codes int [frames, channels], words with their times, and
    notes on how it was read."""

    codes: np.ndarray
    words: tuple[SpokenWord, ...]
    notes: tuple[str, ...]


def prompt_codes(request: Request, engine: Engine, longest: float) -> PromptCodes:
    """The codes of a request's voice prompt. longest: see `VoicePrompt.read`. Raises InputError if
    it cannot be used."""
    voice = request.voice
    assert voice is not None
    notes: tuple[str, ...] = () if voice.transcript else (NO_TRANSCRIPT,)
    if voice.has_own_words:
        notes = (f"The voice prompt's file contains its words: “{voice.transcript}”.",)
    if voice.codes is not None:
        if voice.codec and voice.codec != engine.codec.identity:
            raise InputError(OTHER_CODEC)
        notes += _times_note(request, voice.words, voice.are_words_estimated)
        return PromptCodes(voice.codes, voice.words, notes)
    prompt = voice.read(request.model, request.params.max_tokens, longest)
    assert voice.audio is not None
    own = voice_of_take(voice.audio, voice.transcript, engine.codec)
    if own is not None:
        words = tuple(SpokenWord(*word) for word in own.words)
        return PromptCodes(own.codes.astype(np.int64), words, notes)
    with torch_threads(engine.placement.threads):
        codes = engine.codec.encode(prompt.samples)
    words, estimated = tuple[SpokenWord, ...](), True
    if request.model.family.has_word_times and voice.transcript:
        said = remove_pauses(request.reading(voice.transcript).text)
        found, estimated = find_words(said, prompt.samples, request.model.sample_rate)
        words = tuple(SpokenWord(*word) for word in found)
    notes = prompt.notes + notes + _times_note(request, words, estimated)
    return PromptCodes(codes, words, notes)


def voice_of_take(path: Path, transcript: str, codec: Codec) -> VoiceFile | None:
    """The voice of a file that is a whole take with these words: its exact codes. None for any
    other file, for a take of another codec, and where its sound was cut or lengthened afterwards.
    """
    import soundfile

    contents = take_in(path)
    if contents is None:
        return None
    try:
        voice = keep_take(contents, "voice prompt")
        heard = soundfile.info(str(path)).duration - seconds_in(contents)
        is_whole = abs(heard - contents["figures"]["audio_seconds"]) <= _SAME_SECONDS
    except (InputError, *_DAMAGED, soundfile.LibsndfileError):
        return None
    has_words = contents["script"].split() == transcript.split()
    return voice if is_whole and has_words and voice.codec == codec.identity else None


def _times_note(
    request: Request, words: Sequence[SpokenWord], are_estimated: bool
) -> tuple[str, ...]:
    """What to know of the times of the voice prompt's words, if the model needs them."""
    has_words = request.voice is not None and bool(request.voice.transcript)
    if not (request.model.family.has_word_times and has_words):
        return ()
    return ((ESTIMATED,) if are_estimated else ()) if words else (SPREAD,)
