"""A row's text as passages: what one speaker says before the other does, with its punctuation."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

_TAGS = re.compile(rb"([\x01\x02])")
_MARK = re.compile(rb"(\.{2,}|[.,;:!?])[^\w\s]*(\s+)(?=\S)")
_LAST_MARK = re.compile(rb"(\.{2,}|[.,;:!?])[^\w\s]*\Z")
_BLANK_LINE = re.compile(rb"\n\s*\n")
ELLIPSIS, SENTENCE_MARKS, PARAGRAPH = "...", (".", "!", "?", "..."), "\n"


@dataclass(frozen=True)
class Mark:
    """A punctuation mark, or PARAGRAPH where a blank line follows it. characters: of the passage up
    to the next word."""

    kind: str
    characters: int

    @property
    def ends_sentence(self) -> bool:
        return self.kind in SENTENCE_MARKS or self.kind == PARAGRAPH


@dataclass(frozen=True)
class Passage:
    """words: of one turn or several. ends_paragraph: a blank line follows."""

    speaker: int
    words: bytes
    ends_paragraph: bool = False

    @cached_property
    def marks(self) -> tuple[Mark, ...]:
        """The marks that words follow."""
        return tuple(
            Mark(_kind(match[1], match[2]), match.end()) for match in _MARK.finditer(self.words)
        )

    @cached_property
    def last_mark(self) -> str:
        """The mark after the last word, a full stop if there is none."""
        match = _LAST_MARK.search(self.words)
        return _kind(match[1] if match else b".", b"\n\n" if self.ends_paragraph else b"")

    @property
    def ends(self) -> list[int]:
        """The characters up to the end of every sentence but the last. A model may begin the next
        one as if it were another turn."""
        return [mark.characters for mark in self.marks if mark.ends_sentence]


def passages(text: bytes, said: int) -> list[Passage]:
    """The passages of a row's text from byte `said` on, where the transcript of a voice prompt
    ends. Words before any tag are those of speaker 1."""
    found: list[Passage] = []
    speaker, place = 1, 0
    for part in _TAGS.split(text):
        rest = part[max(0, said - place) :]
        place += len(part)
        if _TAGS.fullmatch(part):
            speaker = part[0]
        elif words := rest.strip():
            ends_paragraph = _BLANK_LINE.search(rest[len(rest.rstrip()) :]) is not None
            if found and found[-1].speaker == speaker:
                words = _joined(found.pop(), words)
            found.append(Passage(speaker, words, ends_paragraph))
    return found


def speakers_of(text: bytes) -> set[int]:
    """The speakers of a transcript; without a tag, speaker 1."""
    return {passage.speaker for passage in passages(text, 0)}


def _joined(one: Passage, words: bytes) -> bytes:
    """Two turns of one speaker."""
    end = b"" if _LAST_MARK.search(one.words) else b"."
    return one.words + end + (b"\n\n" if one.ends_paragraph else b" ") + words


def _kind(mark: bytes, space: bytes) -> str:
    if _BLANK_LINE.search(space):
        return PARAGRAPH
    return ELLIPSIS if len(mark) > 1 else mark.decode()
