"""Words and turns of a finished dialogue with their times, in seconds of the joined sound."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dia_demo.services.dialogue.join import Placed
from dia_demo.services.dialogue.judging.alignment import AlignedWord, Alignment
from dia_demo.services.dialogue.judging.chunk_take import ChunkTake
from dia_demo.services.dialogue.judging.sound import Sound
from dia_demo.services.dialogue.plan import DialoguePlan
from dia_demo.services.take import Request
from dia_demo.text.dialogue.chunks import Chunk
from dia_demo.text.normaliser import Reading
from dia_demo.text.script import to_bytes

# A sound in brackets is no word.
_TOKEN = re.compile(r"\([^()\n]{1,40}\)|\S+")


@dataclass(frozen=True)
class TimedWord:
    """A word as the script has it, when it is said, and in which turn, counted from 0. Where the
    words of a model cannot be followed, one of these is all that its speaker says in a chunk."""

    word: str
    start: float
    end: float
    speaker: str
    turn: int

    def shifted(self, seconds: float) -> TimedWord:
        """The same, so much later."""
        start, end = round(self.start + seconds, 3), round(self.end + seconds, 3)
        return TimedWord(self.word, start, end, self.speaker, self.turn)


@dataclass(frozen=True)
class Span:
    """Characters start to end of a script, that a speaker says in a turn."""

    start: int
    end: int
    speaker: int
    turn: int


def words_of_chunk(
    plan: DialoguePlan, chunk: Chunk, take: ChunkTake, alignment: Alignment | None, placed: Placed
) -> list[TimedWord]:
    """The words of a chunk that is placed in the whole."""
    spans, at = [], 0
    for part in chunk.parts:
        at = chunk.script.index(part.text, at)
        spans.append(Span(at, at + len(part.text), part.speaker, part.turn))
        at += len(part.text)
    request = plan.chunk_request(chunk, take.attempt)
    words = timed_words(request, spans, take, alignment)
    later = (placed.start - placed.first) / take.sample_rate
    return [word.shifted(later) for word in words]


def timed_words(
    request: Request,
    spans: Sequence[Span],
    take: ChunkTake,
    alignment: Alignment | None,
) -> list[TimedWord]:
    """The words of some spans of a request's script, in seconds of its take."""
    sound = Sound(take.samples, take.sample_rate)
    if alignment is None:
        return [word.shifted(0.0) for word in _by_length(request.script, spans, sound)]
    fps = request.model.frames_per_second / request.speed
    reading = request.reading(request.script)
    words: list[TimedWord] = []
    last = 0.0
    for span in spans:
        for match in _TOKEN.finditer(request.script[span.start : span.end]):
            if not any(map(str.isalnum, match[0])) or match[0].startswith("("):
                continue
            first, end = (span.start + at for at in match.span())
            start_byte, end_byte = _bytes_read(reading, take.said, first, end)
            said = [w for w in alignment.words if w.start < end_byte and w.end > start_byte]
            start, last = _seconds(said, sound, fps, last)
            word = TimedWord(match[0], start, last, f"S{span.speaker}", span.turn)
            words.append(word.shifted(0.0))
    return words


def _by_length(script: str, spans: Sequence[Span], sound: Sound) -> list[TimedWord]:
    """What each turn says, at times by the number of its characters."""
    start, end = (sample / sound.sample_rate for sample in sound.bounds)
    lengths = np.cumsum([0, *(span.end - span.start for span in spans)])
    edges = (start + (end - start) * lengths / lengths[-1]).tolist()
    return [
        TimedWord(script[span.start : span.end].strip(), first, last, f"S{span.speaker}", span.turn)
        for span, first, last in zip(spans, edges[:-1], edges[1:], strict=True)
    ]


def _bytes_read(reading: Reading, said: int, start: int, end: int) -> tuple[int, int]:
    """The bytes that the model reads for characters of the script: within what was written in other
    words, by their share."""
    written, read = [0], [0]
    for change in reading.changes:
        at = read[-1] + change.start - written[-1]
        written += [change.start, change.end]
        read += [at, at + len(change.read)]
    written.append(len(reading.original))
    read.append(len(reading.text))
    places = np.interp([start, end], written, read).round().astype(int)
    first, last = (said + len(to_bytes(reading.text[:place])) for place in places.tolist())
    return first, max(last, first + 1)


def _seconds(
    said: Sequence[AlignedWord], sound: Sound, fps: float, before: float
) -> tuple[float, float]:
    """From where to where these words sound; at the end of the words before if they do not."""
    frames = [word for word in said if word.last > word.first]
    if not frames:
        return before, before
    start, end = frames[0].first / fps, frames[-1].last / fps
    sounds = np.flatnonzero(sound.within(start, end))
    if len(sounds):
        piece = sound.piece / sound.sample_rate
        start, end = start + int(sounds[0]) * piece, min(end, start + int(sounds[-1] + 1) * piece)
    return max(start, before), max(end, before)
