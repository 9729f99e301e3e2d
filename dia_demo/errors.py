"""The two errors that are shown to people. Any other exception that escapes is a bug.

A message says what happened, which range is allowed and what to do, in one or two sentences.
"""


class DiaDemoError(Exception):
    """Base of the errors whose message can be shown unchanged."""


class InputError(DiaDemoError):
    """A request cannot be fulfilled: an invalid value, file or script (exit code 2)."""


class RunError(DiaDemoError):
    """Something failed while running: a damaged model, a full disk (exit code 1)."""
