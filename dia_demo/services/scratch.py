"""Temporary files: uploads, and the takes, reports and zips that the page offers for download.

They share one folder and one limit. The oldest are removed first; new ones are kept, because a
client is about to fetch them, and so are those of work that goes on.
"""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from time import time

from dia_demo.errors import InputError

DAY_SECONDS = 86_400.0
IN_USE_SECONDS = 120.0
# Folders of work that goes on in this process.
_WORK: set[Path] = set()


@contextmanager
def work_folder(home: Path, prefix: str) -> Iterator[Path]:
    """A new folder in `home` until the block ends. Its files are not removed meanwhile, however old
    they are: an hour of speech may take a day, and a computer that sleeps lets days pass."""
    home.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=home, prefix=prefix) as name:
        folder = Path(name)
        _WORK.add(folder)
        try:
            yield folder
        finally:
            _WORK.remove(folder)


class Scratch:
    """The temporary files in `folder`, together at most `limit` bytes."""

    def __init__(self, folder: Path, limit: int) -> None:
        self.folder = folder
        self.limit = limit
        self._reserved = 0
        self._lock = threading.Lock()

    def reserve(self, needed: int) -> None:
        """Keep `needed` bytes free until `release`. Raises InputError if that is impossible."""
        with self._lock:
            used = self._trim(self._reserved + needed)
            if used + self._reserved + needed > self.limit:
                raise InputError(
                    f"There is no room for {needed / 1e6:,.0f} MB: temporary files may use "
                    f"{self.limit / 1e9:.1f} GB on this machine, and the rest is in use. Try "
                    "again in a few minutes. The administrator can raise the limit (DIA_TEMP_GB)."
                )
            self._reserved += needed

    def release(self, needed: int) -> None:
        """Release a reservation, once the file is written or given up."""
        with self._lock:
            self._reserved -= needed

    def trim(self) -> None:
        """Remove what is older than a day, and the oldest files above the limit."""
        with self._lock:
            self._trim(self._reserved)

    def _trim(self, needed: int) -> int:
        """Remove files until `needed` more bytes fit, if possible; returns the bytes in use."""
        files, now = sorted(_files(self.folder)), time()
        used = sum(size for _, size, _ in files)
        for written, size, path in files:
            age = now - written
            if age <= IN_USE_SECONDS or (age <= DAY_SECONDS and used + needed <= self.limit):
                break
            if not _WORK.isdisjoint(path.parents):
                continue
            with suppress(OSError):
                path.unlink()
                used -= size
        _remove_empty(self.folder, now - DAY_SECONDS)
        return used


def _files(folder: Path) -> Iterator[tuple[float, int, Path]]:
    """Every file below a folder: time of its last write, size in bytes, path."""
    for home, _, names in os.walk(folder):
        for path in (Path(home, name) for name in names):
            with suppress(FileNotFoundError):
                facts = path.lstat()
                yield facts.st_mtime, facts.st_size, path


def _remove_empty(folder: Path, before: float) -> None:
    """Remove empty folders below `folder` last written to before `before` (seconds since 1970): a
    newer one may belong to a run that has not finished."""
    for home, _, _ in os.walk(folder, topdown=False):
        with suppress(OSError):
            if Path(home) != folder and os.stat(home).st_mtime < before:
                os.rmdir(home)
