"""A pool of threads that run one compiled function together."""

from __future__ import annotations

import ctypes
import os
import queue
import sys
import threading
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

# Index of the barrier's int64 that marks it as broken (intrinsics.barrier_wait).
BROKEN = 2


class ThreadPool:
    """`size` threads, including the caller's. One run at a time, unless that is the only thread.

    The function must release the GIL and end with a barrier (intrinsics.barrier_wait), so that
    `run` need not wait for the other threads. A thread that raises breaks the barrier, so that the
    others end as well; its exception is raised in the caller, and the pool can be used again.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self._barrier = np.zeros(16, np.int64)  # 128 bytes: no other data in its cache line.
        self._process_id: int | None = None
        self._work: list[queue.SimpleQueue] = []
        self._lock = threading.Lock()
        self._errors: list[BaseException] = []

    @property
    def barrier(self) -> int:
        """Address for intrinsics.barrier_wait."""
        return self._barrier.ctypes.data

    def run(self, function: Callable, *arguments: object) -> None:
        """Call function(thread_index, *arguments) in all threads; raises the first exception."""
        if self.size == 1:  # Nothing is shared: a codec may run beside the steps.
            _compile(function, (0, *arguments))
            function(0, *arguments)
            return
        with self._lock:
            self._start()
            _compile(function, (0, *arguments))
            for thread_index in range(1, self.size):
                self._work[thread_index].put((function, arguments))
            try:
                function(0, *arguments)
            except BaseException as error:
                self._break_barrier(error)
            if self._errors:
                raise self._recover()

    def _start(self) -> None:
        """Start the threads, once in each process: they do not survive a fork."""
        if self._process_id == os.getpid():
            return
        self._process_id = os.getpid()
        self._work = [queue.SimpleQueue() for _ in range(self.size)]
        for thread_index in range(1, self.size):
            threading.Thread(
                target=self._serve, args=(thread_index, self._work[thread_index]), daemon=True
            ).start()

    def _serve(self, thread_index: int, work: queue.SimpleQueue) -> None:
        while True:
            function, arguments = work.get()
            try:
                function(thread_index, *arguments)
            except BaseException as error:
                self._break_barrier(error)
            del function, arguments

    def _break_barrier(self, error: BaseException) -> None:
        """Release all threads that wait or will wait, so that they end."""
        self._errors.append(error)
        self._barrier[BROKEN] = 1

    def _recover(self) -> BaseException:
        """The first error, once all threads are idle and the barrier is reset."""
        for work in self._work[1:]:
            idle = threading.Event()
            work.put((lambda _, idle=idle: idle.set(), ()))
            idle.wait()
        self._barrier[:] = 0
        first, self._errors = self._errors[0], []
        return first


def _compile(function: Any, arguments: tuple) -> None:
    """Compile a numba function for these arguments at its first run.

    In the caller's thread, so that an error is raised before any thread runs.
    """
    if hasattr(function, "overloads") and not function.overloads:
        from numba import typeof

        function.compile(tuple(typeof(argument) for argument in arguments))


@cache
def thread_pool(size: int) -> ThreadPool:
    """The process's pool of `size` threads."""
    return ThreadPool(size)


@cache
def yield_core() -> int:
    """Address of a system function without arguments that gives the core to another thread."""
    if sys.platform == "win32":
        function = ctypes.windll.kernel32.SwitchToThread
    else:
        function = ctypes.CDLL(None).sched_yield
    address = ctypes.cast(function, ctypes.c_void_p).value
    assert address is not None
    return address
