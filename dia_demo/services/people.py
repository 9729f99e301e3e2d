"""People: each is identified by a random key from the server, which their browser keeps.

The name of a person's folder is a hash of the key, so that a list of folders does not give access
to them.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from pathlib import Path

from dia_demo.errors import InputError

_KEY = re.compile(r"[A-Za-z0-9_-]{32}")


def new_key() -> str:
    """A new key, which cannot be guessed."""
    return secrets.token_urlsafe(24)


def is_key(value: object) -> bool:
    """Whether the value has the form of a key from `new_key`."""
    return isinstance(value, str) and _KEY.fullmatch(value) is not None


def folder_of(home: Path, key: str) -> Path:
    """The person's folder under `home`. Raises InputError for an invalid key."""
    if not is_key(key):
        raise InputError("This page has no valid key: reload it.")
    return home / hashlib.sha256(key.encode("ascii")).hexdigest()[:40]
