"""A separate process for a device, which may hang or abort without ending the program.

It sends its answers through a pipe. A `Failure` among them is raised here as RunError. So is a
silence longer than a time limit, after the process has been killed.
"""

from __future__ import annotations

import threading
from time import monotonic
from typing import Any

from dia_demo.errors import RunError
from dia_demo.machine.child_process import ChildEnded, ChildProcess, Failure

POLL_SECONDS = 0.2


class DeviceGone(RunError):
    """The device's process hung and was killed, or ended by itself."""


class WaitCancelled(Exception):
    """`DeviceProcess.answer` was cancelled."""


class DeviceProcess(ChildProcess):
    """The process of a device. `close` also frees the device's memory."""

    def send(self, message: object) -> None:
        """Raises DeviceGone if the process has ended."""
        try:
            super().send(message)
        except ChildEnded as end:
            raise DeviceGone(_describe(end)) from end

    def answer(self, limit: float, action: str, cancel: threading.Event | None = None) -> Any:
        """The next answer within `limit` seconds; errors name the `action` it belongs to.

        Raises DeviceGone if no answer comes, RunError if it is a Failure, and WaitCancelled
        when `cancel` is set.
        """
        deadline = monotonic() + limit
        while not self.poll(min(POLL_SECONDS, limit)):
            if cancel is not None and cancel.is_set():
                raise WaitCancelled
            if monotonic() >= deadline:
                self.close()
                raise DeviceGone(f"{action}: no answer for {limit:.0f} s, the device hangs")
        try:
            answer = self.receive()
        except ChildEnded as end:
            raise DeviceGone(f"{action}: {_describe(end)}") from end
        if isinstance(answer, Failure):
            raise RunError(f"{action}: {answer.message}")
        return answer


def _describe(end: ChildEnded) -> str:
    if end.signal:
        return f"the device's process ended, killed by {end.signal}: the driver aborted it"
    return f"the device's process ended with exit code {end.code}"
