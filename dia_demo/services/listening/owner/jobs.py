"""Panel tests that programs order: their takes are made in the background, one order of a program
after the other, and the link works once all of them are there. An order is kept beside its takes
until then, so that it goes on after a restart.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from contextlib import closing, suppress
from dataclasses import dataclass
from enum import StrEnum

from dia_demo.errors import DiaDemoError, InputError
from dia_demo.services.listening.owner.options import PanelOptions
from dia_demo.services.listening.owner.tests import OwnTests, items_of
from dia_demo.services.listening.panel.plan import PanelPlan
from dia_demo.services.listening.panel.plan_file import read_panel_plan, write_panel_plan
from dia_demo.services.listening.panel.stimuli import from_comparison
from dia_demo.services.listening.plan.names import setting_names
from dia_demo.services.listening.plan.plan import ComparisonPlan
from dia_demo.services.listening.render import RenderEnded

# Orders in memory; a test that is made is read from the disk.
MOST_JOBS = 200
STOPPED = "The program is closing: the order goes on when you ask for it after the restart."


class JobState(StrEnum):
    """The state of an order: its takes are being made, it failed, or its test can be taken."""

    MAKING = "making"
    FAILED = "failed"
    READY = "ready"


@dataclass
class TestJob:
    """An order. pairs_made of pairs: how far it is; message: why it failed."""

    __test__ = False  # for pytest

    plan: PanelPlan
    pairs: int
    pairs_made: int = 0
    state: JobState = JobState.MAKING
    message: str = ""


class TestJobs:
    """The orders of all programs. Safe to use from several threads."""

    __test__ = False  # for pytest

    def __init__(self, own: OwnTests) -> None:
        self.own = own
        self._jobs: OrderedDict[tuple[str, str], TestJob] = OrderedDict()
        self._lock = threading.Lock()

    def begin(
        self, key: str, plan: ComparisonPlan, options: PanelOptions, cancel: threading.Event
    ) -> TestJob:
        """Order a test of the takes of a plan. Raises InputError for what cannot be made, and while
        an order of the same key is being made."""
        with self._lock:
            if any(
                owner == key and job.state is JobState.MAKING
                for (owner, _), job in self._jobs.items()
            ):
                raise InputError("Your last test is still being made: wait for it, then try again.")
            panel = options.plan(setting_names(plan.settings), items_of(plan))
            comparisons = self.own.comparisons
            identity = comparisons.create(key, plan)
            try:
                write_panel_plan(comparisons.get(key, identity).folder, panel)
            except DiaDemoError:
                comparisons.delete(key, identity)
                raise
            return self._start(key, identity, TestJob(panel, len(plan.trials)), cancel)

    def _start(self, key: str, identity: str, job: TestJob, cancel: threading.Event) -> TestJob:
        self._jobs[key, job.plan.id] = job
        while len(self._jobs) > MOST_JOBS:
            self._jobs.popitem(last=False)
        self.own.comparisons.synthesis.run_in_background(
            lambda: self._make(key, identity, job, cancel), cancel
        )
        return job

    def find(self, key: str, test: str) -> TestJob | None:
        """The order of a test, None for one that is made or unknown. One that was being made when
        the program ended goes on."""
        with self._lock:
            if job := self._jobs.get((key, test)):
                return job
            with suppress(InputError):
                self.own.panels.get(key, test)
                return None
            for identity, comparison in self.own.comparisons.list(key):
                with suppress(InputError):  # Most comparisons are no orders.
                    panel = read_panel_plan(comparison.folder, has_clips=False)
                    if panel.id == test:
                        job = TestJob(panel, len(comparison.plan.trials))
                        return self._start(key, identity, job, threading.Event())
            return None

    def _make(self, key: str, identity: str, job: TestJob, cancel: threading.Event) -> None:
        state, message = JobState.FAILED, "The test could not be made."
        try:
            self._make_takes(key, identity, job, cancel)
            source = from_comparison(self.own.comparisons.get(key, identity))
            self.own.panels.create(key, job.plan, source)
            state, message = JobState.READY, ""
        except DiaDemoError as error:
            message = str(error)
        finally:
            # The test has its own clips. An order that the program's end stopped goes on later.
            if state is JobState.READY or not cancel.is_set():
                self.own.comparisons.delete(key, identity)
            job.message, job.state = message, state

    def _make_takes(self, key: str, identity: str, job: TestJob, cancel: threading.Event) -> None:
        with closing(self.own.comparisons.run(key, identity, cancel)) as events:
            for event in events:
                job.pairs_made = event.pairs_made
                if isinstance(event, RenderEnded):
                    _check_ended(event)


def _check_ended(ended: RenderEnded) -> None:
    """Raise InputError unless all pairs are there."""
    if ended.failures:
        raise InputError(f"A take failed: {ended.failures[0]}")
    if ended.pairs_made < ended.pairs:
        raise InputError(STOPPED)
