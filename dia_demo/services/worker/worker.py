"""The program's side: starts a worker for one job, and listens to it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from contextlib import suppress
from time import monotonic
from typing import Any, TypeVar

from dia_demo.errors import RunError
from dia_demo.machine.child_process import ChildEnded, ChildProcess, Failure
from dia_demo.services.worker.child import serve
from dia_demo.services.worker.messages import Assignment, Done, JobProgress, ReportProgress

Job = TypeVar("Job")

POLL_SECONDS = 0.1
# Longer than any step or the loading of any tensor.
SILENCE_LIMIT = 300.0


class JobStopped(Exception):
    """The job was stopped on request."""


def run_job(
    work: Callable[[Job, ReportProgress], Any],
    job: Job,
    cancel: threading.Event,
    low_priority: bool = False,
    must_pause: Callable[[], bool] = lambda: False,
    silence_limit: float = SILENCE_LIMIT,
) -> Generator[JobProgress, None, dict[str, Any]]:
    """Run `work(job, report_progress)` in a new interpreter: yields its reports, returns the fields
    of its result.

    work: a function of a module. low_priority: let all other processes go first. must_pause:
    whether the worker has to wait now, asked several times a second.

    Raises RunError with the worker's message or exit status, and JobStopped if `cancel` is set.
    Closing the generator ends the worker.
    """
    worker = ChildProcess(serve, low_priority)
    try:
        worker.send(Assignment(work, job))
        return (yield from _listen(worker, cancel, must_pause, silence_limit))
    except ChildEnded as end:
        raise RunError(_describe(end)) from end
    finally:
        worker.close()


def _listen(
    worker: ChildProcess,
    cancel: threading.Event,
    must_pause: Callable[[], bool],
    silence_limit: float,
) -> Generator[JobProgress, None, dict[str, Any]]:
    """The worker's reports until its result, and one for each second without a report."""
    silent, since, step, is_paused = 0.0, monotonic(), JobProgress("Starting", 0.0), False
    yield step
    while True:
        if cancel.is_set():
            raise JobStopped
        if must_pause() != is_paused:
            is_paused = not is_paused
            with suppress(ChildEnded):  # Its result is read below.
                worker.send(is_paused)
        if not worker.poll(POLL_SECONDS):
            silent = 0.0 if is_paused else silent + POLL_SECONDS
            if silent >= silence_limit:
                raise RunError(f"it reported nothing for {silence_limit:.0f} s and was stopped")
            seconds = int(monotonic() - since)
            if seconds > step.seconds:
                step = step._replace(results={}, seconds=seconds)
                yield step
            continue
        silent = 0.0
        match worker.receive():
            case Done(result):
                return result
            case Failure(message):
                raise RunError(message)
            case JobProgress() as report:
                if report.doing != step.doing:
                    since = monotonic()
                step = report._replace(seconds=int(monotonic() - since))
                yield step


def _describe(end: ChildEnded) -> str:
    """How a worker without a result ended."""
    if end.signal == "SIGKILL":
        return "its process was killed, most likely because memory ran out"
    if end.signal:
        return f"its process was terminated by {end.signal}"
    return f"its process ended with code {end.code}; the log of the program may say why"
