"""Words and turns of a finished dialogue with their times, in seconds of the joined sound."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dia_demo.engine.events import SpokenWord
from dia_demo.services.dialogue.join import Placed
from dia_demo.services.dialogue.plan import DialoguePlan
from dia_demo.services.judging.alignment import AlignedWord, Alignment
from dia_demo.services.judging.chunk_take import ChunkTake
from dia_demo.services.judging.sound import Sound
from dia_demo.services.take import Request, TimedWord
from dia_demo.text.dialogue.chunks import Chunk
from dia_demo.text.normaliser import Reading
from dia_demo.text.script import to_bytes

# A sound in brackets is no word.
_TOKEN = re.compile(r"\([^()\n]{1,40}\)|\S+")


@dataclass(frozen=True)
class Span:
    """Characters start to end of a script, that a speaker says in a turn."""

    start: int
    end: int
    speaker: int
    turn: int


@dataclass(frozen=True)
class Timeline:
    """The words of a dialogue with their times, and how many samples it has."""

    words: tuple[TimedWord, ...]
    samples: int


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
    return [word.shift(later) for word in words]


def timed_words(
    request: Request,
    spans: Sequence[Span],
    take: ChunkTake,
    alignment: Alignment | None,
) -> list[TimedWord]:
    """The words of some spans of a request's script, in seconds of its take."""
    sound = Sound(take.samples, take.sample_rate)
    if take.words is not None:
        return spoken_words(take.words, spans, sound.bounds[1] / sound.sample_rate)
    if alignment is None:
        return [word.shift(0.0) for word in _words_by_length(request.script, spans, sound)]
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
            words.append(word.shift(0.0))
    return words


def spoken_words(
    words: Sequence[SpokenWord], spans: Sequence[Span], last: float
) -> list[TimedWord]:
    """Words whose beginnings are known, of turns in order. One ends where the next begins, the last
    one at `last`, in seconds."""
    ends = [word.seconds for word in words[1:]] + [last]
    timed, at = [], 0
    for word, end in zip(words, ends, strict=True):
        # The next turn of this speaker: turns of one speaker that follow one another are one.
        here = (k for k in range(at, len(spans)) if spans[k].speaker == word.speaker)
        at = next(here, at)
        turn = spans[at].turn if spans else 0
        times = word.seconds, max(word.seconds, end)
        timed.append(TimedWord(word.word, *times, f"S{word.speaker}", turn).shift(0.0))
    return timed


def _words_by_length(script: str, spans: Sequence[Span], sound: Sound) -> list[TimedWord]:
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
    sounds = np.flatnonzero(sound.is_sound_between(start, end))
    if len(sounds):
        piece = sound.piece / sound.sample_rate
        start, end = start + int(sounds[0]) * piece, min(end, start + int(sounds[-1] + 1) * piece)
    return max(start, before), max(end, before)
