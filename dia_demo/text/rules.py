"""Shared parts of the normalisation rules: patterns that skip speaker tags, letter names."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

_LETTER_NAMES = dict(
    zip(
        "ABCDEFGHIJKLMNOPQRSTUVWXYZ",
        "ay bee see dee ee eff jee aitch eye jay kay ell em en oh pee cue are ess tee you vee "
        "double-you ex why zee".split(),
        strict=True,
    )
)

# Words that begin a sentence but not a name.
_OPENERS = frozenset(
    "A An And As At But By Do Does Did For From He Her His How I If In Is It Its My No Not Now On "
    "Or Our She So That The Their Then There These They This Those To Was We Were What When Where "
    "Which Who Why With Yes You Your Are Can Will Would Could Should Let Maybe Well Oh".split()
)


@dataclass(frozen=True)
class Reader:
    """How letters are read. letter_names: as "eff bee eye" instead of "F B I"."""

    letter_names: bool = False

    def letters(self, word: str) -> str:
        """The letters of a word apart, in capitals or by their names."""
        letters = [letter for letter in word.upper() if letter.isalpha()]
        if self.letter_names:
            letters = [_LETTER_NAMES.get(letter, letter) for letter in letters]
        return " ".join(letters)


Replace = Callable[[re.Match, Reader], str]


class Rule(NamedTuple):
    """A pattern and its replacement. Speaker tags never match."""

    pattern: re.Pattern
    replace: Replace

    def __call__(self, match: re.Match, reader: Reader) -> str:
        return match[0] if match[0].startswith("[S") else self.replace(match, reader)


def rule(pattern: str, replace: Replace, flags: int = 0) -> Rule:
    """A rule over everything but speaker tags, also those of speakers that Dia does not have."""
    return Rule(re.compile(rf"\[S\d{{1,3}}\]|(?:{pattern})", flags), replace)


def final_dot(match: re.Match, names_follow: bool = False) -> str:
    """The dot that an abbreviation shares with the end of its sentence.

    names_follow: a capital after it is more often a name's ("U.S. Army") than a new sentence's.
    """
    if not match[0].rstrip().endswith("."):
        return ""
    after = match.string[match.end() : match.end() + 20].lstrip(" \t")
    if not after or after[0] in "\n[":
        return "."
    if not after[0].isupper():
        return ""
    first = re.match(r"\w+", after)
    return "" if names_follow and not (first and first[0] in _OPENERS) else "."
