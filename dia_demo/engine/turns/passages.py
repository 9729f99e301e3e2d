"""A row's text as passages: what one speaker says before the other does; and its punctuation."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

_TAGS = re.compile(rb"([\x01\x02])")
# A mark with what closes around it, if any, and the space and tags up to the next word.
_GAP = re.compile(rb"(?:(\.{2,}|[.,;:!?])[^\w\s\x01\x02]*)?([\s\x01\x02]+)(?=[^\s\x01\x02])")
_BLANK_LINE = re.compile(rb"\n\s*\n")
_UNTAUGHT = re.compile(rb"[;:](?=[^\w\s\x01\x02]*[\s\x01\x02])")
ELLIPSIS, PARAGRAPH = "...", "\n"


@dataclass(frozen=True)
class Passage:
    """One turn or several of one speaker: text[start:end], from its first word to its last."""

    speaker: int
    start: int
    end: int


@dataclass(frozen=True)
class Mark:
    """A punctuation mark, or PARAGRAPH where a blank line follows it. word: where in the text the
    next word begins. ends_turn: that word begins a passage."""

    kind: str
    word: int
    ends_turn: bool


def passages(text: bytes, said: int) -> list[Passage]:
    """The passages of a row's text from byte `said` on, where the transcript of a voice prompt
    ends. Words before any tag are those of speaker 1."""
    found: list[Passage] = []
    speaker, place = 1, 0
    for part in _TAGS.split(text):
        start = max(place, said)
        place += len(part)
        rest = text[start:place]
        if _TAGS.fullmatch(part):
            speaker = part[0]
        elif words := rest.strip():
            start += rest.index(words)
            if found and found[-1].speaker == speaker:
                start = found.pop().start
            found.append(Passage(speaker, start, place - len(rest) + len(rest.rstrip())))
    return found


def readable(text: bytes) -> bytes:
    """The text for a model that was not taught to pause at a semicolon or colon: with commas in
    their places."""
    return _UNTAUGHT.sub(b",", text)


def marks_of(text: bytes, found: list[Passage]) -> list[Mark]:
    """The marks between the words of these passages. A turn that ends without one ends with a full
    stop."""
    starts = {passage.start for passage in found}
    first = min(starts, default=0)
    marks = []
    for match in _GAP.finditer(text):
        kind, gap, word = match[1], match[2], match.end()
        if word <= first or not (kind or _TAGS.search(gap)):
            continue
        marks.append(Mark(_kind(kind or b".", gap), word, word in starts))
    return marks


def speakers_of(text: bytes) -> set[int]:
    """The speakers of a transcript; without a tag, speaker 1."""
    return {passage.speaker for passage in passages(text, 0)}


def passage_of_bytes(text: bytes, found: list[Passage]) -> np.ndarray:
    """Of every byte of the text, the number of its passage; -1 between them."""
    numbers = np.full(len(text), -1)
    for number, passage in enumerate(found):
        numbers[passage.start : passage.end] = number
    return numbers


def _kind(mark: bytes, gap: bytes) -> str:
    if _BLANK_LINE.search(gap):
        return PARAGRAPH
    return ELLIPSIS if len(mark) > 1 else mark.decode()
