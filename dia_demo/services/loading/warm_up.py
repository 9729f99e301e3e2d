"""The warm-up: what the program does once at its start, in a thread, before the first take."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator

from dia_demo.engine.events import Loading
from dia_demo.engine.time_left import TimeLeft

POLL_SECONDS = 0.25
# Until the voice is ready: kernels may have to be compiled.
EXPECTED = TimeLeft(6.0, 24.0)


class WarmUp:
    """Runs `work`, which yields what it is doing. A take that comes meanwhile waits and shows it.

    thread: None before the start. began: when that was, in monotonic seconds.
    """

    def __init__(self, work: Callable[[], Iterator[Loading]]) -> None:
        self._work = work
        self._doing = Loading("Getting the voice ready", None)
        self.began = 0.0
        self.thread: threading.Thread | None = None

    @property
    def is_running(self) -> bool:
        """Whether it has begun and is not done."""
        return self.thread is not None and self.thread.is_alive()

    def start(self) -> None:
        """Call once."""
        self.began = time.monotonic()
        self.thread = threading.Thread(target=self._run, name="warm up", daemon=True)
        self.thread.start()

    def wait(self) -> Iterator[Loading]:
        """What it is doing, several times a second until it is done."""
        while self.thread is not None and self.thread.is_alive():
            yield self._doing
            self.thread.join(POLL_SECONDS)

    def _run(self) -> None:
        for doing in self._work():
            self._doing = doing
