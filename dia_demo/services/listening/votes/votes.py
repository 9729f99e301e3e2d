"""votes.csv: one line per vote, on the disk before the page confirms it.

While the test is open, a line has the answer but nothing that names a side or follows from one.
The end of the test fills in the rest, so that the file alone tells what was compared.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from pathlib import Path

from dia_demo.errors import InputError, RunError
from dia_demo.files import sync_folder
from dia_demo.services.listening.plan.plan import NAMES, ComparisonKind, ComparisonPlan, Trial
from dia_demo.services.listening.plan.plan_file import write_whole

NAME = "votes.csv"
# Of the columns: 1 had neither rater nor version.
VERSION, OWNER = 2, "owner"
VOTES = ("A", "B", "none")
STRENGTHS = (1, 2, 3)
MAX_NOTE = 500
MAX_BYTES = 4_000_000
# A spreadsheet would execute a cell that begins like this; reading removes the quote again.
_FORMULA = ("=", "+", "-", "@", "\t")


@dataclass(frozen=True)
class Vote:
    """One answer, with everything that reproduces its trial.

    vote: the better clip (for ABX, the one that is X): A, B or none. heard_a, heard_b: the settings
    of the clips. winner: the chosen setting. correct: only for ABX. rater: OWNER, or a listener of
    a shared comparison by a random name. version: of these columns.
    """

    trial: str
    order: int
    kind: str
    vote: str
    winner: str
    correct: str
    strength: str
    note: str
    heard_a: str
    heard_b: str
    seconds_a: float
    seconds_b: float
    seconds_x: float
    gain_a_db: float
    gain_b_db: float
    script: int
    script_sha256: str
    seed: int
    settings_a: str
    settings_b: str
    time: str
    rater: str
    version: int


COLUMNS = tuple(column.name for column in fields(Vote))
# Blank until the end of the test.
SIDES = {
    "winner",
    "correct",
    "heard_a",
    "heard_b",
    "gain_a_db",
    "gain_b_db",
    "settings_a",
    "settings_b",
}


def make_vote(
    plan: ComparisonPlan,
    trial: Trial,
    answer: str,
    strength: int | None,
    note: str,
    heard: dict,
    rater: str = OWNER,
) -> Vote:
    """The record of an answer. heard: seconds by clip. Raises InputError if it is invalid."""
    allowed = VOTES[:2] if plan.kind == ComparisonKind.ABX else VOTES
    if answer not in allowed:
        raise InputError(f"A vote is one of {', '.join(allowed)}, not {answer!r}.")
    if strength is not None and strength not in STRENGTHS:
        raise InputError(f"strength must be 1 (slightly) to 3 (very much), not {strength!r}.")
    secret = plan.secrets[trial.id]
    behind = [secret.setting_of(trial, clip) for clip in (0, 1)]
    chosen = "AB".find(answer)
    gains = secret.gains_db or (0.0, 0.0)
    script = plan.scripts[trial.script]
    is_abx = plan.kind == ComparisonKind.ABX
    return Vote(
        trial=trial.id,
        order=plan.trials.index(trial) + 1,
        kind=plan.kind,
        vote=answer,
        winner=NAMES[behind[chosen]] if chosen >= 0 and not is_abx else "",
        correct=("yes" if chosen == secret.x else "no") if is_abx else "",
        strength=str(strength) if strength and chosen >= 0 else "",
        note=" ".join(note.split())[:MAX_NOTE],
        heard_a=NAMES[behind[0]],
        heard_b=NAMES[behind[1]],
        seconds_a=round(heard.get("A", 0.0), 1),
        seconds_b=round(heard.get("B", 0.0), 1),
        seconds_x=round(heard.get("X", 0.0), 1),
        gain_a_db=round(gains[0], 3),
        gain_b_db=round(gains[1], 3),
        script=trial.script + 1,
        script_sha256=hashlib.sha256(script.encode("utf-8", "surrogatepass")).hexdigest(),
        seed=trial.seed,
        settings_a=json.dumps(plan.settings[behind[0]].values()),
        settings_b=json.dumps(plan.settings[behind[1]].values()),
        time=datetime.now(UTC).isoformat(timespec="seconds"),
        rater=rater,
        version=VERSION,
    )


def append_vote(folder: Path, vote: Vote) -> None:
    """Append a line without its sides and wait until it is on the disk. Raises RunError if that
    fails."""
    path = folder / NAME
    values = {name: "" if name in SIDES else value for name, value in asdict(vote).items()}
    try:
        with open(path, "a+b") as file:
            columns, start = _columns_and_end(file)
            file.truncate(start)
            row = [values.get(name, "") for name in columns]
            file.write(csv_lines([row] if start else [columns, row]))
            file.flush()
            os.fsync(file.fileno())
        if start == 0:
            sync_folder(folder)
    except OSError as error:
        reason = error.strerror or error
        raise RunError(f"The vote could not be saved: {reason}. Free some space.") from error


def complete_votes(folder: Path, votes: Iterable[Vote]) -> None:
    """Write all votes of a test that has ended, with their sides. Raises RunError if that fails."""
    rows = [list(asdict(vote).values()) for vote in votes]
    if rows:
        write_whole(folder / NAME, csv_lines([COLUMNS, *rows]))


def read_votes(folder: Path, plan: ComparisonPlan) -> dict[str, Vote]:
    """The votes by trial, without incomplete lines (after a crash) and unknown trials."""
    path = folder / NAME
    if not path.exists():
        return {}
    try:
        data = path.read_bytes()[: MAX_BYTES + 1]
        text = data[: data.rfind(b"\n") + 1].decode("utf-8")
        rows = list(csv.DictReader(io.StringIO(text)))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{NAME} is damaged and cannot be read.") from error
    if len(data) > MAX_BYTES:
        raise InputError(f"{NAME} is too large to be the votes of one comparison.")
    known = {trial.id: trial for trial in plan.trials}
    votes: dict[str, Vote] = {}
    for row in rows:
        trial = known.get(row.get("trial") or "")
        if trial is not None and trial.id not in votes:
            votes[trial.id] = _vote(row, plan, trial)
    return votes


def _vote(row: dict, plan: ComparisonPlan, trial: Trial) -> Vote:
    """A vote from its line, with the properties of its trial from the plan."""
    try:
        strength = int(row["strength"]) if row["strength"] else None
        heard = {letter: float(row[f"seconds_{letter.lower()}"]) for letter in "ABX"}
        note, time = (row[name].removeprefix("'") for name in ("note", "time"))
        rater = row.get("rater") or OWNER
        vote = make_vote(plan, trial, row["vote"], strength, note, heard, rater)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"{NAME} is damaged: the line of trial {trial.id}.") from error
    return Vote(**(asdict(vote) | {"time": time[:40]}))


def _plain(value: object) -> str:
    text = str(value)
    return f"'{text}" if isinstance(value, str) and text.startswith(_FORMULA) else text


def csv_lines(rows: Sequence[Sequence[object]]) -> bytes:
    """Rows as lines of CSV, without cells that a spreadsheet would execute."""
    buffer = io.StringIO()
    plain = ([_plain(value) for value in row] for row in rows)
    csv.writer(buffer, lineterminator="\n").writerows(plain)
    return buffer.getvalue().encode("utf-8")


def _columns_and_end(file) -> tuple[Sequence[str], int]:
    """The columns of the file, which may be those of version 1, and where its whole lines end."""
    file.seek(0)
    data = file.read()
    end = data.rfind(b"\n") + 1
    if not end:
        return COLUMNS, 0
    return data[: data.index(b"\n")].decode("utf-8", "replace").strip().split(","), end
