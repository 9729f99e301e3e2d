"""Takes for programs, which get them when they are complete: one, or several made together."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass

from dia_demo.engine.events import Failed, Progress, Started
from dia_demo.errors import RunError
from dia_demo.services.dialogue.events import ChunkReport
from dia_demo.services.dialogue.single_take import report_of_take, with_words
from dia_demo.services.synthesis import Synthesis
from dia_demo.services.take import Request, Take, finished_result

# What is told of a run: the seconds of sound that are made, and how many are expected.
Note = Callable[[float, float], None]

STOPPED = "The run was stopped before there was any speech. Send the request again."


@dataclass(frozen=True)
class MadeTake:
    """A complete take, or one that was stopped. row: which request it is of. notes: on its start.
    verdict: what `say --json` says of it."""

    row: int
    take: Take
    notes: tuple[str, ...]
    verdict: ChunkReport

    def report(self) -> dict:
        """The figures of the take for programs, with everything there is to remark."""
        report = self.take.report()
        return report | {"remarks": [*self.notes, *report["remarks"]]}


@dataclass(frozen=True)
class MadeTakes:
    """The takes of several requests that could be made, in order. problems: why others could not,
    one sentence each."""

    made: tuple[MadeTake, ...]
    problems: tuple[str, ...]


def tell_nobody(done: float, expected: float) -> None:
    """The note of a run that nobody watches."""


def make_takes(
    synthesis: Synthesis,
    requests: Sequence[Request],
    cancel: threading.Event,
    note: Note = tell_nobody,
) -> MadeTakes:
    """Make the takes of requests with one runtime together.

    Raises InputError for what cannot be made, RunError if there is no take at the end.
    """
    notes: dict[int, tuple[str, ...]] = {}
    seconds: dict[int, float] = {}
    made: list[MadeTake] = []
    problems: list[str] = []
    with closing(synthesis.stream_together(requests, cancel, in_int8_meanwhile=True)) as events:
        for event in events:
            row = event.row
            if isinstance(event, Started):
                notes[row] = event.notes
            elif isinstance(event, Progress):
                seconds[row] = event.audio_seconds
                note(sum(seconds.values()), event.expected_seconds * len(requests))
            elif isinstance(event, Failed):
                problems.append(event.message)
            elif result := finished_result(event):
                try:
                    take = with_words(synthesis.take(requests[row], result), result)
                except RunError as error:
                    problems.append(str(error))
                    continue
                verdict = report_of_take(requests[row], result)
                made.append(MadeTake(row, take, notes.get(row, ()), verdict))
    if not made:
        raise RunError(problems[0] if problems else STOPPED)
    made.sort(key=lambda one: one.row)
    return MadeTakes(tuple(made), tuple(dict.fromkeys(problems)))


def make_take(
    synthesis: Synthesis, request: Request, cancel: threading.Event, note: Note = tell_nobody
) -> MadeTake:
    """Make one take; see `make_takes`."""
    return make_takes(synthesis, [request], cancel, note).made[0]
