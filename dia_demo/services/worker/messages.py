"""What a program and its worker send each other, pickled.

The program sends an Assignment, and then whether the worker has to pause. The worker answers with
JobProgress during the work, then with Done or a Failure (machine/child_process.py).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol


class ReportProgress(Protocol):
    """Reports a job's progress: the current activity, the fraction done, and new results."""

    def __call__(self, doing: str, fraction: float, /, **results: object) -> None: ...


@dataclass(frozen=True)
class Assignment:
    """work(job, report_progress) returns the dataclass of its results."""

    work: Callable[[Any, ReportProgress], Any]
    job: Any


class JobProgress(NamedTuple):
    """A progress report of a job. seconds: since the activity `doing` began.

    Results are sent as soon as they are known, so that a later failure does not lose them.
    """

    doing: str
    fraction: float
    results: dict[str, Any] = {}
    seconds: int = 0


@dataclass(frozen=True)
class Done:
    """The fields of the job's result."""

    result: dict[str, Any]
