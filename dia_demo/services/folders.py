"""The folders of a running app: kept files, which it locks, and temporary files, which it removes
when it ends."""

from __future__ import annotations

import logging
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from filelock import FileLock, Timeout

from dia_demo.errors import InputError
from dia_demo.files import PART, is_own_folder
from dia_demo.services.listening.archive import IMPORTING
from dia_demo.services.listening.plan.plan_file import NAME as PLAN
from dia_demo.services.listening.votes.votes import NAME as VOTES
from dia_demo.services.settings import Settings, default_takes

LOCK = ".dia-demo.lock"
_RUN = "dia-run-"

log = logging.getLogger(__name__)


@contextmanager
def app_folders(settings: Settings) -> Iterator[Settings]:
    """Lock the folders of an app while it runs; yields its settings, with a new `takes_folder`.

    Removes what earlier runs left unfinished, however they ended. Raises InputError if another app
    uses the kept folder or the shared comparison, or if no folder for takes can be written.
    """
    with ExitStack() as stack:
        folders = [(settings.kept_folder, "DIA_KEPT")]
        if settings.shared_comparison is not None:
            folders.append((settings.shared_comparison, "DIA_COMPARE"))
        locked = [stack.enter_context(_hold_lock(path, variable)) for path, variable in folders]
        if locked[0]:
            remove_unfinished(settings.kept_folder)
        folder = stack.enter_context(temporary_folder(settings.takes_folder))
        yield replace(settings, takes_folder=folder)


def remove_unfinished(kept_folder: Path) -> None:
    """Remove partly unpacked zips, partly written files, and comparisons without a plan."""
    for path in (*kept_folder.glob(f"*/comparisons/{IMPORTING}*"), *kept_folder.rglob(f"*{PART}")):
        _remove(path)
    for folder in kept_folder.glob("*/comparisons/*"):
        if not (folder / PLAN).exists() and not (folder / VOTES).exists():
            _remove(folder)


@contextmanager
def _hold_lock(folder: Path, variable: str) -> Iterator[bool]:
    """Lock a folder until the block ends. Yields False if the folder is not writable."""
    lock = FileLock(folder / LOCK)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock.acquire(timeout=0)
    except Timeout:
        raise InputError(
            f"{folder} is in use by another running app. Stop that app first, or set {variable} to "
            "another folder."
        ) from None
    except OSError as error:
        log.warning("%s is not writable (%s), so nothing is kept there.", folder, error.strerror)
        yield False
        return
    try:
        yield True
    finally:
        lock.release()


@contextmanager
def temporary_folder(home: Path) -> Iterator[Path]:
    """A new folder in `home`, removed at the end. Folders of programs that have ended are removed.

    Raises InputError if it cannot be written.
    """
    try:
        home.mkdir(parents=True, exist_ok=True)
        if home == default_takes() and hasattr(os, "getuid"):
            _keep_private(home)
        with FileLock(home / LOCK):
            _remove_left_behind(home)
            folder = Path(tempfile.mkdtemp(prefix=_RUN, dir=home))
            lock = FileLock(folder / LOCK)
            lock.acquire(timeout=0)
    except OSError as error:
        reason = error.strerror or error
        raise InputError(
            f"The folder for takes, {home}, is not writable: {reason}. Set DIA_TAKES to another "
            "folder."
        ) from error
    try:
        yield folder
    finally:
        lock.release()
        _remove(folder)


def _keep_private(home: Path) -> None:
    """Close a folder that anybody could have made. Raises InputError unless it is our own."""
    if not is_own_folder(home):
        raise InputError(
            f"The folder for takes, {home}, belongs to another user of this machine. Ask them to "
            "delete it, or set DIA_TAKES to a folder of your own."
        )
    home.chmod(0o700)


def _remove_left_behind(home: Path) -> None:
    for folder in home.glob(f"{_RUN}*"):
        with suppress(Timeout, OSError):
            with FileLock(folder / LOCK).acquire(timeout=0):
                pass
            _remove(folder)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
