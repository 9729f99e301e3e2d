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

# Index of the barrier's int64 that releases all who wait (scalars.meet).
BROKEN = 2


class Team:
    """`size` threads, the caller's among them. One run at a time.

    The function must end only after all members have met (scalars.meet) and must release the GIL:
    then no one waits for the others here. A member that raises breaks the barrier, so that the
    others end as well, and its exception is raised in the caller; the team can be used again.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self._barrier = np.zeros(16, np.int64)  # A cache line of its own.
        self._process = None
        self._lock = threading.Lock()
        self._errors: list[BaseException] = []

    @property
    def barrier(self) -> int:
        """Address for scalars.meet."""
        return self._barrier.ctypes.data

    def run(self, function: Callable, *arguments: object) -> None:
        """function(member, *arguments) in every member at once; raises what a member raised."""
        with self._lock:
            self._start()
            _compile(function, (0, *arguments))
            for member in range(1, self.size):
                self._work[member].put((function, arguments))
            try:
                function(0, *arguments)
            except BaseException as error:
                self._break_barrier(error)
            if self._errors:
                raise self._recover()

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

    def _serve(self, member: int, work: queue.SimpleQueue) -> None:
        while True:
            function, arguments = work.get()
            try:
                function(member, *arguments)
            except BaseException as error:
                self._break_barrier(error)
            del function, arguments

    def _break_barrier(self, error: BaseException) -> None:
        """Let every member that waits, or will wait, go on to its end."""
        self._errors.append(error)
        self._barrier[BROKEN] = 1

    def _recover(self) -> BaseException:
        """The first error, once all members are idle and the barrier is whole again."""
        for work in self._work[1:]:
            idle = threading.Event()
            work.put((lambda _, idle=idle: idle.set(), ()))
            idle.wait()
        self._barrier[:] = 0
        first, self._errors = self._errors[0], []
        return first


def _compile(function: Callable, arguments: tuple) -> None:
    """Compile a numba function for these arguments, unless that was done before.

    In the caller's thread: what goes wrong is raised here, before any member runs.
    """
    if hasattr(function, "signatures") and not function.signatures:
        from numba import typeof

        function.compile(tuple(typeof(argument) for argument in arguments))


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
