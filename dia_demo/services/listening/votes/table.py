"""The votes as a table for a spreadsheet: one row per pair, settings by their values; of several
listeners one row per vote.

It is written from `votes.csv`, the record in the comparison's folder, after the test.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from dia_demo.errors import RunError
from dia_demo.files import write_atomic
from dia_demo.services.listening.plan.names import setting_names
from dia_demo.services.listening.plan.plan import NAMES, ComparisonKind, ComparisonPlan, Trial
from dia_demo.services.listening.votes.votes import Vote, csv_lines

# Each column with its meaning.
COLUMNS = {
    "pair": "its number in the order of the test",
    "script": "number of the script",
    "seed": "seed of the pair",
    "clip_1": "the setting heard as clip 1",
    "clip_2": "the setting heard as clip 2",
    "clip_x": "for ABX: the clip that X was",
    "answer": "1, 2 or none (no difference); blank if the pair was not judged",
    "chosen": "the setting that was chosen",
    "correct": "for ABX: yes or no",
    "strength": "1 (slightly) to 3 (very much)",
    "note": "your note",
    "seconds_1": "seconds listened to clip 1",
    "seconds_2": "to clip 2",
    "seconds_x": "to X",
    "gain_1_db": "change of level of clip 1 in dB",
    "gain_2_db": "of clip 2",
    "time": "time of the vote (UTC)",
    "text": "the script",
    "listener": "of several listeners: the number of this one, as in the result",
}
EXPLANATION = "; ".join(f"{name}: {meaning}" for name, meaning in COLUMNS.items())
# The answers of a vote as the page numbers its clips; the record has letters.
CLIP_NUMBERS = {"A": "1", "B": "2", "none": "none"}


def write_table(plan: ComparisonPlan, votes: Mapping[str, Vote], path: Path) -> Path:
    """Write the table of one listener as CSV, completely or not at all: every pair has a row.

    Raises RunError if that fails.
    """
    return _write(path, _rows(plan, votes))


def write_tables(
    heard: Sequence[tuple[str, ComparisonPlan, Mapping[str, Vote]]], path: Path
) -> Path:
    """Write the votes of several listeners to one table. heard: for each the name, the plan as they
    heard it, and their votes. Raises RunError if that fails."""
    return _write(
        path,
        [
            [*row[:-1], name]
            for name, plan, votes in heard
            for row, trial in zip(_rows(plan, votes), plan.trials, strict=True)
            if trial.id in votes
        ],
    )


def _rows(plan: ComparisonPlan, votes: Mapping[str, Vote]) -> list[list[object]]:
    return [list(_row(plan, trial, order, votes)) for order, trial in enumerate(plan.trials, 1)]


def _write(path: Path, rows: Sequence[Sequence[object]]) -> Path:
    try:
        with write_atomic(path) as part:
            part.write_bytes(csv_lines([list(COLUMNS), *rows]))
    except OSError as error:
        reason = error.strerror or error
        raise RunError(f"{path.name} could not be written: {reason}. Free some space.") from error
    return path


def _row(
    plan: ComparisonPlan, trial: Trial, order: int, votes: Mapping[str, Vote]
) -> Iterator[object]:
    """The values of one pair, in the order of COLUMNS."""
    names, secret = setting_names(plan.settings), plan.secrets[trial.id]
    is_abx = plan.kind == ComparisonKind.ABX
    vote = votes.get(trial.id)
    yield from (order, trial.script + 1, trial.seed)
    yield from (names[secret.setting_of(trial, clip)] for clip in (0, 1))
    yield secret.x + 1 if is_abx else ""
    if vote is None:
        yield from [""] * 11
    else:
        chosen = names[NAMES.index(vote.winner)] if vote.winner else ""
        yield from (CLIP_NUMBERS[vote.vote], chosen, vote.correct, vote.strength, vote.note)
        yield from (vote.seconds_a, vote.seconds_b, vote.seconds_x if is_abx else "")
        yield from (vote.gain_a_db, vote.gain_b_db, vote.time)
    yield plan.scripts[trial.script]
    yield ""
