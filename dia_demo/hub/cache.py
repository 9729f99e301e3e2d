"""The hub's cache on this machine: names, folders and files in it. No network."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path

from dia_demo.files import Stamp, file_stamp

HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*", re.ASCII)
MAIN = "main"


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


def cache_root() -> Path:
    """The folder of the cache, which may not exist yet."""
    from huggingface_hub import constants

    return Path(constants.HF_HUB_CACHE)


def folder_name(name: str) -> str:
    """The name of the repository's folder in the cache."""
    from huggingface_hub.file_download import repo_folder_name

    return repo_folder_name(repo_id=name, repo_type="model")


def cached_config(name: str) -> Path | None:
    """The folder of `name`'s config.json, or None."""
    revision = cache_root() / folder_name(name) / "refs" / MAIN
    try:
        folder = _folder_of_revision(name, revision, file_stamp(revision))
    except FileNotFoundError:
        return None
    return folder if (folder / "config.json").is_file() else None


@lru_cache(maxsize=64)
def _folder_of_revision(name: str, _revision: Path, _stamp: Stamp | None) -> Path:
    """The folder of `name`'s latest revision, as the file `_revision` with this stamp names it."""
    config = cached_file(name, "config.json")
    if config is None:  # It may be fetched later, and an exception is not cached.
        raise FileNotFoundError(name)
    return config.parent


def cached_file(name: str, file: str, revision: str = MAIN) -> Path | None:
    """The path of a file of `name`, or None."""
    from huggingface_hub import try_to_load_from_cache

    path = try_to_load_from_cache(name, file, revision=revision)
    return Path(path) if isinstance(path, str) else None


def is_known_missing(name: str, file: str, revision: str = MAIN) -> bool:
    """Whether the cache has an entry that the repository has no such file."""
    from huggingface_hub import try_to_load_from_cache

    return not isinstance(try_to_load_from_cache(name, file, revision=revision), str | None)


def cached_source(folder: Path) -> tuple[str, str] | None:
    """The hub name and revision of a folder in the cache; None for any other folder."""
    snapshots, repository = folder.parent, folder.parent.parent.name
    if snapshots.name != "snapshots" or not repository.startswith("models--"):
        return None
    return repository.removeprefix("models--").replace("--", "/", 1), folder.name
