"""A remark on a script, and what a script is checked against."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum


class Level(StrEnum):
    """How serious a finding is, the most serious first. ERROR: the script would be refused, or
    words would be lost."""

    ERROR = "error"
    WARNING = "warning"
    TIP = "tip"


@dataclass(frozen=True)
class Draft:
    """A script and what it is checked against. max_seconds: what max tokens holds; most_seconds:
    what it can be raised to."""

    script: str
    transcript: str
    byte_limit: int
    seconds_per_character: float
    max_seconds: float | None
    natural_seconds: tuple[float, float] | None
    most_seconds: float | None = None


@dataclass(frozen=True)
class Remark:
    """A finding whose repair is not computed yet, because that is most of the work of a check."""

    code: str
    level: Level
    message: str
    line: int | None = None
    repair: Callable[[], str] | None = None
    label: str | None = None
