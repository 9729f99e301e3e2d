"""Speech of a text that is still being written: as soon as there is enough of it.

Every sentence is a take of its own, with the voices and the seed of one request; a model that can
continue its text while it speaks makes one take of all (`continued`). The text is read in a thread
of its own, so that it goes on arriving meanwhile.
"""

from __future__ import annotations

import threading
from collections.abc import Generator, Iterable
from contextlib import closing
from dataclasses import dataclass, replace

from dia_demo.config import SEED_LIMIT
from dia_demo.engine.events import AudioChunk, Cancelled, Failed
from dia_demo.engine.family import ModelInfo
from dia_demo.errors import RunError
from dia_demo.services.speech.continued import speak_continued
from dia_demo.services.speech.job import one_speaker_request
from dia_demo.services.speech.reading import TextStopped, read_sentences
from dia_demo.services.synthesis import Synthesis
from dia_demo.services.take import Request
from dia_demo.text.dialogue.incoming import Sentence


@dataclass(frozen=True)
class SentenceBegun:
    """What is spoken next; in one take of all sentences, what has been handed to the model."""

    sentence: Sentence


IncomingEvent = SentenceBegun | AudioChunk | TextStopped


def can_continue(synthesis: Synthesis, info: ModelInfo) -> bool:
    """Whether the speech of a growing text is one take."""
    return synthesis.can_continue_text and info.family.can_continue_text


def speak_incoming(
    synthesis: Synthesis, request: Request, pieces: Iterable[str], cancel: threading.Event
) -> Generator[IncomingEvent, None, None]:
    """The speech of a text that comes in pieces; times of chunks are those of the whole.

    request: all but its script, which is left out. Raises InputError if it cannot be used or a
    piece is not text, RunError if a sentence fails, and whatever `pieces` raises.
    """
    speech = speak_continued if can_continue(synthesis, request.model) else _speak_each
    chunks = synthesis.notice.prepend_to(speech(synthesis, request, pieces, cancel))
    seconds = 0.0
    with closing(chunks) as events:
        for event in events:
            if isinstance(event, Sentence):
                yield SentenceBegun(event)
                continue
            if isinstance(event, AudioChunk):
                event = replace(event, start_seconds=seconds, row=0)
                seconds += len(event.samples) / event.sample_rate
            yield event


def _speak_each(
    synthesis: Synthesis, request: Request, pieces: Iterable[str], cancel: threading.Event
) -> Generator[Sentence | AudioChunk | TextStopped, None, None]:
    for item in read_sentences(pieces, cancel.is_set):
        yield item
        if isinstance(item, TextStopped):
            return
        one = one_speaker_request(
            _reseed_for_speaker(request, item.speaker), item.text, item.speaker
        )
        synthesis.validate(one)
        with closing(synthesis.stream(one, cancel)) as events:
            for event in events:
                match event:
                    case AudioChunk():
                        yield event
                    case Failed(message=message):
                        raise RunError(message)
                    case Cancelled():
                        return


def _reseed_for_speaker(request: Request, speaker: int) -> Request:
    """The request for sentences of a speaker: without a voice, S2 sounds different from S1."""
    has_voice = request.voice is not None or any(request.voices)
    if speaker == 1 or has_voice:
        return request
    seed = (request.params.seed + 1) % (SEED_LIMIT + 1)
    return replace(request, params=replace(request.params, seed=seed))
