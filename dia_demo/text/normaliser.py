"""Text normalisation: writes a script as it is read aloud, in plain characters and words.

The embedded voice was trained only on plain words, so its scripts are always normalised. Dia's are
only on request. The rules are in `formats`, `markup` and the folder `reading`.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby

from dia_demo.text.dialogue.pauses import PAUSE
from dia_demo.text.edits import Change, EditedText
from dia_demo.text.formats.table import recognise
from dia_demo.text.markup import remove_markup
from dia_demo.text.near_tags import tag_speakers
from dia_demo.text.pronunciations import NONE, Pronunciations
from dia_demo.text.reading import abbreviations, addresses, capitals, codes, signs
from dia_demo.text.reading.quantities import dates, measures, money, numerals, roman, sizes
from dia_demo.text.reading.rules import Reader, Rule
from dia_demo.text.sounds import read_sounds

_PLAIN = {
    **dict.fromkeys("‘’‚‛ʼ´′‹›＇", "'"),
    **dict.fromkeys("“”„‟«»″＂", '"'),
    **dict.fromkeys("‐‑‒−", "-"),
    **dict.fromkeys("\u00a0\u2000\u2001\u2002\u2003\u2004\u2005\u2006", " "),
    **dict.fromkeys("\u2007\u2008\u2009\u200a\u202f\u205f\u3000", " "),
    **dict.fromkeys("\u2028\u2029\u0085", "\n"),
    # Zero-width: spaces, joiners, soft hyphens, marks of direction and byte order.
    **dict.fromkeys("\u00ad\u200b\u200c\u200d\u200e\u200f\u2060\ufeff", ""),
    **dict.fromkeys("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069", ""),
    "…": "...",
}
_TYPOGRAPHIC = re.compile(f"[{re.escape(''.join(_PLAIN))}]")
# An en dash within a word or number (London–Paris, 3–5) joins; every other one is a pause.
_JOINING_DASH = re.compile(r"(?<=[\w%])–(?=[\w$£€¥])")
# So does one between two days or months: Mon – Fri.
_DAY_OR_MONTH = (
    "(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun|Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]{0,6}"
)
_RANGE_DASH = re.compile(rf"\b({_DAY_OR_MONTH}\.?)[ \t]?–[ \t]?(?={_DAY_OR_MONTH}\b)")
_DASHES = re.compile(r"(?<![ \t])[ \t]*[–—―](?:[ \t]*[–—―])*[ \t]*")
# What may stand between the last word of a turn or line and its end.
_END = re.compile(r"[\"')\]]{0,9}(?=\n|\[S[12]\]|\Z)")
_MARKS = (".", ",", ";", ":", "!", "?")
_CONTEXT = 40
_MOST_ROUNDS = 5
_SHOWN_SOUNDS = 6
_PRIVATE = re.compile("[\ue000-\uf8ff]")
_ACCENTED = re.compile(r"[^\W\d_a-zA-Z]")
_RULES_BEFORE_MARKUP = (signs.CENSORED, signs.LOVE, sizes.STARS)
_RULES = (
    *addresses.RULES, *abbreviations.RULES, *signs.FIRST_RULES, *roman.RULES, *codes.FIRST_RULES,
    *numerals.FIRST_RULES, *dates.RULES, *money.RULES, *measures.RULES, *codes.RULES,
    *numerals.RULES, *measures.RULES_AFTER_NUMBERS, *capitals.RULES, *signs.RULES,
)  # fmt: skip
# The sounds that the embedded voice was trained on.
SOUNDS_OF_NANO = frozenset({"laughs"})
_SPACES = re.compile(r"(?<![ \t])[ \t]+\Z|[ \t]{2,}")
_SPACE_BEFORE_MARK = re.compile(r"(?<=[^\s.])[ \t]([.,;:!?])(?![.\d])")


@dataclass(frozen=True)
class Reading:
    """A script as it will be read aloud, the changes from the original, and what is left out or
    may be meant otherwise, one sentence each."""

    original: str
    text: str
    changes: tuple[Change, ...]
    remarks: tuple[str, ...] = ()

    def parts(self) -> list[tuple[str, bool]]:
        """The text in parts of whole words, each with whether something in it was changed."""
        changed: list[bool] = []
        done = 0
        for change in self.changes:
            changed += [False] * (change.start - done) + [True] * len(change.read)
            done = change.end
        changed += [False] * (len(self.original) - done)
        for word in re.finditer(r"\S+", self.text):
            if any(changed[word.start() : word.end()]):
                changed[word.start() : word.end()] = [True] * len(word[0])
        groups = groupby(zip(self.text, changed, strict=True), key=lambda pair: pair[1])
        return [("".join(letter for letter, _ in group), flag) for flag, group in groups]


def read_as_written(script: str, pronunciations: Pronunciations = NONE) -> Reading:
    """A script that is read as it was written, but for the words of a person's list."""
    text = EditedText(script)
    pronunciations.apply(text, is_normalised=False)
    return Reading(script, text.text, text.changes())


