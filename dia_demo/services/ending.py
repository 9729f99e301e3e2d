"""The end of the program: nothing may compute any more when the interpreter goes.

A thread that is inside torch at that moment aborts the whole program.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator
from contextlib import closing
from typing import TypeVar

from dia_demo.errors import RunError

Event = TypeVar("Event")

# How long a step, or the warm-up's compiler, is waited for.
END_SECONDS = 20.0


class Ending:
    """Lets work go on step by step until the end has come."""

    def __init__(self) -> None:
        self._come = threading.Event()
        self._computing = threading.Lock()
        self._started: dict[threading.Thread, threading.Event] = {}

    @property
    def has_come(self) -> bool:
        return self._come.is_set()

    def start(self, work: Callable[[], None], cancel: threading.Event) -> threading.Thread:
        """Run `work` in a thread of its own. At the end `cancel` is set, and the thread joined."""

        def run() -> None:
            try:
                work()
            finally:
                del self._started[thread]

        thread = threading.Thread(target=run, name="take", daemon=True)
        self._started[thread] = cancel
        try:
            thread.start()
        except RuntimeError as error:
            del self._started[thread]
            raise RunError("Too many runs at once on this machine. Try again soon.") from error
        return thread

    def steps(self, work: Generator[Event, None, None]) -> Generator[Event, None, None]:
        """The events of `work`, each computed by one thread at a time. RunError at the end."""
        with closing(work):
            while True:
                with self._computing:
                    if self.has_come:
                        raise RunError("The program is shutting down, so this take was cancelled.")
                    event = next(work, None)
                if event is None:
                    return
                yield event

    def come(self, thread: threading.Thread | None) -> None:
        """End all work, and wait until no step is being computed and `thread` has ended.

        What was started in threads is cancelled first, so that it can keep what it has made.
        """
        self._cancel_started()
        self._come.set()
        if thread is not None:
            thread.join(END_SECONDS)
        # Whoever comes after the step that is being computed sees that the end has come.
        if self._computing.acquire(timeout=END_SECONDS):
            self._computing.release()

    def _cancel_started(self) -> None:
        started = list(self._started.items())
        for _, cancel in started:
            cancel.set()
        latest = time.monotonic() + END_SECONDS
        for thread, _ in started:
            thread.join(max(0.0, latest - time.monotonic()))
