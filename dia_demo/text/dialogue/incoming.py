"""Text that arrives in pieces, as from a language model, and is spoken sentence by sentence or word
by word."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from dia_demo.text.dialogue.breaks import split_sentences
from dia_demo.text.script import TAG, has_words

# About 17 s, which every model says in one take. A longer sentence is spoken in parts, the first of
# them before it has ended.
LONGEST_SENTENCE = 250
_PARAGRAPH = re.compile(r"\n[ \t\r]*\n")
_LAST_SPACE = re.compile(r"\s+(?=\S*\Z)")
_CLAUSE_END = re.compile(r"[,;:–—]\s")
# What is inside brackets is not split, nor while they are open (see breaks, pauses).
_BRACKETS = re.compile(r"\([^()]{1,60}\)|\[[^\[\]]{1,60}\]|<[bB][^<>]{0,60}>")
_OPEN_BRACKET = re.compile(r"\([^()]{0,60}\Z|\[[^\[\]]{0,60}\Z|<(?:[bB][^<>]{0,60})?\Z")


@dataclass(frozen=True)
class Sentence:
    """What is spoken at once: a sentence, or some words of one. speaker: 1 or 2, by the last tag
    before it. is_end: the sentence ends with it. is_tagged: there is a tag right before it."""

    speaker: int
    text: str
    is_end: bool = True
    is_tagged: bool = field(default=False, compare=False)


class IncomingText:
    """Turns pieces of a text into sentences, the same ones however the text is cut. [S1] and [S2]
    change the speaker; before any of them, speaker 1 speaks. by_words: does not wait for the ends
    of sentences, only of words and brackets, and drops nothing."""

    def __init__(self, by_words: bool = False) -> None:
        self._by_words = by_words
        self._rest = ""
        self._speaker, self._is_tagged = 1, False

    @property
    def waiting(self) -> int:
        """How many characters belong to a sentence that is not complete."""
        return len(self._rest)

    def add(self, piece: str) -> list[Sentence]:
        """The sentences that are complete with one more piece."""
        self._rest += piece
        return [found for found in self._take() if self._is_said(found.text)]

    def finish(self) -> list[Sentence]:
        """The rest, since no more text comes. The next text begins with speaker 1."""
        rest = list(self._sentences(_parts(self._rest)))
        self._rest, self._speaker, self._is_tagged = "", 1, False
        return [found for found in rest if self._is_said(found.text)]

    def _is_said(self, text: str) -> bool:
        return self._by_words or has_words(text)

    def _sentences(self, parts: list[str], is_end: bool = True) -> Iterator[Sentence]:
        for part in filter(None, map(str.strip, parts)):
            yield Sentence(self._speaker, part, is_end, self._is_tagged)
            self._is_tagged = False

    def _take(self) -> Iterator[Sentence]:
        """Remove what is complete from the rest."""
        while tag := TAG.search(self._rest):
            yield from self._sentences(_parts(self._rest[: tag.start()]))
            self._speaker, self._rest = int(tag[1]), self._rest[tag.end() :]
            self._is_tagged = True
        bracket = _OPEN_BRACKET.search(self._rest)
        settled = bracket.start() if bracket else len(self._rest)
        *complete, last = _parts(self._rest[:settled])
        yield from self._sentences(complete)
        whole = _BRACKETS.sub(lambda match: "x" * len(match[0]), last)
        if self._by_words and (space := _LAST_SPACE.search(whole)):
            yield from self._sentences([last[: space.start()]], is_end=False)
            last = last[space.end() :]
        self._rest = last + self._rest[settled:]


def _parts(text: str) -> list[str]:
    """The sentences of a text, none longer than LONGEST_SENTENCE; the last one is open."""
    paragraphs = _PARAGRAPH.split(text.lstrip())
    sentences = [part for paragraph in paragraphs for part in split_sentences(paragraph)]
    return [part for sentence in sentences for part in _cut(sentence)]


def _cut(sentence: str) -> Iterator[str]:
    """A sentence in parts that are not too long: after a comma, else a space, else anywhere."""
    while len(sentence) > LONGEST_SENTENCE:
        head = sentence[:LONGEST_SENTENCE]
        ends = [match.end() for match in _CLAUSE_END.finditer(head)]
        at = ends[-1] if ends else head.rfind(" ") + 1 or LONGEST_SENTENCE
        yield sentence[:at].rstrip()
        sentence = sentence[at:]
    yield sentence
