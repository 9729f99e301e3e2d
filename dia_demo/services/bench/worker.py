"""One job in its own process, whose memory and crashes do not affect the program.

The parent writes a job as one line of JSON; the child answers with lines of JSON: {"doing",
"fraction", "results"} during the work, then {"result"} or {"error"}. Results are sent as soon as
they are known, so that a later failure does not lose them. After the job, the parent may write
PAUSE and GO_ON: the child pauses at its next report.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Generator
from contextlib import suppress
from dataclasses import asdict
from time import monotonic, perf_counter
from typing import Any, NamedTuple

from dia_demo import system
from dia_demo.errors import DiaDemoError, RunError
from dia_demo.files import PACKAGE
from dia_demo.services.measurements.types import Job, JobKind, ReportProgress

POLL_SECONDS = 0.1
PAUSE, GO_ON = "p", "g"
# Longer than any step or the loading of any tensor.
SILENCE_LIMIT = 300.0
LONGEST_MESSAGE = 300


class JobProgress(NamedTuple):
    """A progress report of a job. seconds: since the activity `doing` began."""

    doing: str
    fraction: float
    results: dict[str, Any] = {}
    seconds: int = 0


class BenchStopped(Exception):
    """The benchmark was stopped on request."""


def run_child(
    job: Job,
    cancel: threading.Event,
    silence_limit: float = SILENCE_LIMIT,
    must_pause: Callable[[], bool] = lambda: False,
) -> Generator[JobProgress, None, dict]:
    """Run a job in a new interpreter: yields its reports, returns the fields of its result.

    must_pause: whether the child has to wait now, asked several times a second.

    Raises RunError with the child's message or exit status, and BenchStopped if `cancel` is set.
    Closing the generator ends the child.
    """
    with tempfile.TemporaryFile() as errors:
        child = _start(errors)
        assert child.stdin is not None and child.stdout is not None
        try:
            _write(child, json.dumps(asdict(job)) + "\n")
            return (yield from _listen(child, cancel, silence_limit, must_pause))
        except (BrokenPipeError, EOFError) as error:
            child.wait()
            raise RunError(_how(child.returncode, errors)) from error
        finally:
            child.kill()
            child.wait()
            child.stdout.close()
            with suppress(OSError):
                child.stdin.close()


def _start(errors) -> subprocess.Popen:
    path = os.pathsep.join(filter(None, [str(PACKAGE.parent), os.environ.get("PYTHONPATH")]))
    return subprocess.Popen(
        [sys.executable, "-m", __name__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=errors,
        text=True,
        env=os.environ | {"PYTHONPATH": path},
    )


def _listen(
    child: subprocess.Popen,
    cancel: threading.Event,
    silence_limit: float,
    must_pause: Callable[[], bool],
) -> Generator[JobProgress, None, dict]:
    """The child's reports until its result, and one for each second without a report.

    Raises EOFError if it ends without a result.
    """
    lines = _lines_of(child)
    silent, since, step = 0.0, monotonic(), JobProgress("Starting", 0.0)
    has_begun = is_paused = False
    yield step
    while True:
        if cancel.is_set():
            raise BenchStopped
        # Before its first report, the child may not have read its job.
        if has_begun and must_pause() != is_paused:
            is_paused = not is_paused
            with suppress(BrokenPipeError):  # It has just ended: its result is read below.
                _write(child, PAUSE if is_paused else GO_ON)
        try:
            line = lines.get(timeout=POLL_SECONDS)
        except queue.Empty:
            silent = 0.0 if is_paused else silent + POLL_SECONDS
            if silent >= silence_limit:
                raise RunError(
                    f"it printed nothing for {silence_limit:.0f} s and was stopped"
                ) from None
            seconds = int(monotonic() - since)
            if seconds > step.seconds:
                step = step._replace(results={}, seconds=seconds)
                yield step
            continue
        silent, has_begun = 0.0, True
        if not line:
            raise EOFError
        message = json.loads(line)
        if "error" in message:
            raise RunError(message["error"])
        if "result" in message:
            return message["result"]
        if message["doing"] != step.doing:
            since = monotonic()
        step = JobProgress(**message, seconds=int(monotonic() - since))
        yield step


def _write(child: subprocess.Popen, text: str) -> None:
    """To the child's input, which is left open: when it closes, the child ends."""
    assert child.stdin is not None
    child.stdin.write(text)
    child.stdin.flush()


def _lines_of(child: subprocess.Popen) -> queue.Queue[str]:
    """The lines of the child's output, read by a thread; "" at the end."""
    lines: queue.Queue[str] = queue.Queue()

    def read() -> None:
        for line in child.stdout or ():
            lines.put(line)
        lines.put("")

    threading.Thread(target=read, name="benchmark", daemon=True).start()
    return lines


def _how(code: int, errors) -> str:
    """How a child without a result ended, with the last line of its output."""
    if code < 0:
        name = signal.Signals(-code).name
        if name == "SIGKILL":
            return "its process was killed, most likely because the memory ran out"
        return f"its process was ended by {name}"
    errors.seek(0)
    lines = errors.read().decode(errors="replace").strip().splitlines()
    return f"its process ended with code {code}: {lines[-1] if lines else 'no output'}"


# In the child


def main() -> None:
    """Run the job on stdin; results are written to stdout, which nothing else may use."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())

    def send(**message: object) -> None:
        answers.write(json.dumps(message) + "\n")
        answers.flush()

    reached, go_on = 0.0, threading.Event()
    go_on.set()

    def report_progress(doing: str, fraction: float, /, **results: object) -> None:
        nonlocal reached
        reached = max(reached, fraction)  # Loading has stages, each from 0.
        send(doing=doing, fraction=reached, results=results)
        go_on.wait()

    line = sys.stdin.readline()
    threading.Thread(target=_obey_parent, args=(go_on,), name="parent", daemon=True).start()
    job = Job(**json.loads(line) | {"began": perf_counter()})
    if job.low_priority:
        system.lower_priority()
    try:
        send(result=asdict(_jobs()[job.kind](job, report_progress)))
    except DiaDemoError as error:
        send(error=str(error))
    except MemoryError:
        send(error="the memory ran out")
    except BrokenPipeError:  # The parent has ended.
        return
    except Exception as error:
        message = " ".join(str(error).split())
        send(error=f"{type(error).__name__}: {message[:LONGEST_MESSAGE]}")


def _obey_parent(go_on: threading.Event) -> None:
    """Pause and go on as the parent writes, and end when it ends: killed, it ends no children."""
    # Not with sys.stdin, whose lock would block the exit.
    while letter := os.read(sys.stdin.fileno(), 1).decode():
        if letter == PAUSE:
            go_on.clear()
        else:
            go_on.set()
    os._exit(1)


def _jobs() -> dict[str, Callable[[Job, ReportProgress], Any]]:
    """The functions of the jobs, imported here because the parent does not need them."""
    from dia_demo.services.calibration import job as calibration
    from dia_demo.services.measurements import codec, hardware, quality, steps
    from dia_demo.services.speed import quick

    return {
        JobKind.QUICK: quick.run_job,
        JobKind.HARDWARE: hardware.run_job,
        JobKind.CODEC: codec.run_job,
        JobKind.RUN: steps.run_job,
        JobKind.QUALITY: quality.run_job,
        JobKind.CALIBRATE: calibration.run_job,
    }


if __name__ == "__main__":
    main()
