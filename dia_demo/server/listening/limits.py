"""What one address may ask of the listening tests: so many requests at once, so many listeners."""

from __future__ import annotations

import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager

from dia_demo.server.errors import ApiError

AT_ONCE = 8
# New listeners of one address within an hour: a class behind one address fits.
NEW_LISTENERS, HOUR_SECONDS = 100, 3600.0
BUSY_SECONDS = 1.0
BUSY = "Too many requests of this address are being answered: try again in a moment."
TOO_MANY = (
    "More than {count} people of this address have begun a listening test within an hour: try "
    "again later."
)


class AddressLimits:
    """The counts of all addresses. Safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: Counter[str] = Counter()
        self._begun: dict[str, list[float]] = defaultdict(list)

    @contextmanager
    def place(self, address: str) -> Iterator[None]:
        """A place for a request. Raises ApiError if all are taken."""
        with self._lock:
            if self._running[address] >= AT_ONCE:
                raise ApiError(429, BUSY, code="busy", retry_seconds=BUSY_SECONDS)
            self._running[address] += 1
        try:
            yield
        finally:
            with self._lock:
                self._running[address] -= 1
                if not self._running[address]:
                    del self._running[address]

    def check_new(self, address: str) -> None:
        """Raise ApiError if too many listeners of an address have begun."""
        with self._lock:
            begun = len(self._recent(address))
        if begun >= NEW_LISTENERS:
            message = TOO_MANY.format(count=NEW_LISTENERS)
            raise ApiError(429, message, code="busy", retry_seconds=HOUR_SECONDS)

    def note_new(self, address: str) -> None:
        """A listener of an address has begun."""
        with self._lock:
            self._begun[address].append(time.monotonic())

    def _recent(self, address: str) -> list[float]:
        """When the listeners of an address began, within the last hour; older ones are dropped,
        and so are addresses without any."""
        oldest = time.monotonic() - HOUR_SECONDS
        kept = {name: [at for at in times if at > oldest] for name, times in self._begun.items()}
        self._begun = defaultdict(list, {name: times for name, times in kept.items() if times})
        return self._begun.get(address, [])
