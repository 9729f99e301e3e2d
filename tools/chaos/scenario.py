"""A fault while something is done, and what must become of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


class NotHere(Exception):
    """This machine cannot have the fault: the message says what is missing."""


@dataclass(frozen=True)
class Scenario:
    """fault: what happens to the program. during: what it is doing. expected: what must become of
    that. run(folder, short): makes it happen below an empty folder; returns what was seen, raises
    AssertionError where that is something else, and NotHere. short: in a form for CI."""

    fault: str
    during: str
    expected: str
    run: Callable[[Path, bool], str]


def check(condition: bool, what: str) -> None:
    """Raise AssertionError with what was seen instead, unless it is as expected."""
    if not condition:
        raise AssertionError(what)
