"""Transfers one file from the hub into its cache: continued where it ended, and checked.

huggingface_hub (2.4) begins a file again after a lost connection and compares no checksums. Here
the part that arrived stays in the cache, as ETAG.incomplete, until the file is whole and has the
checksum that the hub stated. One process at a time writes it: the lock is huggingface_hub's own.
"""

from __future__ import annotations

import hashlib
import logging
import os
import re
import shutil
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from dia_demo.errors import InputError
from dia_demo.hub.cache import cache_root, cached_file, folder_name

SECONDS_TO_ANSWER = 10
PIECE_BYTES = 2**20
# A request is repeated this often without a new byte, after waits that double.
TRIES = 5
FIRST_WAIT = 1.0
# If the hub asks for a longer wait, the download fails.
LONGEST_WAIT = 120
REPEATED = (408, 429, 500, 502, 503, 504)
LOCK_SECONDS = 0.25
# Left free on the disk for everything else.
DISK_RESERVE = 200_000_000
# The suffix of a file's part, as huggingface_hub's.
INCOMPLETE = ".incomplete"
# The hub's ETag of a large file is its SHA-256; of any other file, what git calls its blob: the
# SHA-1 of a header and the file.
SHA256, GIT_BLOB = re.compile("[0-9a-f]{64}"), re.compile("[0-9a-f]{40}")

log = logging.getLogger(__name__)


class TransferStopped(Exception):
    """The transfer was cancelled. What arrived is kept."""


class ChecksumDiffers(Exception):
    """A whole file is not the one that the hub described. It was removed."""


@dataclass(frozen=True)
class RemoteFile:
    """A file of the repository `name`, as the hub describes it."""

    name: str
    file: str
    revision: str
    size: int
    etag: str

    @property
    def has_checksum(self) -> bool:
        """Whether its ETag is a checksum, which some mirrors do not provide."""
        return bool(SHA256.fullmatch(self.etag) or GIT_BLOB.fullmatch(self.etag))

    @property
    def blob(self) -> Path:
        """Where the cache keeps the file's content."""
        return cache_root() / folder_name(self.name) / "blobs" / self.etag

    @property
    def partial(self) -> Path:
        """Where the part that has arrived is kept."""
        return self.blob.with_name(f"{self.etag}{INCOMPLETE}")

    def bytes_here(self) -> int:
        """How much of it is on this machine, whichever process fetched it."""
        if self.has_checksum:
            for path in (self.blob, self.partial):
                try:
                    return min(self.size, path.stat().st_size)
                except OSError:
                    continue
        return self.size if cached_file(self.name, self.file, self.revision) else 0


def locate(name: str, file: str, revision: str, cancel: threading.Event) -> RemoteFile:
    """Ask the hub for a file's size and checksum.

    Raises the errors of huggingface_hub, those of the connection at once.
    """
    from huggingface_hub import get_hf_file_metadata, hf_hub_url
    from huggingface_hub.errors import HfHubHTTPError

    patience = Patience(cancel)
    while True:
        try:
            url = hf_hub_url(name, file, revision=revision)
            metadata = get_hf_file_metadata(url, timeout=SECONDS_TO_ANSWER)
            break
        except HfHubHTTPError as error:
            patience.wait(error)
    commit = metadata.commit_hash or revision
    return RemoteFile(name, file, commit, metadata.size or 0, metadata.etag or "")


def transfer(remote: RemoteFile, cancel: threading.Event) -> None:
    """Transfer a file with a checksum into the cache, unless it is there.

    Raises ChecksumDiffers, TransferStopped, InputError where the disk is too small, and the errors
    of huggingface_hub.
    """
    remote.blob.parent.mkdir(parents=True, exist_ok=True)
    with _hold_lock(remote, cancel):
        if remote.blob.exists():
            return
        check_disk([remote])
        with open(remote.partial, "ab+") as file:
            matches = _Transfer(remote, file, cancel).run()
        if not matches:
            remote.partial.unlink()
            raise ChecksumDiffers(remote.file)
        os.replace(remote.partial, remote.blob)


def free_disk() -> int | None:
    """Free bytes where the cache is; None if unknown."""
    root = cache_root()
    for folder in (root, *root.parents):
        try:
            return shutil.disk_usage(folder).free
        except OSError:
            continue
    return None


def check_disk(files: list[RemoteFile], reserved: int = 0) -> None:
    """Raise InputError where the disk is too small for these files and `reserved` bytes."""
    missing, free = sum(file.size - file.bytes_here() for file in files), free_disk()
    if free is None or missing + reserved + DISK_RESERVE <= free:
        return
    raise InputError(
        f"Not enough disk space: {files[0].name} needs {missing / 1e9:.1f} GB more in "
        f"{cache_root()}, and {max(0, free - reserved) / 1e9:.1f} GB are free there. Remove files, "
        "or set HF_HOME to a folder on a larger disk."
    )


