"""votes.csv of a panel test: one line per answer, on the disk before the page confirms it.

No line names a side: what a clip was follows from the plan's key (see `sessions`). A file has a
version in every line; that of a comparison of one listener (listening/votes) has neither version
nor rater.
"""

from __future__ import annotations

import csv
import io
import json
import math
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from dia_demo.errors import InputError, RunError
from dia_demo.files import sync_folder
from dia_demo.services.listening.panel.designs import check_answer, check_attributes
from dia_demo.services.listening.panel.plan import PanelPlan
from dia_demo.services.listening.panel.raters import now, plain_line
from dia_demo.services.listening.panel.sessions import Presentation
from dia_demo.services.listening.votes.votes import csv_lines

NAME = "votes.csv"
VERSION = 2
MAX_NOTE = 500
MAX_HEARD = 3600.0
_ANSWER = re.compile(r"[0-9a-f]{32}")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]{5,15}(Z|[+-]\d\d:\d\d)?")


@dataclass(frozen=True)
class PanelVote:
    """One answer of a rater. id: of the answer, made once by the browser. order: the number of the
    screen in the session, training included. answer: as JSON (see `designs`), by the clips of the
    screen. heard: the seconds of each clip, as JSON. received: when the server had it."""

    version: int
    rater: str
    session: int
    id: str
    presentation: str
    order: int
    design: str
    answer: str
    attributes: str
    note: str
    heard: str
    started: str
    time: str
    received: str

    @property
    def value(self) -> dict[str, Any]:
        """The answer."""
        return json.loads(self.answer)

    @property
    def seconds(self) -> list[float]:
        return json.loads(self.heard)


COLUMNS = tuple(column.name for column in fields(PanelVote))


def make_panel_vote(
    plan: PanelPlan, rater: str, session: int, screens: Mapping[str, Presentation], raw: object
) -> PanelVote:
    """The record of an answer as a browser sends it. screens: of the rater's session, by their
    ids. Raises InputError if it is invalid."""
    if not isinstance(raw, Mapping):
        raise InputError("An answer is a JSON object.")
    identity, presentation = raw.get("id"), raw.get("presentation")
    if not isinstance(identity, str) or not _ANSWER.fullmatch(identity):
        raise InputError("An answer needs an id of 32 hexadecimal digits.")
    if not isinstance(presentation, str) or presentation not in screens:
        raise InputError("This test has no such screen for this listener: reload the page.")
    screen = screens[presentation]
    answer = check_answer(plan.design, len(screen.names), raw.get("answer"))
    attributes = check_attributes(plan.attributes, raw.get("attributes", []))
    return PanelVote(
        version=VERSION,
        rater=rater,
        session=session,
        id=identity,
        presentation=presentation,
        order=list(screens).index(presentation) + 1,
        design=plan.design.value,
        answer=json.dumps(answer),
        attributes=" ".join(attributes),
        note=plain_line(raw.get("note", ""), MAX_NOTE),
        heard=json.dumps(_seconds(raw.get("heard", []))),
        started=_time(raw.get("started")),
        time=_time(raw.get("time")),
        received=now(),
    )


def _seconds(heard: object) -> list[float]:
    if not isinstance(heard, list) or len(heard) > 20:
        raise InputError("heard is a list of seconds, one for each clip.")
    for one in heard:
        is_number = isinstance(one, int | float) and not isinstance(one, bool)
        if not is_number or not math.isfinite(one) or not 0 <= one <= MAX_HEARD:
            raise InputError(f"heard has seconds from 0 to {MAX_HEARD:.0f}, not {one!r:.40}.")
    return [round(float(one), 1) for one in heard]


def _time(value: object) -> str:
    if value is None or value == "":
        return ""
    if not isinstance(value, str) or not _TIME.fullmatch(value):
        raise InputError(f"A time is written as 2026-01-31T12:00:00Z, not {value!r:.40}.")
    return value


def append_panel_votes(folder: Path, votes: Iterable[PanelVote]) -> None:
    """Append lines and wait until they are on the disk. Raises RunError if that fails."""
    rows = [list(asdict(vote).values()) for vote in votes]
    try:
        with open(folder / NAME, "a+b") as file:
            start = _end_of_whole_lines(file)
            file.truncate(start)
            head = [COLUMNS] if start == 0 else []
            file.write(csv_lines([*head, *rows]))
            file.flush()
            os.fsync(file.fileno())
        if start == 0:
            sync_folder(folder)
    except OSError as error:
        reason = error.strerror or error
        raise RunError(f"The answer could not be saved: {reason}. Free some space.") from error


def _end_of_whole_lines(file) -> int:
    """Where the last whole line ends; a crash may have left a part of one behind it."""
    size = file.seek(0, os.SEEK_END)
    at = max(0, size - 65536)
    file.seek(at)
    return at + file.read().rfind(b"\n") + 1


class VoteFile:
    """The votes of a folder in memory, which reads what other processes appended."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / NAME
        self._read = 0
        self._by_rater: dict[str, dict[str, PanelVote]] = {}

    def by_rater(self) -> dict[str, dict[str, PanelVote]]:
        """The votes of each rater by presentation, the first of each. Raises InputError if the
        file is damaged or of a newer version."""
        try:
            with open(self._path, "rb") as file:
                file.seek(self._read)
                data = file.read()
        except FileNotFoundError:
            return self._by_rater
        except OSError as error:
            raise InputError(f"{NAME} cannot be read: {error.strerror or error}.") from error
        whole = data[: data.rfind(b"\n") + 1]
        try:
            lines = csv.reader(io.StringIO(whole.decode()))
            for row in lines:
                self._add(row)
        except (UnicodeDecodeError, csv.Error, ValueError, KeyError) as error:
            raise InputError(f"{NAME} is damaged and cannot be read.") from error
        self._read += len(whole)
        return self._by_rater

    def _add(self, row: list[str]) -> None:
        if not row or row[0] == COLUMNS[0]:
            return
        if row[0] != str(VERSION):
            raise InputError(
                f"{NAME} has version {row[0]!r:.20}, but this program reads version {VERSION}."
            )
        values = dict(zip(COLUMNS, row, strict=True))
        plain = {name: value.removeprefix("'") for name, value in values.items()}
        numbers = {name: int(values[name]) for name in ("version", "session", "order")}
        vote = PanelVote(**(plain | numbers))  # type: ignore[arg-type]
        json.loads(vote.answer), json.loads(vote.heard)
        self._by_rater.setdefault(vote.rater, {}).setdefault(vote.presentation, vote)
