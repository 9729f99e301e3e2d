"""A remark on a script, and what a script is checked against."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from dia_demo.text.dialogue.pauses import seconds_with_pauses
from dia_demo.text.script import expected_seconds


class Level(StrEnum):
    """How serious a finding is, the most serious first. ERROR: the script would be refused, or
    words would be lost."""

    ERROR = "error"
    WARNING = "warning"
    TIP = "tip"


@dataclass(frozen=True)
class Draft:
    """A script and what it is checked against. max_seconds: what max tokens holds; most_seconds:
    what it can be raised to. keeps_pauses: there will be the pauses that it asks for.
    needs_last_tag: without one the last word may be cut off."""

    script: str
    transcript: str
    byte_limit: int
    seconds_per_character: float
    max_seconds: float | None
    natural_seconds: tuple[float, float] | None
    most_seconds: float | None = None
    keeps_pauses: bool = False
    needs_last_tag: bool = True

    def seconds_of(self, text: str) -> float:
        """How long a text takes."""
        seconds = seconds_with_pauses if self.keeps_pauses else expected_seconds
        return seconds(text, self.seconds_per_character)


@dataclass(frozen=True)
class Remark:
    """A finding whose repair is not computed yet, because that is most of the work of a check."""

    code: str
    level: Level
    message: str
    line: int | None = None
    repair: Callable[[], str] | None = None
    label: str | None = None
