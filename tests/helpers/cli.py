"""What the tests of the command line share."""

from __future__ import annotations

SCRIPT = "[S1] Hello there. [S2] Hi."


def error_line(result, code=2) -> str:
    """The one line of an error, nothing on stdout."""
    actual, out, err = result
    assert actual == code and out == "", (actual, out, err)
    assert err.startswith("error: ") and err.endswith("\n") and err.count("\n") == 1, err
    return err
