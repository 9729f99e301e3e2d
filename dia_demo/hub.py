"""Fetches a checkpoint's files from the hub by name, with progress. Fetches nothing else.

Endpoint, cache folder, offline mode and token are huggingface_hub's own settings (HF_ENDPOINT,
HF_HOME, HF_HUB_OFFLINE, HF_TOKEN).
"""

from __future__ import annotations

import errno
import re
import threading
from collections.abc import Callable, Generator
from functools import lru_cache
from pathlib import Path

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
from dia_demo.files import Stamp, file_stamp

HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*", re.ASCII)
POLL_SECONDS = 0.25
SECONDS_TO_ANSWER = 10


def is_hub_name(name: str) -> bool:
    """Whether `name` is a valid OWNER/NAME of the hub."""
    if not HUB_NAME.fullmatch(name):
        return False
    from huggingface_hub.errors import HFValidationError
    from huggingface_hub.utils import validate_repo_id

    try:
        validate_repo_id(name)
    except HFValidationError:
        return False
    return True


def cached_config(name: str) -> Path | None:
    """The folder of `name`'s config.json in the local cache, or None. No network."""
    from huggingface_hub import constants
    from huggingface_hub.file_download import repo_folder_name

    repository = repo_folder_name(repo_id=name, repo_type="model")
    revision = Path(constants.HF_HUB_CACHE, repository, "refs", "main")
    try:
        folder = _folder_of_revision(name, revision, file_stamp(revision))
    except FileNotFoundError:
        return None
    return folder if (folder / "config.json").is_file() else None


@lru_cache(maxsize=64)
def _folder_of_revision(name: str, _revision: Path, _stamp: Stamp | None) -> Path:
    """The folder of `name`'s latest revision, as the file `_revision` with this stamp names it."""
    config = _cached(name, "config.json")
    if config is None:  # It may be fetched later, and an exception is not cached.
        raise FileNotFoundError(name)
    return config.parent


def ask_hub() -> None:
    """Check quickly that the hub answers: its own client retries for half a minute.

    Raises the connection's exception if it does not.
    """
    from huggingface_hub import constants
    from huggingface_hub.utils import get_session

    get_session().head(constants.ENDPOINT, timeout=SECONDS_TO_ANSWER)


def _cached(name: str, file: str) -> Path | None:
    from huggingface_hub import try_to_load_from_cache

    path = try_to_load_from_cache(name, file)
    return Path(path) if isinstance(path, str) else None


def _known_missing(name: str, file: str) -> bool:
    """Whether the cache has an entry that the repository has no such file."""
    from huggingface_hub import try_to_load_from_cache

    return not isinstance(try_to_load_from_cache(name, file), str | None)


def cached_source(folder: Path) -> tuple[str, str] | None:
    """The hub name and revision of a folder in the hub's cache; None for any other folder."""
    snapshots, repository = folder.parent, folder.parent.parent.name
    if snapshots.name != "snapshots" or not repository.startswith("models--"):
        return None
    return repository.removeprefix("models--").replace("--", "/", 1), folder.name


def fetch_config(name: str) -> Generator[float, None, Path]:
    """Fetch `name`'s config files, without its weights; returns their local folder."""
    folder = (yield from fetch_file(name, "config.json", 0.0, 0.0)).parent
    if is_prepared(folder):
        yield from fetch_file(name, MANIFEST, 0.0, 0.0)
        yield from _fetch_listed(name, folder, lambda file: file.endswith(".json"))
    else:
        yield from fetch_if_there(name, "generation_config.json", 0.0, 0.0)
    return folder


