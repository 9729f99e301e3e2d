"""Pauses of a given length in a script: (pause), (pause 1.5), [pause:1.5s], <break time="1.5s"/>.

A model that knows breaks makes them itself. They never reach another one: a dialogue has so much
silence there (services/dialogue).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from dia_demo.errors import InputError
from dia_demo.text.script import SECONDS_PER_CHARACTER, expected_seconds

DEFAULT_SECONDS = 1.0  # of (pause)
LONGEST_SECONDS = 30.0


def _length(name: str) -> str:
    """A pattern for a length, as the groups `name` and `name`_unit."""
    number = r"\d{1,4}(?:[.,]\d{1,3})?|[.,]\d{1,3}"
    return rf"(?P<{name}>{number})\s{{0,3}}(?P<{name}_unit>ms|milliseconds?|s|secs?|seconds?)?"


PAUSE = re.compile(
    rf"[(\[]\s{{0,3}}pause(?:\s{{0,3}}[:=]?\s{{0,3}}(?:(?:of|for)\s)?{_length('written')})?"
    r"\s{0,3}[)\]]"
    rf"|<break(?:\s{{1,3}}(?:time\s?=\s?[\"']?\s?{_length('time')}\s?[\"']?"
    r"|strength\s?=\s?[\"']?[a-z-]{1,10}[\"']?)){0,2}\s{0,3}/?>(?:\s?</break>)?",
    re.IGNORECASE,
)
_OWN_LINE = re.compile(r"(?<=\S)\s*\n[ \t]*(\(pause [\d.]+\))[ \t]*(?=\n|\Z)")


@dataclass(frozen=True)
class Pause:
    """A pause as characters start to end of a script ask for it."""

    start: int
    end: int
    seconds: float


def find_pauses(script: str) -> list[Pause]:
    """The pauses of a script, in order. Raises InputError for one that is too long."""
    return [
        Pause(*match.span(), _check_length(match[0], _seconds(match)))
        for match in PAUSE.finditer(script)
    ]


def simplify_pauses(script: str) -> str:
    """The script with every pause written as (pause 1.5), and none on a line of its own, where a
    format of scripts may take it for a stage direction."""
    plain = PAUSE.sub(lambda match: f"(pause {_seconds(match):g})", script)
    return _OWN_LINE.sub(r" \1", plain)


def seconds_with_pauses(script: str, seconds_per_character: float = SECONDS_PER_CHARACTER) -> float:
    """`expected_seconds` of the words, and the pauses, however long."""
    pauses = sum(map(_seconds, PAUSE.finditer(script)))
    return pauses + expected_seconds(remove_pauses(script), seconds_per_character)


def remove_pauses(text: str) -> str:
    """The text with spaces in the place of its pauses."""
    return PAUSE.sub(" ", text)


def _seconds(match: re.Match) -> float:
    for name in ("written", "time"):
        if number := match[name]:
            seconds = float(number.replace(",", "."))
            is_milli = (match[f"{name}_unit"] or "").lower().startswith("m")
            return seconds / 1000 if is_milli else seconds
    return DEFAULT_SECONDS


def _check_length(written: str, seconds: float) -> float:
    if seconds > LONGEST_SECONDS:
        raise InputError(
            f"{written} is too long: a pause may last 0 to {LONGEST_SECONDS:g} s. Write several."
        )
    return seconds
