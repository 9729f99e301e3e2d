"""Shared parts of the normalisation rules: patterns that skip speaker tags, letter names."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

_LETTER_NAMES = dict(
    zip(
        "ABCDEFGHIJKLMNOPQRSTUVWXYZ",
        "ay bee see dee ee eff jee aitch eye jay kay ell em en oh pee cue are ess tee you vee "
        "double-you ex why zee".split(),
        strict=True,
    )
)

# What is told apart by letters: plan B.
LETTERED = tuple(
    "plan vitamin type group grade section option team class hepatitis exhibit appendix gate block "
    "point part side level answer choice building model zone unit".split()
)
# Words that begin a sentence but not a name.
OPENERS = frozenset(
    "A An And As At But By Do Does Did For From He Her His How I If In Is It Its My No Not Now On "
    "Or Our She So That The Their Then There These They This Those To Was We Were What When Where "
    "Which Who Why With Yes You Your Are Can Will Would Could Should Let Maybe Well Oh".split()
)
_CONTEXT = 48
_TAG = re.compile(r"\[S\d{1,3}\]")
_LONGEST_TAG = 6


@dataclass
class Reader:
    """How letters and sounds are read, and what is worth telling the person about the reading.

    letter_names: as "eff bee eye" instead of "F B I". sounds: those that the voice can make, None
    for all; left_out: the others of the script.
    """

    letter_names: bool = False
    sounds: frozenset[str] | None = None
    remarks: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)

    def letters(self, word: str) -> str:
        """The letters of a word apart, in capitals or by their names."""
        letters = [letter for letter in word.upper() if letter.isalpha()]
        if self.letter_names:
            letters = [_LETTER_NAMES.get(letter, letter) for letter in letters]
        return " ".join(letters)

    def remark(self, written: str, read: str, advice: str) -> str:
        """Note that something may be meant otherwise; returns the reading."""
        text = f"“{written.strip()}” is read as “{read.strip()}”: {advice}"
        if text not in self.remarks:
            self.remarks.append(text)
        return read


Replace = Callable[[re.Match, Reader], str]


class Rule(NamedTuple):
    """A pattern and its replacement."""

    pattern: re.Pattern
    replace: Replace

    def matches(self, text: str) -> Iterator[re.Match]:
        """The matches in a text that do not begin inside a speaker tag.

        Only the pattern is searched for. Most rules find nothing in a script; with tags as an
        alternative in the pattern, they would match every tag.
        """
        at = 0
        while at <= len(text) and (match := self.pattern.search(text, at)):
            if tag := _tag_around(match.start(), text, at):
                at = tag.end()
            else:
                yield match
                at = max(match.end(), match.start() + 1)


def _tag_around(position: int, text: str, begin: int) -> re.Match | None:
    """The speaker tag that contains a position and starts at `begin` or later, if there is one.

    Speakers that Dia does not have count as well.
    """
    bracket = text.rfind("[", max(begin, position - _LONGEST_TAG), position + 1)
    tag = _TAG.match(text, bracket) if bracket >= 0 else None
    return tag if tag and tag.end() > position else None


def rule(pattern: str, replace: Replace, flags: int = 0) -> Rule:
    """A rule over everything but speaker tags."""
    return Rule(re.compile(pattern, flags), replace)


def word(words: str) -> Replace:
    """Replaces with the same words always."""
    return lambda match, reader: words


def any_of(words) -> str:
    """A pattern for any of the words, the longest first."""
    return "|".join(re.escape(one) for one in sorted(words, key=len, reverse=True))


def text_before(match: re.Match) -> str:
    """The text just before a match."""
    return match.string[max(0, match.start() - _CONTEXT) : match.start()]


def text_after(match: re.Match) -> str:
    """The text just behind a match."""
    return match.string[match.end() : match.end() + _CONTEXT]


_ZONES = frozenset("ET EST EDT CT CST CDT MT MST MDT PT PST PDT GMT UTC BST CET CEST".split())


def final_dot(match: re.Match, names_follow: bool = False) -> str:
    """The dot that an abbreviation shares with the end of its sentence.

    names_follow: a capital after it is more often a name's ("U.S. Army") than a new sentence's.
    """
    if not match[0].rstrip().endswith("."):
        return ""
    rest = match.string[match.end() : match.end() + 20].lstrip(" \t")
    if not rest or rest[0] in "\n[":
        return "."
    if not rest[0].isupper():
        return ""
    first = re.match(r"\w+", rest)
    if first and first[0] in _ZONES:
        return ""
    return "" if names_follow and not (first and first[0] in OPENERS) else "."


# Words that may stand between an amount and the rest of its sentence, so that the amount is no
# adjective: "$20 for", not "$20 bill".
NO_NOUNS = frozenset(
    "a about above after again ago all an and any apart apiece are around as at away back be "
    "because been before behind below between but by can cash could did do does down during each "
    "either every except extra for from had has have he here high higher how i if in instead into "
    "is it just last later left less like long may more most much must near next nor not now of "
    "off on once one only or out over per plus please right she short should since so some still "
    "such tall than that the their them then there these they this those though thousand through "
    "times to today together tomorrow tonight too total under until up upon versus very via was we "
    "well were what when where whether which while who why wide will with within without worth "
    "would yesterday yet you deep thick wide old older younger faster slower east west north south"
    " million billion trillion hundred".split()
)
_DETERMINER = re.compile(
    r"(?:\b(?:an?|the|this|that|these|those|his|her|my|our|their|its|your|another|each|every|new|"
    r"one|two|three|four|five|six|seven|eight|nine|ten|twelve|twenty|hundred)|\d)[ \t]{1,3}$",
    re.IGNORECASE,
)


def is_adjective(
    match: re.Match, nouns: frozenset[str] = frozenset(), any_noun: bool = False
) -> bool:
    """Whether an amount stands before the noun that it describes: "a $5 bill", "$20 million deal".

    nouns: they follow such an amount also where no article is before it; any_noun: all do.
    """
    following = re.match(r"[ \t]([a-z]{2,20})\b", text_after(match))
    if not following or following[1] in NO_NOUNS:
        return False
    return any_noun or following[1] in nouns or _DETERMINER.search(text_before(match)) is not None
