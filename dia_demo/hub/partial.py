"""Weights of a model in the hub's cache, whole or in part, and their removal. No network."""

from __future__ import annotations

from pathlib import Path

from dia_demo.checkpoint_files import (
    INDEX,
    MANIFEST,
    PICKLES,
    SAFETENSORS,
    read_manifest,
    shard_names,
)
from dia_demo.errors import InputError
from dia_demo.hub.cache import cache_root, cached_config, folder_name
from dia_demo.hub.transfer import INCOMPLETE, lock_file

# How long a removal waits for a transfer that is ending.
SECONDS_TO_END = 15.0


def part_files(name: str) -> list[Path]:
    """The parts of files that have not arrived whole, of whatever revision."""
    return sorted((cache_root() / folder_name(name) / "blobs").glob(f"*{INCOMPLETE}"))


def whole_files(name: str) -> list[Path]:
    """The weight files that are whole."""
    folder = cached_config(name)
    if folder is None:
        return []
    try:
        paths = [folder / file for file in _weight_names(folder)]
    except InputError:  # A damaged index or manifest names none.
        return []
    return [path for path in paths if path.is_file()]


def _weight_names(folder: Path) -> list[str]:
    if (folder / MANIFEST).is_file():
        return [file for file in read_manifest(folder).files if not file.endswith(".json")]
    if (folder / INDEX).is_file():
        return shard_names(folder / INDEX)
    return [SAFETENSORS, *PICKLES]


def remove(name: str, path: Path) -> None:
    """Remove a file of `part_files` or `whole_files` from the cache of the repository `name`.

    Raises InputError while another process transfers it.
    """
    from huggingface_hub.utils import WeakFileLock

    content = path.resolve()  # The cache has a link to it, or itself where links are impossible.
    etag = content.name.partition(".")[0]
    try:
        with WeakFileLock(lock_file(name, etag), timeout=SECONDS_TO_END):
            content.unlink(missing_ok=True)
            path.unlink(missing_ok=True)
    except TimeoutError:
        raise InputError(
            f"A file of {name} is being downloaded by another program and was not deleted. Stop "
            "that program first, or wait for it to finish."
        ) from None
