"""Fetches a checkpoint's files from the hub by name, with progress. Fetches nothing else.

Endpoint, cache folder, offline mode, token and proxies are huggingface_hub's own settings
(HF_ENDPOINT, HF_HOME, HF_HUB_OFFLINE, HF_TOKEN, HTTPS_PROXY). All files of a model are those of one
revision: that of its config.json.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from typing import TypeVar

from dia_demo.checkpoint_files import (
    INDEX,
    MANIFEST,
    PICKLES,
    SAFETENSORS,
    is_prepared,
    read_manifest,
    shard_names,
)
from dia_demo.errors import InputError
from dia_demo.hub.cache import MAIN, cached_file, is_known_missing
from dia_demo.hub.explain import explain
from dia_demo.hub.transfer import RemoteFile, locate, transfer
from dia_demo.machine.background import Background
from dia_demo.task import Task

POLL_SECONDS = 0.25

Result = TypeVar("Result")


def fetch_config(name: str) -> Generator[float, None, Path]:
    """Fetch `name`'s config files, without its weights; returns their local folder."""
    folder = (yield from fetch_file(name, "config.json", 0.0, 0.0)).parent
    if is_prepared(folder):
        yield from fetch_file(name, MANIFEST, 0.0, 0.0, folder.name)
        yield from _fetch_listed(name, folder, lambda file: file.endswith(".json"))
    else:
        yield from fetch_if_there(name, "generation_config.json", 0.0, 0.0, folder.name)
    return folder


def fetch_checkpoint(name: str, others: Sequence[str] = ()) -> Generator[float, None, Path]:
    """Fetch `name`'s config and weights; yields the fraction and returns their local folder.

    others: further files, of which those are fetched that are there.

    Safetensors are preferred over pickles. Closing the generator stops the download, and the next
    one continues it. Raises InputError, with a remedy, if the hub cannot be reached or has no such
    repository.
    """
    folder = yield from fetch_config(name)
    if is_prepared(folder):
        yield from _fetch_listed(name, folder, lambda _: True)
        return folder
    for file in others:
        yield from fetch_if_there(name, file, 0.0, 0.0, folder.name)
    files = yield from _weight_names(name, folder)
    for done, file in enumerate(files):
        yield from fetch_file(name, file, done / len(files), 1 / len(files), folder.name)
    return folder


def remote_files(name: str, others: Sequence[str] = ()) -> Generator[float, None, list[RemoteFile]]:
    """The files of `fetch_checkpoint` but for config files, with sizes. Fetches only those."""
    folder = yield from fetch_config(name)
    if is_prepared(folder):
        files = [file for file in read_manifest(folder).files if not file.endswith(".json")]
    else:
        files = yield from _weight_names(name, folder)
        for file in others:
            if (yield from _is_there(name, file, folder.name)):
                files.append(file)
    return (yield from locate_all(name, files, folder.name))


def locate_all(
    name: str, files: Sequence[str], revision: str = MAIN
) -> Generator[float, None, list[RemoteFile]]:
    """The files as the hub describes them."""
    remotes = []
    for file in files:
        remotes.append((yield from _Request(name, file, revision).steps(_locate)))
    return remotes


def _weight_names(name: str, folder: Path) -> Generator[float, None, list[str]]:
    """The weight files of a repository whose config files are in `folder`."""
    index = yield from fetch_if_there(name, INDEX, 0.0, 0.0, folder.name)
    if index is not None:
        return shard_names(index)
    for weights in (SAFETENSORS, *PICKLES):
        if (yield from _is_there(name, weights, folder.name)):
            return [weights]
    raise InputError(
        f"{name} has none of {INDEX}, {SAFETENSORS} and {', '.join(PICKLES)} on the hub, or they "
        "are not in the local cache and the hub cannot be reached."
    )


