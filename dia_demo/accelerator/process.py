"""A process of its own for a device, which may hang or abort without taking the program along.

The other side is a function `target(pipe, ...)`. It sends `Reply`s; a `Failure` is raised here as
RunError, and so is silence beyond a limit, after the process has been ended.
"""

from __future__ import annotations

import multiprocessing
import signal
import threading
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic

from dia_demo.errors import RunError

POLL_SECONDS = 0.2


@dataclass(frozen=True)
class Failure:
    """Sent by the other side in place of an answer."""

    message: str


class DeviceGone(RunError):
    """The device's process hung and was ended, or ended by itself."""


class Stopped(Exception):
    """Somebody asked to stop waiting."""


class DeviceProcess:
    """Runs `target(pipe, *given)` in a fresh interpreter; `target` and `given` must pickle."""

    def __init__(self, target: Callable, *given: object) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=target, args=(theirs, *given), daemon=True)
        self._process.start()
        theirs.close()

    def send(self, message: object) -> None:
        """Raises DeviceGone where nobody is there to receive it."""
        try:
            self._pipe.send(message)
        except OSError as error:
            raise DeviceGone(f"the device's process is gone{self._how()}") from error

    def receive(self, limit: float, doing: str, cancel: threading.Event | None = None) -> object:
        """The next answer within `limit` seconds; `doing` says what for.

        Raises DeviceGone where none comes, RunError where the answer is a Failure, and Stopped
        when `cancel` is set.
        """
        until = monotonic() + limit
        while not self._pipe.poll(min(POLL_SECONDS, limit)):
            if cancel is not None and cancel.is_set():
                raise Stopped
            if monotonic() >= until:
                self.close()
                raise DeviceGone(f"{doing}: no answer for {limit:.0f} s, the device hangs")
        try:
            answer = self._pipe.recv()
        except (EOFError, OSError) as error:
            raise DeviceGone(f"{doing}: the device's process ended{self._how()}") from error
        if isinstance(answer, Failure):
            raise RunError(f"{doing}: {answer.message}")
        return answer

    def close(self) -> None:
        """End the process, whatever it is doing; the device's memory goes with it."""
        if self._process.is_alive():
            self._process.kill()
        self._process.join(timeout=5)
        self._pipe.close()

    def _how(self) -> str:
        self._process.join(timeout=5)
        code = self._process.exitcode
        if code is None or code >= 0:
            return f" with exit code {code}"
        try:
            return f", killed by {signal.Signals(-code).name}: the driver aborted it"
        except ValueError:
            return f", killed by signal {-code}"
