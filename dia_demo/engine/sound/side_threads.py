"""Threads that decode audio beside the steps, on the cores that the steps leave free.

The steps of a small model use one thread, and its codec needs as long as they do.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from itertools import count
from math import inf

from dia_demo.machine.background import Background

# Pieces of work that a thread has at most, the one that it does included. With one alone it would
# wait for the next one while a step runs.
MOST_UNDONE = 4


class SideThreads:
    """So many threads. The work of one key is done by one of them, in the order of the deadlines,
    which never become earlier for a key, and where they are the same, in that of submission."""

    def __init__(self, number: int) -> None:
        self._threads = [_SideThread() for _ in range(number)]

    def is_free(self, key: int) -> bool:
        """Whether work of this key would begin at once; never without threads."""
        return bool(self._threads) and self._thread_for(key).is_idle

    def has_room(self, key: int) -> bool:
        """Whether work of this key would begin soon; never without threads."""
        return bool(self._threads) and self._thread_for(key).has_room

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

    def __init__(self) -> None:
        # With their deadlines, and numbers in the order of submission; None: the end.
        self._work: queue.PriorityQueue[tuple[float, int, Callable[[], None] | None]]
        self._work, self._numbers = queue.PriorityQueue(), count()
        self._undone = 0
        self._lock = threading.Lock()
        self._thread: Background | None = None

    @property
    def is_idle(self) -> bool:
        return self._undone == 0

    @property
    def has_room(self) -> bool:
        return self._undone < MOST_UNDONE

    def submit(self, work: Callable[[], None], deadline: float) -> None:
        with self._lock:
            self._undone += 1
        if self._thread is None:
            self._thread = Background("decoder", self._run).start()
        self._work.put((deadline, next(self._numbers), work))

    def close(self) -> None:
        if self._thread is not None:
            self._work.put((inf, next(self._numbers), None))
            self._thread.join()
            self._thread = None

    def _run(self) -> None:
        while (work := self._work.get()[2]) is not None:
            work()
            del work  # The next may be long in coming.
            with self._lock:
                self._undone -= 1
