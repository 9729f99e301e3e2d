"""Threads that decode audio beside the steps, on the cores that the steps leave free.

The steps of a small model use one thread, and its codec needs as long as they do.
"""

from __future__ import annotations

import heapq
import threading
from collections.abc import Callable
from itertools import count
from math import inf
from time import perf_counter

from dia_demo.engine.scheduler import LONGEST_BREAK_SECONDS
from dia_demo.machine.background import Background

# Pieces of work before another, the one that the thread does included, so that it does not wait for
# the next one while a step runs.
MOST_UNDONE = 4
# How often it is looked whether somebody still waits.
LOOK_SECONDS = 0.01


class SideThreads:
    """So many threads. The work of one key is done by one of them, in the order of the deadlines,
    which never become earlier for a key, and where they are the same, in that of submission.

    is_somebody_waiting: whether work without a deadline, for which nobody waits, is to leave the
    thread free for what comes next. It is not left for longer than LONGEST_BREAK_SECONDS.
    """

    def __init__(
        self, number: int, is_somebody_waiting: Callable[[], bool] = lambda: False
    ) -> None:
        self.number = number
        self._threads = [_SideThread(is_somebody_waiting) for _ in range(number)]

    def is_free(self, key: int) -> bool:
        """Whether work of this key would begin at once; never without threads."""
        return bool(self._threads) and self._thread_for(key).is_idle

    def has_room(self, key: int, deadline: float = inf) -> bool:
        """Whether work of this key with this deadline would begin soon; never without threads."""
        return bool(self._threads) and self._thread_for(key).has_room(deadline)

    def submit(self, key: int, work: Callable[[], None], deadline: float = inf) -> None:
        """Do this work before that of others with later deadlines. It must not raise."""
        self._thread_for(key).submit(work, deadline)

    def close(self) -> None:
        """Wait until everything that was submitted is done, and end the threads; the next work
        starts them again."""
        for thread in self._threads:
            thread.close()

    def _thread_for(self, key: int) -> _SideThread:
        return self._threads[key % len(self._threads)]


class _SideThread:
    """One thread, started with its first work."""

    def __init__(self, is_somebody_waiting: Callable[[], bool]) -> None:
        self._is_somebody_waiting = is_somebody_waiting
        # With their deadlines, and numbers in the order of submission; a heap.
        self._work: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = count()
        self._undone: list[float] = []  # The deadlines of all that is not done.
        self._changed = threading.Condition()
        self._is_closing = False
        self._thread: Background | None = None

    @property
    def is_idle(self) -> bool:
        return not self._undone

    def has_room(self, deadline: float) -> bool:
        with self._changed:
            return sum(each <= deadline for each in self._undone) < MOST_UNDONE

    def submit(self, work: Callable[[], None], deadline: float) -> None:
        with self._changed:
            self._undone.append(deadline)
            heapq.heappush(self._work, (deadline, next(self._numbers), work))
            self._changed.notify()
        if self._thread is None:
            self._thread = Background("decoder", self._run).start()

    def close(self) -> None:
        if self._thread is not None:
            with self._changed:
                self._is_closing = True
                self._changed.notify()
            self._thread.join()
            self._thread, self._is_closing = None, False

    def _run(self) -> None:
        rested_since = perf_counter()
        while self._wait_for_work(rested_since):
            with self._changed:
                deadline, _, work = heapq.heappop(self._work)
            work()
            del work  # The next may be long in coming.
            if deadline == inf:
                rested_since = perf_counter()
            with self._changed:
                self._undone.remove(deadline)

    def _wait_for_work(self, rested_since: float) -> bool:
        """Wait until there is work that may be done; False once it is closed and all is done.
        rested_since: when work without a deadline was done."""
        with self._changed:
            while True:
                if not self._work:
                    if self._is_closing:
                        return False
                    self._changed.wait()
                elif (
                    self._work[0][0] < inf
                    or self._is_closing
                    or perf_counter() - rested_since > LONGEST_BREAK_SECONDS
                    or not self._is_somebody_waiting()
                ):
                    return True
                else:
                    self._changed.wait(LOOK_SECONDS)
