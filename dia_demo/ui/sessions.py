"""Which page is running what, so that Stop and a closed tab reach the right run."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager


class Sessions:
    """The cancel flags of every page's runs."""

    def __init__(self) -> None:
        self._flags: dict[str, set[threading.Event]] = defaultdict(set)
        self._lock = threading.Lock()

    @contextmanager
    def run(self, session: str) -> Iterator[threading.Event]:
        """A cancel flag for one run; leaving the block, in whatever way, sets it."""
        flag = threading.Event()
        with self._lock:
            self._flags[session].add(flag)
        try:
            yield flag
        finally:
            flag.set()
            with self._lock:
                self._flags[session].discard(flag)
                if not self._flags[session]:
                    del self._flags[session]

    def stop(self, session: str) -> None:
        """Ask every run of this page to stop."""
        with self._lock:
            flags = list(self._flags.get(session, ()))
        for flag in flags:
            flag.set()
