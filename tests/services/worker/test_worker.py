"""A worker: how its end is explained, and that it ends and pauses when it has to."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from dia_demo.errors import InputError, RunError
from dia_demo.files import ROOT
from dia_demo.services.worker.messages import JobProgress
from dia_demo.services.worker.worker import JobStopped, run_job
from dia_demo.task import Task

SOON = 60.0


@dataclass(frozen=True)
class Result:
    """What the work of these tests gives."""

    value: object


def drain(generator) -> tuple[list, dict]:
    task = Task(generator)
    return list(task), task.result


# The work of the workers. Each imports this module.


def fail(job, report_progress):
    if isinstance(job, Exception):
        raise job
    if isinstance(job, int):
        os.kill(os.getpid(), job)
    os._exit(3)


def sleep(job, report_progress):
    time.sleep(600)


def report_slowly(job, report_progress):
    time.sleep(2.2)
    report_progress("Loading", 0.5, a=1)
    time.sleep(2.2)
    return Result(job)


def count(job, report_progress):
    for number in range(3):
        time.sleep(0.2)
        report_progress("Counting", 0.1 * number)
    return Result(job)


def main_file(job, report_progress):
    print("what the work prints is not the program's output")
    return Result([getattr(sys.modules["__main__"], "__file__", None), psutil.Process().nice()])


@pytest.mark.parametrize(
    ("job", "words"),
    [
        (InputError("The script is empty."), "^The script is empty.$"),
        (KeyError("lost\nkey"), "^KeyError: 'lost"),
        (9, "^its process was killed, most likely because memory ran out$"),
        (15, "^its process was terminated by SIGTERM$"),
        (None, "^its process ended with code 3"),
    ],
)
def test_how_a_worker_failed_is_said(job, words):
    with pytest.raises(RunError, match=words):
        drain(run_job(fail, job, threading.Event()))


def test_a_stop_ends_the_worker_at_once():
    cancel = threading.Event()
    threading.Timer(0.5, cancel.set).start()
    began = time.monotonic()
    with pytest.raises(JobStopped):
        drain(run_job(sleep, None, cancel))
    assert time.monotonic() - began < SOON
    with pytest.raises(RunError, match="reported nothing"):
        drain(run_job(sleep, None, threading.Event(), silence_limit=0.3))


@pytest.mark.slow
def test_a_silent_worker_is_reported_every_second():
    """It imports and compiles for a long time before it has anything to report."""
    steps, result = drain(run_job(report_slowly, "x", threading.Event()))
    assert steps[0] == JobProgress("Starting", 0.0) and result == {"value": "x"}
    for doing in ("Starting", "Loading"):
        seconds = [step.seconds for step in steps if step.doing == doing]
        assert seconds == sorted(set(seconds)) and seconds[0] == 0 and seconds[-1] >= 2
    assert [step.results for step in steps if step.results] == [{"a": 1}], "results come once"


def test_a_paused_worker_waits_at_its_next_report():
    is_paused = threading.Event()
    is_paused.set()
    paused_at, task = set(), Task(run_job(count, 1, threading.Event(), False, is_paused.is_set))
    for report in task:
        if is_paused.is_set():
            paused_at.add(report.fraction)
        if report.doing == "Counting" and report.seconds >= 1:
            is_paused.clear()
    assert paused_at == {0.0} and not is_paused.is_set() and task.result == {"value": 1}


def test_a_worker_does_not_run_the_programs_main_file(capfd):
    """It would load the page, or run a user's script again."""
    main = sys.modules["__main__"]
    _, result = drain(run_job(main_file, None, threading.Event(), low_priority=True))
    assert result["value"][0] != getattr(main, "__file__", "none")
    assert result["value"][1] > 0 and sys.modules["__main__"] is main
    assert "program's output" not in capfd.readouterr().out


@pytest.mark.slow
def test_a_worker_ends_with_a_killed_program(tmp_path: Path):
    script = (
        "import os, threading\n"
        "from dia_demo.services.worker.worker import run_job\n"
        "from tests.services.worker.test_worker import write_pid\n"
        f"work = run_job(write_pid, {str(tmp_path / 'pid')!r}, threading.Event())\n"
        "while next(work).doing == 'Starting':\n    pass\n"
        "os.kill(os.getpid(), 9)\n"
    )
    subprocess.run([sys.executable, "-c", script], cwd=ROOT, check=False, timeout=SOON)
    worker = int((tmp_path / "pid").read_text())
    for _ in range(int(SOON * 10)):
        if not psutil.pid_exists(worker) or psutil.Process(worker).status() == "zombie":
            return
        time.sleep(0.1)
    raise AssertionError("the worker lives on")


def write_pid(job, report_progress):
    Path(job).write_text(str(os.getpid()))
    report_progress("Waiting", 0.0)
    time.sleep(600)
