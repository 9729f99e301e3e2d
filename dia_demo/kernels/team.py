"""Threads that run one compiled function together."""

from __future__ import annotations

import ctypes
import os
import queue
import sys
import threading
from collections.abc import Callable
from functools import cache

import numpy as np


class Team:
    """`size` threads, the caller's among them. One run at a time.

    The function must end only after all members have met (scalars.meet), must not raise, and must
    release the GIL: then no one waits for the others here.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self._barrier = np.zeros(16, np.int64)  # A cache line of its own.
        self._process = None
        self._lock = threading.Lock()

    @property
    def barrier(self) -> int:
        """Address for scalars.meet."""
        return self._barrier.ctypes.data

    def run(self, function: Callable, *arguments: object) -> None:
        """function(member, *arguments) in every member at once."""
        with self._lock:
            self._start()
            for member in range(1, self.size):
                self._work[member].put((function, arguments))
            function(0, *arguments)

    def _start(self) -> None:
        """Threads do not outlive a fork: a new process starts its own."""
        if self._process == os.getpid():
            return
        self._process = os.getpid()
        self._work = [queue.SimpleQueue() for _ in range(self.size)]
        for member in range(1, self.size):
            threading.Thread(
                target=self._serve, args=(member, self._work[member]), daemon=True
            ).start()

    @staticmethod
    def _serve(member: int, work: queue.SimpleQueue) -> None:
        while True:
            function, arguments = work.get()
            function(member, *arguments)
            del function, arguments


@cache
def team_of(size: int) -> Team:
    """The process's team of that many threads."""
    return Team(size)


@cache
def let_others() -> int:
    """Address of the function that gives the core to another thread, without arguments."""
    if sys.platform == "win32":
        function = ctypes.windll.kernel32.SwitchToThread
    else:
        function = ctypes.CDLL(None).sched_yield
    return ctypes.cast(function, ctypes.c_void_p).value
