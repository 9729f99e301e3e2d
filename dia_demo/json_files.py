"""JSON files that come with a checkpoint, read without trusting them."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

from dia_demo.errors import InputError

# The index of a checkpoint of thousands of tensors has less than one.
MAX_MEGABYTES = 10


def read_json(path: Path) -> dict:
    """A JSON object from a regular file of at most MAX_MEGABYTES.

    Raises InputError, which says what is wrong with it, for anything else.
    """
    try:
        raw = json.loads(_read_regular(path).decode("utf-8"))
    except FileNotFoundError:
        raise InputError(f"{path} is missing: a Dia checkpoint folder holds it.") from None
    except RecursionError:
        raise InputError(f"{path} cannot be read as JSON: it is nested too deeply.") from None
    except (OSError, ValueError) as error:  # Not UTF-8, not JSON, or a number of 5,000 digits.
        raise InputError(f"{path} cannot be read as JSON: {error}.") from error
    if not isinstance(raw, dict):
        raise InputError(f"{path} must hold a JSON object, not a {type(raw).__name__}.")
    return raw


def _read_regular(path: Path) -> bytes:
    # Without O_NONBLOCK, opening a named pipe waits for somebody to write into it.
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    with os.fdopen(handle, "rb") as file:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode):
            raise InputError(f"{path} is not a regular file: put the checkpoint's own there.")
        limit = MAX_MEGABYTES * 10**6
        if found.st_size > limit:
            raise InputError(
                f"{path} has {found.st_size / 1e6:,.0f} MB, and at most {MAX_MEGABYTES} MB are "
                "read: it does not belong to a Dia checkpoint."
            )
        return file.read(limit)