def _fetch_listed(
    name: str, folder: Path, is_wanted: Callable[[str], bool]
) -> Generator[float, None, None]:
    """Fetch files that the manifest in `folder` lists, and check those that were fetched now.

    Raises InputError for a file that differs from the manifest, after removing it from the cache.
    """
    files = {
        file: record
        for file, record in read_manifest(folder).files.items()
        if is_wanted(file) and not (folder / file).is_file()
    }
    whole, done = sum(record.bytes for record in files.values()) or 1, 0
    for file, record in files.items():
        path = yield from fetch_file(name, file, done / whole, record.bytes / whole, folder.name)
        done += record.bytes
        try:
            record.check(path)
        except InputError as error:
            path.resolve().unlink()  # What the cache's name for it points to.
            path.unlink(missing_ok=True)
            raise InputError(
                f"{file} of {name} arrived corrupted and was removed: try again. If that does not "
                "help, the file on the hub is not the one that its author exported."
            ) from error


def fetch_if_there(
    name: str, file: str, start: float, share: float, revision: str = MAIN
) -> Generator[float, None, Path | None]:
    """`fetch_file`, or None if the repository (offline: the cache) has no such file."""
    if not (yield from _is_there(name, file, revision)):
        return None
    return (yield from fetch_file(name, file, start, share, revision))


def _is_there(name: str, file: str, revision: str) -> Generator[float, None, bool]:
    """Whether the repository (offline: the cache) has such a file. Does not fetch it."""
    from huggingface_hub import is_offline_mode
    from huggingface_hub.errors import RemoteEntryNotFoundError

    if cached_file(name, file, revision) is not None:
        return True
    if is_offline_mode() or is_known_missing(name, file, revision):
        return False
    try:
        yield from _Request(name, file, revision).steps(_locate)
    except InputError as error:
        if isinstance(error.__cause__, RemoteEntryNotFoundError):
            return False
        raise
    return True


def fetch_file(
    name: str, file: str, start: float, share: float, revision: str = MAIN
) -> Generator[float, None, Path]:
    """A file from the cache, or fetched in a thread while this yields the fraction done.

    Closing the generator stops the transfer. What arrived is kept.
    """
    cached = cached_file(name, file, revision)
    if cached is not None:
        yield start + share
        return cached
    request = _Request(name, file, revision)
    for fraction in (steps := Task(request.steps(_fetch))):
        yield start + share * fraction
    return steps.result


class _Request:
    """Work for one file in a thread of its own. remote: what the hub says of it, once known."""

    def __init__(self, name: str, file: str, revision: str) -> None:
        self.name, self.file, self.revision = name, file, revision
        self.remote: RemoteFile | None = None
        self.cancel = threading.Event()

    def steps(self, work: Callable[[_Request], Result]) -> Generator[float, None, Result]:
        """Run `work` and yield the fraction that has arrived. Raises InputError."""
        outcome: list[Result] = []
        failure: list[Exception] = []

        def run() -> None:
            try:
                outcome.append(work(self))
            except Exception as error:  # Raised in the caller's thread below.
                failure.append(error)

        background = Background(f"fetch {self.file}", run, self.cancel).start()
        try:
            while background.is_running:
                background.join(POLL_SECONDS)
                yield self._fraction()
        finally:
            self.cancel.set()
        if failure:
            raise explain(self.name, self.file, failure[0]) from failure[0]
        return outcome[0]

    def _fraction(self) -> float:
        remote = self.remote
        return remote.bytes_here() / remote.size if remote is not None and remote.size else 0.0


def _locate(request: _Request) -> RemoteFile:
    """Ask for size and checksum; that a file is missing is noted in the cache."""
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import RemoteEntryNotFoundError

    try:
        return locate(request.name, request.file, request.revision, request.cancel)
    except RemoteEntryNotFoundError:
        hf_hub_download(request.name, request.file, revision=request.revision, dry_run=True)
        raise


def _fetch(request: _Request) -> Path:
    from huggingface_hub import hf_hub_download, is_offline_mode

    if not is_offline_mode():
        request.remote = _locate(request)
        if request.remote.has_checksum:
            transfer(request.remote, request.cancel)
    # The content is in the cache: this adds its name, or fetches it where it has no checksum.
    path = Path(hf_hub_download(request.name, request.file, revision=request.revision))
    remote = request.remote
    if remote is not None and remote.has_checksum and not path.is_symlink():
        remote.blob.unlink(missing_ok=True)  # Where links are not possible, it is a copy.
    return path