def lock_file(name: str, etag: str) -> Path:
    """The lock of a file of the repository `name`; its folder is made."""
    path = cache_root() / ".locks" / folder_name(name) / f"{etag}.lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


@contextmanager
def _hold_lock(remote: RemoteFile, cancel: threading.Event) -> Iterator[None]:
    """Hold the lock that huggingface_hub uses for this file. Raises TransferStopped."""
    from huggingface_hub.utils import WeakFileLock

    path = lock_file(remote.name, remote.etag)
    with ExitStack() as stack:
        is_locked = False
        while not is_locked:
            if cancel.is_set():
                raise TransferStopped
            try:
                stack.enter_context(WeakFileLock(path, timeout=LOCK_SECONDS))
                is_locked = True
            except TimeoutError:
                continue
        yield


class Patience:
    """Whether and when a request that failed is repeated."""

    def __init__(self, cancel: threading.Event) -> None:
        self._cancel = cancel
        self._tries = 0

    def reset(self) -> None:
        """Begin to count again, because something arrived."""
        self._tries = 0

    def wait(self, error: Exception) -> None:
        """Wait before the next try. Raises `error` if there is none, and TransferStopped."""
        self._tries += 1
        seconds = FIRST_WAIT * 2 ** (self._tries - 1)
        response = getattr(error, "response", None)
        if response is not None:
            if response.status_code not in REPEATED:
                raise error
            seconds = max(seconds, retry_after(error) or 0)
        if self._tries > TRIES or seconds > LONGEST_WAIT:
            raise error
        log.info("%s: trying again in %.0f s", error, seconds)
        if self._cancel.wait(seconds):
            raise TransferStopped


def retry_after(error: Exception) -> int | None:
    """The seconds that the hub asks to wait; None if it asks for none."""
    response = getattr(error, "response", None)
    seconds = "" if response is None else response.headers.get("Retry-After", "").strip()
    return int(seconds) if seconds.isascii() and seconds.isdigit() else None


class _Transfer:
    """The content of one file on its way. file: its part, open for reading and appending."""

    def __init__(self, remote: RemoteFile, file: BinaryIO, cancel: threading.Event) -> None:
        self._remote, self._file, self._cancel = remote, file, cancel
        self._begin()

    def _begin(self) -> None:
        size, is_large = self._remote.size, SHA256.fullmatch(self._remote.etag)
        self._digest = hashlib.sha256() if is_large else hashlib.sha1(b"blob %d\0" % size)
        self._position = 0

    def run(self) -> bool:
        """Receive what is missing; returns whether the whole file has the hub's checksum."""
        import httpx2
        from huggingface_hub.errors import HfHubHTTPError

        self._read_part()
        patience = Patience(self._cancel)
        while self._position < self._remote.size:
            before = self._position
            try:
                self._receive()
            except (HfHubHTTPError, httpx2.TransportError) as error:
                if self._position > before:
                    patience.reset()
                patience.wait(error)
        os.fsync(self._file.fileno())
        return self._position == self._remote.size and self._digest.hexdigest() == self._remote.etag

    def _read_part(self) -> None:
        """Include the part that arrived earlier in the checksum."""
        self._file.seek(0)
        while piece := self._file.read(PIECE_BYTES):
            if self._cancel.is_set():
                raise TransferStopped
            self._digest.update(piece)
            self._position += len(piece)
        if self._position > self._remote.size:
            self._restart()

    def _restart(self) -> None:
        self._file.truncate(0)
        self._begin()

    def _receive(self) -> None:
        """Append what the hub sends from here on. Raises the errors of huggingface_hub."""
        import httpx2
        from huggingface_hub import constants, hf_hub_url
        from huggingface_hub.utils import build_hf_headers, get_session, hf_raise_for_status

        remote = self._remote
        headers = build_hf_headers() | {"Accept-Encoding": "identity"}
        if self._position:
            headers["Range"] = f"bytes={self._position}-"
        url = hf_hub_url(remote.name, remote.file, revision=remote.revision)
        timeout = constants.HF_HUB_DOWNLOAD_TIMEOUT
        with get_session().stream("GET", url, headers=headers, timeout=timeout) as response:
            hf_raise_for_status(response)
            if self._position and response.status_code != 206:
                self._restart()
            for piece in response.iter_bytes():
                if self._cancel.is_set():
                    raise TransferStopped
                self._write(piece)
                if self._position > remote.size:
                    return
        if self._position < remote.size:
            raise httpx2.RemoteProtocolError("the hub ended its answer early")

    def _write(self, piece: bytes) -> None:
        self._file.write(piece)
        self._file.flush()  # For the progress, which is the size of the file.
        self._digest.update(piece)
        self._position += len(piece)
