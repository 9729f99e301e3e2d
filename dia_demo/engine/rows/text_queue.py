"""TextQueue: a text that is still being written while a row speaks it."""

from __future__ import annotations

import threading


class TextQueue:
    """The rest of a row's text, from any thread. Every piece ends after a whole word, and not
    inside a pause."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pieces: list[str] = []
        self._is_complete = False

    def add(self, piece: str) -> None:
        """Add what follows."""
        with self._lock:
            self._pieces.append(piece)

    def finish(self) -> None:
        """Nothing follows."""
        with self._lock:
            self._is_complete = True

    def take(self) -> tuple[list[str], bool]:
        """Remove what has come since the last call; returns it, and whether nothing follows."""
        with self._lock:
            pieces, self._pieces = self._pieces, []
            return pieces, self._is_complete
