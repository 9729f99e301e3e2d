"""The quick measurement in the background: runs while nobody generates, and yields to a take."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Generator
from contextlib import closing
from typing import Any

from dia_demo.errors import RunError
from dia_demo.machine import system
from dia_demo.machine.background import Background
from dia_demo.services.measurements.types import Job, JobKind, QuickResult
from dia_demo.services.speed import quick
from dia_demo.services.speed.machine_speed import MachineSpeed
from dia_demo.services.worker.messages import JobProgress
from dia_demo.services.worker.worker import JobStopped, run_job
from dia_demo.task import Task

# It begins after the first number of seconds without a take and is cancelled after the second. A
# machine that was not idle within the third is measured only by its takes.
IDLE_SECONDS, LONGEST_SECONDS, MOST_PATIENCE = 2.0, 120.0, 3600.0
# If other programs disturb it, it is repeated after a pause, and the best result is kept.
ATTEMPTS, PAUSE_SECONDS = 4, 20.0
# With less free memory no second process is started.
LEAST_MEMORY = 800_000_000

Worker = Callable[[Job, threading.Event], Generator[JobProgress, None, dict[str, Any]]]

log = logging.getLogger(__name__)


def run_quick(job: Job, cancel: threading.Event) -> Generator[JobProgress, None, dict[str, Any]]:
    """The quick measurement in its own process, which gives way to everything else."""
    return run_job(quick.run_job, job, cancel, low_priority=True)


class BackgroundMeasurement:
    """Measures a machine once, in a thread of its own.

    busy: set while anybody generates, which interrupts the measurement until later.
    """

    def __init__(
        self, speed: MachineSpeed, busy: threading.Event, worker: Worker = run_quick
    ) -> None:
        self._speed, self._busy, self._worker = speed, busy, worker
        self._closed = threading.Event()
        self._background = Background("machine speed", self._work, self._closed)
        self._after: Background | None = None

    def start(self, after: Background | None = None) -> None:
        """Measure after `after` is done, unless there is an undisturbed result."""
        self._speed.keeps = True
        if self._speed.quick is None or not self._speed.quick.undisturbed:
            self._speed.measuring = True
            self._after = after
            self._background.start()

    def close(self) -> None:
        """Cancel the measurement; nothing is measured afterwards."""
        self._closed.set()
        self._busy.set()
        self._background.join(LONGEST_SECONDS)

    def _work(self) -> None:
        try:
            if self._after is not None:
                self._after.join()
            self._measure_until_undisturbed()
        except RunError as error:
            log.info("This machine's speed was not measured: %s", error)
        finally:
            self._speed.measuring = False

    def _measure_until_undisturbed(self) -> None:
        """Measure, and repeat while others disturb it. Raises RunError if that is impossible."""
        attempts, patience = 0, time.monotonic() + MOST_PATIENCE
        while attempts < ATTEMPTS and time.monotonic() < patience and not self._closed.is_set():
            if not self._is_idle():
                continue
            try:
                result = self._measure()
            except JobStopped:
                continue
            attempts += 1
            if result is not None:
                best = result.merge_best(self._speed.quick)
                self._speed.learn_quick(best)
                if best.undisturbed:
                    return
            self._closed.wait(PAUSE_SECONDS)

    def _is_idle(self) -> bool:
        """Whether nobody generates for IDLE_SECONDS."""
        return not self._closed.wait(IDLE_SECONDS) and not self._busy.is_set()

    def _measure(self) -> QuickResult | None:
        """One measurement, None if it takes too long. Raises JobStopped if interrupted, and
        RunError if nothing can be measured."""
        free = system.available_bytes()
        if free is not None and free < LEAST_MEMORY:
            raise RunError("there is too little free memory")
        job = Job(JobKind.QUICK, threads=self._speed.threads)
        deadline = time.monotonic() + LONGEST_SECONDS
        with closing(Task(self._worker(job, self._busy))) as work:
            for _ in work:
                if time.monotonic() > deadline:
                    return None
            return QuickResult(**work.result)
