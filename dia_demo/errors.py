"""The two errors a person may meet. Anything else that escapes is a bug.

A message says what happened, which range is allowed and what to do, in one or two sentences.
"""


class DiaDemoError(Exception):
    """Base of the errors whose message is meant to be shown as it stands."""


class InputError(DiaDemoError):
    """Something that was asked for cannot be done: a value, a file, a script (exit code 2)."""


class RunError(DiaDemoError):
    """Something failed while running: a damaged model, a full disk (exit code 1)."""
