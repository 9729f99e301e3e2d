"""The folders of files, and writing files so that a crash never leaves an incomplete one."""

from __future__ import annotations

import base64
import os
import re
import shutil
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent
# The folder of assets/, LICENSE and NOTICE: the repository, or the package where it is installed.
ROOT = PACKAGE if (PACKAGE / "assets").is_dir() else PACKAGE.parent
ASSETS = ROOT / "assets"
PAGE_FILES, LISTEN_FILES = ASSETS / "page", ASSETS / "listen"
# The suffix of a file that is still being written.
PART = ".part"
# A part that is older was left by a process that has ended.
ABANDONED_SECONDS = 3600
_IMPORT = re.compile(r'(?<= from )"(\.{1,2}/[\w/-]+\.js)"')


def cache_folder() -> Path:
    """The folder for files that can be generated again: DIA_CACHE, else the user's cache folder."""
    if os.environ.get("DIA_CACHE"):
        return Path(os.environ["DIA_CACHE"]).expanduser()
    if sys.platform == "win32":
        home = os.environ.get("LOCALAPPDATA") or str(Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        home = str(Path.home() / "Library" / "Caches")
    else:
        home = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(home) / "dia-demo"


def module_url(module: Path) -> str:
    """A JavaScript module and what it imports, as a data URL: it needs no route of a server's, nor
    a server, and no browser mixes an older version of one file with a newer one of another."""
    source = module.read_text(encoding="utf-8")
    # A data URL has no folder that a relative import could start from.
    source = _IMPORT.sub(
        lambda match: f'"{module_url((module.parent / match[1]).resolve())}"', source
    )
    # The name that the browser's developer tools show.
    source += f"//# sourceURL={module.parent.name}/{module.name}\n"
    return "data:text/javascript;base64," + base64.b64encode(source.encode()).decode("ascii")


def is_own_folder(path: Path) -> bool:
    """Whether `path` is a folder, not a link to one, that belongs to the user of this process."""
    try:
        status = path.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid()


Stamp = tuple[int, int, int]


def file_stamp(path: Path) -> Stamp | None:
    """A value that changes when a file is written or replaced; None without a file. It is not
    opened."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino


def bytes_in(folder: Path) -> int:
    """Bytes of all files in a folder and below it."""
    return sum(size_of(path) for path in folder.rglob("*"))


def size_of(path: Path) -> int:
    """Bytes of a file; 0 if it does not exist."""
    try:
        return path.stat().st_size if path.is_file() else 0
    except OSError:
        return 0


@contextmanager
def write_atomic(path: Path, sync: bool = False) -> Iterator[Path]:
    """Write the file `path` completely or not at all.

        with write_atomic(path) as part:
            part.write_bytes(data)

    Yields a new path beside `path`, which replaces it at the end of the block. If the block raises,
    the new file is removed and `path` stays as it was. sync: wait until the data is on the disk
    before replacing (`sync_folder` does the same for the name). Raises OSError.
    """
    part = _part_path(path)
    try:
        yield part
        if sync:
            _sync(part, os.O_RDWR)
        os.replace(part, path)
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """Make the folder `path` with its files whole or not at all; it must not exist, or be empty.

    Yields a new folder beside `path`, which gets its name at the end of the block. If the block
    raises, the new folder is removed. What a killed process left there is removed as well. Raises
    OSError.
    """
    for left in path.parent.glob(f".dia-*{PART}"):
        with suppress(OSError):
            if left.is_dir() and time.time() - left.stat().st_mtime > ABANDONED_SECONDS:
                shutil.rmtree(left)
    part = _part_path(path)
    try:
        part.mkdir()
        yield part
        if path.is_dir():
            path.rmdir()  # Some systems rename no folder onto another, not even an empty one.
        os.rename(part, path)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def sync_folder(folder: Path) -> None:
    """Wait until new names in `folder` are on the disk, where the system supports it."""
    if hasattr(os, "O_DIRECTORY"):
        _sync(folder, os.O_RDONLY | os.O_DIRECTORY)


def _part_path(path: Path) -> Path:
    """Without the file's own name, which may already have the maximum length."""
    return path.with_name(f".dia-{os.getpid()}-{os.urandom(4).hex()}{PART}")


def _sync(path: Path, flags: int) -> None:
    descriptor = os.open(path, flags)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