def fetch_checkpoint(name: str) -> Generator[float, None, Path]:
    """Fetch `name`'s config and weights; yields the fraction and returns their local folder.

    Safetensors are preferred over pickles. Raises InputError, with a remedy, if the hub cannot be
    reached or has no such repository.
    """
    folder = yield from fetch_config(name)
    if is_prepared(folder):
        yield from _fetch_listed(name, folder, lambda _: True)
        return folder
    index = yield from fetch_if_there(name, INDEX, 0.0, 0.0)
    if index is not None:
        shards = shard_names(index)
        for done, shard in enumerate(shards):
            yield from fetch_file(name, shard, done / len(shards), 1 / len(shards))
        return folder
    for weights in (SAFETENSORS, *PICKLES):
        if (yield from fetch_if_there(name, weights, 0.0, 1.0)) is not None:
            return folder
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
        path = yield from fetch_file(name, file, done / whole, record.bytes / whole)
        done += record.bytes
        try:
            record.check(path)
        except InputError as error:
            path.resolve().unlink()  # What the cache's name for it points to.
            path.unlink(missing_ok=True)
            raise InputError(
                f"{file} of {name} arrived damaged and was removed: try again. If that does not "
                "help, the file on the hub is not the one that its author exported."
            ) from error


def fetch_if_there(
    name: str, file: str, start: float, share: float
) -> Generator[float, None, Path | None]:
    """`fetch_file`, or None if the repository (offline: the cache) has no such file."""
    from huggingface_hub import is_offline_mode
    from huggingface_hub.errors import RemoteEntryNotFoundError

    if _cached(name, file) is None and (is_offline_mode() or _known_missing(name, file)):
        return None
    try:
        return (yield from fetch_file(name, file, start, share))
    except InputError as error:
        if isinstance(error.__cause__, RemoteEntryNotFoundError):
            return None
        raise


def fetch_file(name: str, file: str, start: float, share: float) -> Generator[float, None, Path]:
    """A file from the cache, or fetched in a thread while this yields the fraction done."""
    cached = _cached(name, file)
    if cached is not None:
        yield start + share
        return cached
    from huggingface_hub import hf_hub_download, is_offline_mode
    from tqdm.auto import tqdm

    meter: list[tqdm] = []

    class Meter(tqdm):
        def __init__(self, *args, **kwargs) -> None:
            kwargs.pop("name", None)
            super().__init__(*args, **(kwargs | {"disable": False, "file": _Silent()}))
            meter.append(self)

    outcome: list[Path | Exception] = []

    def work() -> None:
        try:
            if not is_offline_mode():
                ask_hub()
            outcome.append(Path(hf_hub_download(name, file, tqdm_class=Meter)))
        except Exception as error:  # Raised in the caller's thread below.
            outcome.append(error)

    thread = threading.Thread(target=work, name=f"fetch {file}", daemon=True)
    thread.start()
    while thread.is_alive():
        thread.join(POLL_SECONDS)
        last = meter[-1] if meter else None
        yield start + share * (last.n / last.total if last is not None and last.total else 0.0)
    if isinstance(outcome[0], Exception):
        raise _explain(name, file, outcome[0]) from outcome[0]
    return outcome[0]


class _Silent:
    """Discards tqdm's output: the page and the command line show progress themselves."""

    def write(self, _text: str) -> None: ...

    def flush(self) -> None: ...


def _explain(name: str, file: str, error: Exception) -> InputError:
    from huggingface_hub import errors

    if isinstance(error, errors.GatedRepoError):
        return InputError(f"{name} asks you to accept its terms on the hub and to set HF_TOKEN.")
    if isinstance(error, errors.RepositoryNotFoundError):
        return InputError(f"The hub has no model {name}: check the spelling, or set HF_TOKEN.")
    if getattr(getattr(error, "response", None), "status_code", None) in (401, 403):
        return InputError(f"The hub does not let you fetch {name}: set HF_TOKEN to your token.")
    if isinstance(error, errors.RemoteEntryNotFoundError):
        return InputError(f"{name} on the hub has no file {file}: it is not a Dia checkpoint.")
    if isinstance(error, OSError) and error.errno == errno.ENOSPC:
        return InputError(f"The disk is full: {file} of {name} could not be stored.")
    return InputError(
        f"{name} could not be downloaded: the hub cannot be reached from this machine, and {file} "
        "is not in its cache. Check the internet connection and try again, or use the nano voice, "
        "which works offline."
    )
