"""The raters of a panel test: who they are, when they came, and who was excluded for what reason.

raters.json has all of them in the order in which they came.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from dia_demo.errors import InputError
from dia_demo.services.listening.panel.plan import MAX_RATERS
from dia_demo.services.listening.plan.plan_file import write_whole
from dia_demo.untrusted import parse_as

NAME = "raters.json"
VERSION = 1
# More than are planned may come, and those who were excluded count as well.
MOST_RATERS = 4 * MAX_RATERS
MAX_NAME, MAX_REASON = 80, 500
# What recruiting platforms add to a link.
PARAMETERS = ("PROLIFIC_PID", "STUDY_ID", "SESSION_ID")
_RATER = re.compile(r"[0-9a-f]{32}")
_PARAMETER = re.compile(r"[\w.:@-]{1,100}")


@dataclass(frozen=True)
class Rater:
    """session: its number (see `sessions`). recruitment: of PARAMETERS, those that were in the
    link. headphones: whether the headphone check was passed, None without one. excluded: the
    owner's reason, blank for none. offline: came in a results file."""

    id: str
    session: int
    name: str = ""
    recruitment: dict[str, str] = field(default_factory=dict)
    started: str = ""
    finished: str = ""
    headphones: bool | None = None
    excluded: str = ""
    excluded_at: str = ""
    offline: bool = False


def now() -> str:
    """The time, as files have it (UTC)."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def check_rater_id(identity: object) -> str:
    """The id, if it has the form that browsers make. Raises InputError otherwise."""
    if not isinstance(identity, str) or not _RATER.fullmatch(identity):
        raise InputError("This page has no valid number for its listener: reload it.")
    return identity


def check_recruitment(parameters: object) -> dict[str, str]:
    """The PARAMETERS among those of a link; others, and values of another form, are dropped."""
    if not isinstance(parameters, Mapping):
        return {}
    given = {name: parameters.get(name) for name in PARAMETERS}
    return {
        name: value
        for name, value in given.items()
        if isinstance(value, str) and _PARAMETER.fullmatch(value)
    }


def plain_line(text: object, most: int) -> str:
    """A text on one line, without what is beyond `most` characters."""
    return " ".join(text.split())[:most] if isinstance(text, str) else ""


def find_person(raters: Mapping[str, Rater], recruitment: Mapping[str, str]) -> Rater | None:
    """The rater whom a recruiting platform calls the same, in the same study; None for nobody."""
    person = recruitment.get("PROLIFIC_PID")
    for rater in raters.values() if person else ():
        known = rater.recruitment
        if known.get("PROLIFIC_PID") == person:
            if known.get("STUDY_ID") == recruitment.get("STUDY_ID"):
                return rater
    return None


def read_raters(folder: Path) -> dict[str, Rater]:
    """All raters by their id. Raises InputError if the file is damaged."""
    try:
        raw = json.loads((folder / NAME).read_bytes().decode())
        if raw["version"] != VERSION:
            raise ValueError("version")
        raters = parse_as(tuple[Rater, ...], raw["raters"])
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise InputError(f"{NAME} is damaged or of another version.") from error
    return {rater.id: rater for rater in raters}


def write_raters(folder: Path, raters: Mapping[str, Rater]) -> None:
    """Write all raters. Raises InputError if there are too many, RunError if that fails."""
    if len(raters) > MOST_RATERS:
        raise InputError(f"{MOST_RATERS:,} people have taken this test, which is the maximum.")
    content = {"version": VERSION, "raters": [asdict(rater) for rater in raters.values()]}
    write_whole(folder / NAME, json.dumps(content, indent=1).encode())
