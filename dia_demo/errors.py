"""The errors that are shown to people. Any other exception that escapes is a bug.

A message says what happened, which range is allowed and what to do, in one or two sentences.
"""

import re

_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def printable(message: str) -> str:
    """A message without the control characters that a quoted text may contain, each as "�".

    They would move the cursor of a terminal, turn the direction of writing, or fail to be encoded.
    """
    return _CONTROL.sub("\ufffd", message)


class DiaDemoError(Exception):
    """Base of the errors whose message can be shown unchanged."""

    def __str__(self) -> str:
        return printable(super().__str__())


class InputError(DiaDemoError):
    """A request cannot be fulfilled: an invalid value, file or script (exit code 2)."""


class BusyError(InputError):
    """There is no room for a request now. The same one may succeed after `retry_seconds`."""

    def __init__(self, message: str, retry_seconds: int) -> None:
        super().__init__(message)
        self.retry_seconds = retry_seconds


class RunError(DiaDemoError):
    """Something failed while running: a damaged model, a full disk (exit code 1)."""
