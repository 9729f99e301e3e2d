"""Shutdown of the program: no thread may be computing when the interpreter exits.

A thread that is inside torch at that moment aborts the process.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager
from typing import TypeVar

from dia_demo.errors import RunError
from dia_demo.machine.background import Background, stop_all
from dia_demo.task import Task

Event = TypeVar("Event")
Result = TypeVar("Result")

# The longest time to wait for a step, or for the warm-up's compiler.
END_SECONDS = 20.0


class Shutdown:
    """Runs work step by step until the program shuts down."""

    def __init__(self) -> None:
        self._begun = threading.Event()
        self._computing = threading.Lock()
        self._started: set[Background] = set()

    @property
    def has_begun(self) -> bool:
        return self._begun.is_set()

    def start(self, work: Callable[[], None], cancel: threading.Event) -> None:
        """Run `work` in a new thread. The shutdown sets `cancel` and joins the thread."""

        def run() -> None:
            try:
                work()
            finally:
                self._started.discard(take)

        take = Background("take", run, cancel)
        self._started.add(take)
        try:
            take.start()
        except RunError:
            self._started.discard(take)
            raise

    def check(self) -> None:
        """Raise RunError once the shutdown has begun."""
        if self.has_begun:
            raise RunError(
                "The program is shutting down, so this take was cancelled. Generate it again after "
                "the restart."
            )

    @contextmanager
    def step(self) -> Iterator[None]:
        """Run the block while no other thread is in a step; the shutdown waits for its end. Raises
        RunError once the shutdown has begun."""
        with self._computing:
            self.check()
            yield

    def steps(self, work: Generator[Event, None, Result]) -> Generator[Event, None, Result]:
        """The events of `work` and its result, each computed in a step."""
        task = Task(work)
        with closing(iter(task)) as events:
            while True:
                with self.step():
                    event = next(events, None)
                if event is None:
                    return task.result
                yield event

    def begin(self, warm_up: Background) -> None:
        """End all work, and wait until no step is being computed and the warm-up has ended.

        Work in threads is cancelled first, so that it can save what it has generated.
        """
        stop_all(list(self._started), END_SECONDS)
        self._begun.set()
        warm_up.join(END_SECONDS)
        # Waits for the step that is being computed; no other one begins.
        if self._computing.acquire(timeout=END_SECONDS):
            self._computing.release()
