"""Files that need not outlive the app: uploads, and takes, reports and zips that are handed out.

They share one folder and one bound. The oldest go first; what was just written stays, since
somebody is about to fetch or to use it.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from time import time

from dia_demo.errors import InputError

DAY_SECONDS = 86_400.0
IN_USE_SECONDS = 120.0


class Scratch:
    """The temporary files in `folder`, together at most `limit` bytes."""

    def __init__(self, folder: Path, limit: int) -> None:
        self.folder = folder
        self.limit = limit
        self._reserved = 0
        self._lock = threading.Lock()

    def reserve(self, needed: int) -> None:
        """Keep `needed` bytes free until `release`. InputError where that cannot be."""
        with self._lock:
            used = self._trim(self._reserved + needed)
            if used + self._reserved + needed > self.limit:
                raise InputError(
                    f"There is no room for {needed / 1e6:,.0f} MB: temporary files may take "
                    f"{self.limit / 1e9:.1f} GB here and others are in use. Try again in a few "
                    "minutes; whoever runs the program can raise it (DIA_TEMP_GB)."
                )
            self._reserved += needed

    def release(self, needed: int) -> None:
        """Give back what was reserved: it is written by now, or never will be."""
        with self._lock:
            self._reserved -= needed

    def trim(self) -> None:
        """Remove what is older than a day, and the oldest of what is beyond the bound."""
        with self._lock:
            self._trim(self._reserved)

    def _trim(self, needed: int) -> int:
        """The bytes in use once `needed` more have room, as far as that can be had."""
        files, now = sorted(_files(self.folder)), time()
        used = sum(size for _, size, _ in files)
        for written, size, path in files:
            age = now - written
            if age <= IN_USE_SECONDS or (age <= DAY_SECONDS and used + needed <= self.limit):
                break
            with suppress(OSError):
                path.unlink()
                used -= size
        _remove_empty(self.folder, now - DAY_SECONDS)
        return used


def _files(folder: Path) -> Iterator[tuple[float, int, Path]]:
    """Every file below a folder: when it was last written, its size, its path."""
    for home, _, names in os.walk(folder):
        for path in (Path(home, name) for name in names):
            with suppress(FileNotFoundError):
                facts = path.lstat()
                yield facts.st_mtime, facts.st_size, path


def _remove_empty(folder: Path, before: float) -> None:
    """Remove empty folders below `folder`, last written to earlier than `before` (seconds): one of
    today may be a run's that has not ended."""
    for home, _, _ in os.walk(folder, topdown=False):
        with suppress(OSError):
            if Path(home) != folder and os.stat(home).st_mtime < before:
                os.rmdir(home)
