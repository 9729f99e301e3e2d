"""People: those who have something here, and those who ask for a take.

The former are identified by a random key from the server, which their browser keeps. The name of a
person's folder is a hash of the key, so that a list of folders does not give access to them. The
latter are visitors, to whom the queue gives turns.
"""

from __future__ import annotations

import base64
import hashlib
import ipaddress
import re
import secrets
import shutil
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import ceil
from pathlib import Path

from dia_demo.errors import BusyError, InputError

DAY_SECONDS = 24 * 60 * 60.0

_KEY = re.compile(r"[A-Za-z0-9_-]{32}")


def new_key() -> str:
    """A new key, which cannot be guessed."""
    return secrets.token_urlsafe(24)


@contextmanager
def passing_key(home: Path) -> Iterator[str]:
    """The key of somebody who has nothing here before the block and nothing after it: what a
    program's call stores is removed with the call."""
    key = new_key()
    try:
        yield key
    finally:
        shutil.rmtree(folder_of(home, key), ignore_errors=True)


def is_key(value: object) -> bool:
    """Whether the value has the form of a key from `new_key`."""
    return isinstance(value, str) and _KEY.fullmatch(value) is not None


def folder_of(home: Path, key: str) -> Path:
    """The person's folder under `home`. Raises InputError for an invalid key."""
    if not is_key(key):
        raise InputError("This page has no valid key: reload it.")
    return home / hashlib.sha256(key.encode("ascii")).hexdigest()[:40]


@dataclass(frozen=True)
class Visitor:
    """Who made a request. session: that of a page or client; token: a hash of a program's token.

    Programs without either share the turns of their address. The command line is the visitor
    without an address.
    """

    address: str = ""
    session: str = ""
    token: str = ""


class Caller(threading.Event):
    """A run's cancel flag that knows who asked for the run."""

    def __init__(self, visitor: Visitor) -> None:
        super().__init__()
        self.visitor = visitor


class Allowance:
    """How many things of a kind the visitors of one address may keep in a day, so that nobody can
    use up the disk that all share by coming as one person after another.

    things: their name in the plural. Addresses are in memory only, not on the disk.
    """

    def __init__(self, most: int, things: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._most, self._things, self._clock = most, things, clock
        self._kept: dict[str, deque[float]] = {}
        self._lock = threading.Lock()

    @contextmanager
    def spend(self, visitor: Visitor) -> Iterator[None]:
        """One more thing of this visitor's address, unless the block raises. Raises BusyError
        before the block if the address has no more for now."""
        with self._lock:
            self._forget(self._clock() - DAY_SECONDS)
            kept = self._kept.get(visitor.address, deque())
            if len(kept) >= self._most:
                raise BusyError(
                    f"From your address {self._most} {self._things} were kept within a day, the "
                    "maximum. Try again later.",
                    ceil(kept[0] + DAY_SECONDS - self._clock()),
                )
        yield
        with self._lock:
            self._kept.setdefault(visitor.address, deque()).append(self._clock())

    def _forget(self, before: float) -> None:
        for address, kept in list(self._kept.items()):
            while kept and kept[0] <= before:
                kept.popleft()
            if not kept:
                del self._kept[address]


def network_of(address: str) -> str:
    """An IPv6 address without its last 64 bits, which a client can choose freely."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address
    if parsed.version == 4:
        return address
    return str(ipaddress.ip_network((parsed, 64), strict=False))


def key_of_token(token: str) -> str:
    """The key of whoever has a token: it opens what is kept for them."""
    return _digest(f"key {token}")


def token_hash(token: str) -> str:
    """What stands for a token where it must not be seen. It does not open anything."""
    return _digest(f"visitor {token}")


def _digest(text: str) -> str:
    """32 characters, as a key has."""
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()[:24]).decode("ascii")
