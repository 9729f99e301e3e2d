"""The warm-up: what the program does once at its start, in a thread, before the first take."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from dia_demo.engine.events import Loading
from dia_demo.engine.time_left import NOTHING, TimeLeft
from dia_demo.machine.background import Background
from dia_demo.services.speed.run_estimate import LoadingEstimate

POLL_SECONDS = 0.25
# Beside loading the model: trying the voice once, and compiling kernels where there are none yet.
TRYING, COMPILING = TimeLeft(1.0, 4.0), TimeLeft(5.0, 20.0)


class WarmUp:
    """Runs `work`, which yields what it does. A take that comes meanwhile waits and shows it."""

    def __init__(self, work: Callable[[], Iterator[Loading]]) -> None:
        self._work = work
        self._doing = Loading("Getting the voice ready", None)
        self._expected, self._began = NOTHING, 0.0
        self.background = Background("warm up", self._run)

    @property
    def is_running(self) -> bool:
        """Whether it has begun and is not done."""
        return self.background.is_running

    @property
    def left(self) -> TimeLeft:
        """The time until it is done."""
        if not self.is_running:
            return NOTHING
        estimate = LoadingEstimate(self._expected, self._began)
        estimate.note(self._doing.what, None, time.monotonic())
        return estimate.left or NOTHING

    def start(self, loading: TimeLeft | None = None, compiles: bool = False) -> None:
        """Call once. loading: that of its model, None if that cannot be loaded now; compiles:
        kernels are compiled before."""
        if loading is not None:
            self._expected = loading + TRYING + (COMPILING if compiles else NOTHING)
        self._began = time.monotonic()
        self.background.start()

    def wait(self) -> Iterator[Loading]:
        """What it is doing, several times a second until it is done."""
        while self.is_running:
            yield self._doing
            self.background.join(POLL_SECONDS)

    def _run(self) -> None:
        for doing in self._work():
            self._doing = doing