def plain_characters(script: str) -> str:
    """The script with plain quotes, dashes, dots and spaces; what is plain already stays as it is.

    A long dash becomes a comma, or "..." where a turn or line breaks off with it.
    """
    text = EditedText(script)
    _make_plain(text)
    return text.text


@lru_cache(maxsize=16)
def normalise(
    script: str,
    letter_names: bool = False,
    pronunciations: Pronunciations = NONE,
    keeps_pauses: bool = False,
) -> Reading:
    """The script in plain words: no typographic characters, markup, digits or abbreviations.

    A script in another format (formats.table) becomes turns of [S1] and [S2], and a script without
    tags begins with [S1].
    letter_names: spell initialisms with the names of their letters ("eff bee eye"), remove accents
    and leave out sounds but (laughs), for a model that was trained on none of them. The words of
    pronunciations are written first, so that they win over all rules. keeps_pauses: the pauses of
    text/dialogue/pauses.py stay as they are written; else they become dots. Normalising
    twice changes nothing. The work is linear in the length of the script.
    """
    text = EditedText(script)
    reader = Reader(letter_names, SOUNDS_OF_NANO if letter_names else None)
    if (found := recognise(script)) and found.is_sure:
        text.rewrite(found.edits)
    pronunciations.apply(text, is_normalised=True)
    pauses = _hide_pauses(text) if keeps_pauses else {}
    for _ in range(_MOST_ROUNDS):
        before = text.text
        _read(text, reader)
        if text.text == before:
            break
    text.sub(_PRIVATE, lambda match: pauses.get(match[0], match[0]))
    return Reading(script, text.text, text.changes(), _remarks(reader))


def _hide_pauses(text: EditedText) -> dict[str, str]:
    """Put a character that no rule looks for in the place of each pause; returns the pauses."""
    used = set(text.text)
    free = (mark for mark in map(chr, range(0xE000, 0xF900)) if mark not in used)
    pauses: dict[str, str] = {}

    def hide(match: re.Match) -> str:
        mark = next(free)
        pauses[mark] = match[0]
        return mark

    text.sub(PAUSE, hide)
    return pauses


def _remarks(reader: Reader) -> tuple[str, ...]:
    if not reader.left_out:
        return tuple(reader.remarks)
    shown = ", ".join(f"“{sound}”" for sound in reader.left_out[:_SHOWN_SOUNDS])
    if len(reader.left_out) > _SHOWN_SOUNDS:
        shown += f" and {len(reader.left_out) - _SHOWN_SOUNDS} more"
    return (*reader.remarks, f"This voice can only laugh, written (laughs): {shown} left out.")


def _read(text: EditedText, reader: Reader) -> None:
    """All rules once. What one rule writes may be what an earlier one looks for."""
    before = text.text
    _make_plain(text)
    for rule in _RULES_BEFORE_MARKUP:
        _apply(rule, text, reader)
    remove_markup(text)
    tag_speakers(text)
    read_sounds(text, reader)
    for rule in _RULES:
        _apply(rule, text, reader)
    if reader.letter_names:
        text.sub(_ACCENTED, _remove_accent)
    if text.text == before:  # Spaces that a person wrote stay as they are.
        return
    text.sub(_SPACES, lambda match: "" if match.end() == len(match.string) else " ")
    text.sub(_SPACE_BEFORE_MARK, lambda match: match[1])


def _apply(rule: Rule, text: EditedText, reader: Reader) -> None:
    matches = rule.matches(text.text)
    text.rewrite((*match.span(), _replace_match(rule, reader, match)) for match in matches)


def _replace_match(rule: Rule, reader: Reader, match: re.Match) -> str:
    """What a rule writes, with a space to a word that touches it."""
    words = rule.replace(match, reader)
    if words == match[0]:
        return words
    before, after = (
        match.string[max(0, match.start() - 1) : match.start()],
        match.string[match.end() : match.end() + 1],
    )
    if words[:1].isalnum() and before.isalnum():
        words = f" {words}"
    if words[-1:].isalnum() and after.isalnum():
        words += " "
    return words


def _make_plain(text: EditedText) -> None:
    text.sub(_TYPOGRAPHIC, lambda match: _PLAIN[match[0]])
    text.sub(_RANGE_DASH, lambda match: f"{match[1]}-")
    text.sub(_JOINING_DASH, lambda match: "-")
    text.sub(_DASHES, _pause)


def _pause(match: re.Match) -> str:
    """What stands for a run of long dashes, with the spaces around it."""
    before = match.string[max(0, match.start() - _CONTEXT) : match.start()]
    after = match.string[match.end() : match.end() + _CONTEXT]
    end = _END.match(match.string, match.end())
    space = "" if after[:1] in ("", "\n") or (end and end[0]) else " "
    opening = before.rstrip("\"'(")
    if not opening or opening[-1] == "]" or opening[-1].isspace():
        # Before the first word of a line or turn.
        return space if before.endswith("]") else ""
    if before.endswith(_MARKS):
        return space
    if end:
        return f"...{space}"
    return "" if after.startswith(_MARKS) else ", "


def _remove_accent(match: re.Match) -> str:
    plain = unicodedata.normalize("NFKD", match[0])
    return "".join(letter for letter in plain if letter.isascii()) or match[0]
