"""A separate process for a device, which may hang or abort without ending the program.

The process runs a function `target(pipe, ...)` that sends its answers through the pipe. A `Failure`
among them is raised here as RunError. So is a silence longer than a time limit, after the process
has been killed.
"""

from __future__ import annotations

import multiprocessing
import signal
import threading
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic
from typing import Any

from dia_demo.errors import RunError

POLL_SECONDS = 0.2


@dataclass(frozen=True)
class Failure:
    """Sent by the process in place of an answer."""

    message: str


class DeviceGone(RunError):
    """The device's process hung and was killed, or ended by itself."""


class WaitCancelled(Exception):
    """`DeviceProcess.receive` was cancelled."""


class DeviceProcess:
    """Runs `target(pipe, *args)` in a new interpreter; `target` and `args` must be picklable."""

    def __init__(self, target: Callable, *args: object) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, child_pipe = context.Pipe()
        self._process = context.Process(target=target, args=(child_pipe, *args), daemon=True)
        self._process.start()
        child_pipe.close()

    def send(self, message: object) -> None:
        """Raises DeviceGone if the process has ended."""
        try:
            self._pipe.send(message)
        except OSError as error:
            raise DeviceGone(f"the device's process ended{self._how_it_ended()}") from error

    def receive(self, limit: float, action: str, cancel: threading.Event | None = None) -> Any:
        """The next answer within `limit` seconds; errors name the `action` it belongs to.

        Raises DeviceGone if no answer comes, RunError if it is a Failure, and WaitCancelled
        when `cancel` is set.
        """
        deadline = monotonic() + limit
        while not self._pipe.poll(min(POLL_SECONDS, limit)):
            if cancel is not None and cancel.is_set():
                raise WaitCancelled
            if monotonic() >= deadline:
                self.close()
                raise DeviceGone(f"{action}: no answer for {limit:.0f} s, the device hangs")
        try:
            answer = self._pipe.recv()
        except (EOFError, OSError) as error:
            how = self._how_it_ended()
            raise DeviceGone(f"{action}: the device's process ended{how}") from error
        if isinstance(answer, Failure):
            raise RunError(f"{action}: {answer.message}")
        return answer

    def close(self) -> None:
        """Kill the process, whatever it is doing; this also frees the device's memory."""
        if self._process.is_alive():
            self._process.kill()
        self._process.join(timeout=5)
        self._pipe.close()

    def _how_it_ended(self) -> str:
        self._process.join(timeout=5)
        code = self._process.exitcode
        if code is None or code >= 0:
            return f" with exit code {code}"
        try:
            return f", killed by {signal.Signals(-code).name}: the driver aborted it"
        except ValueError:
            return f", killed by signal {-code}"
