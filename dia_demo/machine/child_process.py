"""A function in a new interpreter, whose memory and crashes do not affect the program.

The function gets one end of a pipe (multiprocessing.Connection), the program has the other.
"""

from __future__ import annotations

import multiprocessing
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import ModuleType
from typing import Any

_STARTING = threading.Lock()


@dataclass(frozen=True)
class Failure:
    """Sent by a child in place of an answer."""

    message: str


class ChildEnded(Exception):
    """The child ended by itself. code: its exit status; signal: the name of what ended it."""

    def __init__(self, code: int | None) -> None:
        super().__init__(f"the child ended with code {code}")
        self.code, self.signal = code, ""
        if code is not None and code < 0:
            known = -code in signal.valid_signals()
            self.signal = signal.Signals(-code).name if known else f"signal {-code}"


class ChildProcess:
    """Runs `target(pipe, *args)`; `target` and `args` must be picklable. It ends with the program,
    unless that is killed: then it reads the end of its pipe."""

    def __init__(self, target: Callable, *args: object) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, child_pipe = context.Pipe()
        self._process = context.Process(target=target, args=(child_pipe, *args), daemon=True)
        with _hide_main():
            self._process.start()
        child_pipe.close()

    def send(self, message: object) -> None:
        """Raises ChildEnded."""
        try:
            self._pipe.send(message)
        except OSError as error:
            raise self._end_error() from error

    def poll(self, seconds: float) -> bool:
        """Whether there is a message, or the end of the child, within so many seconds."""
        return self._pipe.poll(seconds)

    def receive(self) -> Any:
        """The next message. Raises ChildEnded."""
        try:
            return self._pipe.recv()
        except (EOFError, OSError) as error:
            raise self._end_error() from error

    def close(self) -> None:
        """Kill the process, whatever it is doing."""
        if self._process.is_alive():
            self._process.kill()
        self._process.join(timeout=5)
        self._pipe.close()

    def _end_error(self) -> ChildEnded:
        self._process.join(timeout=5)
        return ChildEnded(self._process.exitcode)


@contextmanager
def _hide_main() -> Iterator[None]:
    """Until the block ends, the program has no main file.

    multiprocessing would run that file again in the child: app.py, which loads the page, or a
    user's script, which may have no guard against it.
    """
    with _STARTING:
        main = sys.modules["__main__"]
        sys.modules["__main__"] = ModuleType("__main__")
        try:
            yield
        finally:
            sys.modules["__main__"] = main
