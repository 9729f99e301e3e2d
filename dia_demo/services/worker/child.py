"""The worker's side: does its assignment, reports its progress, and pauses on request."""

from __future__ import annotations

import os
import signal
import sys
import threading
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from multiprocessing.connection import Connection

from dia_demo.errors import DiaDemoError
from dia_demo.machine import system
from dia_demo.machine.background import Background
from dia_demo.machine.child_process import Failure
from dia_demo.services.worker.messages import Assignment, Done, JobProgress

LONGEST_MESSAGE = 300


def serve(pipe: Connection, low_priority: bool) -> None:
    """Run the assignment that arrives through the pipe. low_priority: let all other processes go
    first."""
    if low_priority:
        system.lower_priority()
    # The program handles Ctrl-C; what the work prints must not be taken for the program's output.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    with suppress(EOFError, BrokenPipeError):  # The program has ended.
        pipe.send(_outcome(pipe))


def _outcome(pipe: Connection) -> Done | Failure:
    reached, go_on = 0.0, threading.Event()
    go_on.set()

    def report_progress(doing: str, fraction: float, /, **results: object) -> None:
        nonlocal reached
        reached = max(reached, fraction)  # Loading has stages, each from 0.
        pipe.send(JobProgress(doing, reached, results))
        go_on.wait()

    try:
        assignment: Assignment = pipe.recv()  # Imports the module of the work.
        Background("program", partial(_obey, pipe, go_on)).start()
        return Done(asdict(assignment.work(assignment.job, report_progress)))
    except DiaDemoError as error:
        return Failure(str(error))
    except MemoryError:
        return Failure("memory ran out")
    except (EOFError, BrokenPipeError):
        raise
    except Exception as error:
        message = " ".join(str(error).split())
        return Failure(f"{type(error).__name__}: {message[:LONGEST_MESSAGE]}")


def _obey(pipe: Connection, go_on: threading.Event) -> None:
    """Pause and go on as the program says, and end when it ends: killed, it ends no children."""
    with suppress(EOFError, OSError):
        while True:
            if pipe.recv():
                go_on.clear()
            else:
                go_on.set()
    os._exit(1)
