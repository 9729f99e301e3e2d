"""A script as entries: words with their tokens, and breaks.

As nari-labs/dia2 parses it (runtime/script_parser.py), but for what is an accident there: a script
that begins with [S2] gets no [S1] before it, and a break of another form than the model knows is
text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from dia_demo.families.dia2.tokenizer import Tokenizer
from dia_demo.text.dialogue.pauses import find_pauses

_BREAK = re.compile(r"<break\s+time=\"([0-9]+(?:\.[0-9]*)?)s\"\s*/?>|\s+")
_MARKS = {"[S1]": 1, "[S2]": 2}


@dataclass(frozen=True)
class Entry:
    """A word, or a break: it has no tokens. padding: steps after it in which no word begins, at
    least. speaker: 1 or 2."""

    tokens: tuple[int, ...]
    text: str
    padding: int
    speaker: int


class ScriptParser:
    """Parses a script piece by piece. A piece ends after a whole word, and not inside a break."""

    def __init__(self, tokenizer: Tokenizer, frames_per_second: float) -> None:
        self._tokenizer, self._fps = tokenizer, frames_per_second
        self._speaker, self._mark, self._is_first = 1, "", True

    def parse(self, piece: str) -> list[Entry]:
        """The entries of the next piece."""
        text = piece.replace("’", "'").replace(":", " ")
        entries: list[Entry] = []
        position = 0
        for match in [*_BREAK.finditer(text), None]:
            word = text[position : match.start()] if match else text[position:]
            if word in _MARKS:
                self._speaker, self._mark = _MARKS[word], word
            elif word:
                entries.append(self._word(word))
            if match is None:
                break
            position = match.end()
            padding = round(float(match[1]) * self._fps) if match[1] else 0
            if padding > 0:
                entries.append(Entry((), "", padding, self._speaker))
        return entries

    def _word(self, word: str) -> Entry:
        said = word.removeprefix(word[:4]) if word[:4] in _MARKS else word
        self._speaker = _MARKS.get(word[:4], self._speaker)
        tokens = self._tokenizer.encode(f"{self._mark} {word}" if self._mark else word)
        if self._is_first and not self._mark and tokens[:1] != [self._tokenizer.s1]:
            tokens = [self._tokenizer.s1, *tokens]
        self._mark, self._is_first = "", False
        return Entry(tuple(tokens), said, len(tokens), self._speaker)


def parse_script(script: str, tokenizer: Tokenizer, frames_per_second: float) -> list[Entry]:
    """The entries of a script."""
    return ScriptParser(tokenizer, frames_per_second).parse(script)


def write_breaks(script: str) -> str:
    """The script with its pauses, however they are written, as the breaks that the model knows.
    Raises InputError for one that is too long."""
    parts, position = [], 0
    for pause in find_pauses(script):
        parts += [script[position : pause.start], f'<break time="{pause.seconds:.3f}s"/>']
        position = pause.end
    return "".join([*parts, script[position:]])
