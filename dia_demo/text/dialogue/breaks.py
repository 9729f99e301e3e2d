"""Where a turn that is too long may be split: at sentence ends, then commas, then spaces.

Never inside a word, nor inside brackets, where a nonverbal stands.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from enum import IntEnum


class Break(IntEnum):
    """What stands before a part of a script, from the best place to split to the worst."""

    TURN = 0
    SENTENCE = 1
    CLAUSE = 2
    WORD = 3


_SPACE = re.compile(r"\s+")
_BRACKETED = re.compile(r"\([^()]{1,60}\)|\[[^\[\]]{1,60}\]")
_CONTEXT = 60
_CLOSING = "\"')]”’»"
_SENTENCE_ENDS = ".!?…"
_CLAUSE_ENDS = ",;:–—"
# Words before a full stop that ends no sentence; a single capital is an initial.
_ABBREVIATED = re.compile(
    r"(?:^|[\s(\"“])(?:[A-Z]|mr|mrs|ms|dr|st|prof|sr|jr|vs|no|etc|e\.g|i\.e|p\.m|a\.m|approx|fig)\.$",
    re.IGNORECASE,
)


def split_text(text: str, fits: Callable[[str], bool]) -> list[tuple[Break, str]]:
    """The parts of a turn's words, each of which fits, as long as possible at the best breaks.

    Every part has the break before it; the first one's is TURN. A single word that does not fit is
    a part of its own.
    """
    return list(_split(text, fits, Break.TURN, Break.SENTENCE))


def split_sentences(text: str) -> list[str]:
    """The sentences of a text, without the spaces between them. The last one is what comes after
    the last end of a sentence that a space follows, possibly nothing."""
    return _parts(text, Break.SENTENCE)


def _split(
    text: str, fits: Callable[[str], bool], before: Break, level: Break
) -> Iterator[tuple[Break, str]]:
    if fits(text):
        yield before, text
        return
    parts = _parts(text, level)
    if level is Break.WORD:
        parts = _fill_parts(parts, fits)
    for number, part in enumerate(parts):
        here = level if number else before
        if level is Break.WORD:
            yield here, part
        else:
            yield from _split(part, fits, here, Break(level + 1))


def _parts(text: str, level: Break) -> list[str]:
    """The text, split at every break of this level."""
    parts, done = [], 0
    for match in _SPACE.finditer(text):
        if _is_inside(text, match.start()) or not _is_break(
            text[max(0, match.start() - 40) : match.start()], level
        ):
            continue
        parts.append(text[done : match.start()])
        done = match.end()
    return [*parts, text[done:]]


def _is_break(before: str, level: Break) -> bool:
    """Whether the last characters before a space say that there is a break of this level."""
    if level is Break.WORD:
        return True
    last = before.rstrip(_CLOSING)[-1:]
    if last in _CLAUSE_ENDS:
        return level is Break.CLAUSE
    return last in _SENTENCE_ENDS and not _ABBREVIATED.search(before[-12:])


def _is_inside(text: str, at: int) -> bool:
    """Whether a place is between two brackets that belong together."""
    start = max(0, at - _CONTEXT)
    around, here = text[start : at + _CONTEXT], at - start
    return any(match.start() < here < match.end() for match in _BRACKETED.finditer(around))


def _fill_parts(words: list[str], fits: Callable[[str], bool]) -> list[str]:
    """The words joined to parts as long as possible."""
    parts = [words[0]]
    for word in words[1:]:
        longer = f"{parts[-1]} {word}"
        if fits(longer):
            parts[-1] = longer
        else:
            parts.append(word)
    return parts
