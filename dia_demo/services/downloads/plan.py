"""The files of a hub model: their sizes, how much of them is here, fetching and removing them."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path

from dia_demo.engine.family import ModelInfo
from dia_demo.errors import InputError
from dia_demo.families.resolve import assumed_info
from dia_demo.hub.cache import is_hub_name
from dia_demo.hub.fetch import remote_files
from dia_demo.hub.partial import part_files, remove, whole_files
from dia_demo.hub.transfer import RemoteFile
from dia_demo.services.models import fetch_description, fetch_files


@dataclass(frozen=True)
class DownloadPlan:
    """The files of a model without its configs, and those of its codec if that is not on this
    machine."""

    model: str
    files: tuple[RemoteFile, ...]

    @property
    def total_bytes(self) -> int:
        return sum(file.size for file in self.files)

    def bytes_here(self) -> int:
        """How much of them has arrived."""
        return sum(file.bytes_here() for file in self.files)


def is_here(info: ModelInfo) -> bool:
    """Whether a take with this model needs no download."""
    if info.is_local or info.folder is None:
        return info.is_local
    return info.has_weights and info.family.codecs.is_here(info.folder)


def plan_download(info: ModelInfo) -> Generator[float, None, DownloadPlan]:
    """Fetch the model's config files, and ask the hub for the sizes of all others.

    Raises InputError where the hub has no such model, or it is not a Dia checkpoint.
    """
    info = yield from fetch_description(info)
    files = yield from remote_files(info.name, info.family.files)
    assert info.folder is not None, "its config was fetched"
    try:
        files += yield from info.family.codecs.remote_files(info.folder)
    except InputError:
        pass  # Its size is unknown; Dia's may come from Descript's own release.
    return DownloadPlan(info.name, tuple(files))


def fetch_all(info: ModelInfo) -> Generator[float, None, None]:
    """Fetch the model and its codec, and compare its tensors with its config.

    Raises InputError where a tensor is missing, surplus or misshapen, or a file cannot be read.
    """
    info = yield from fetch_files(info)
    assert info.folder is not None, "its files were fetched"
    for _ in info.family.codecs.find(info.folder):
        yield 1.0
    info.family.check_files(info)


def bytes_on_disk(model: str) -> int:
    """The disk space of a model's weights, whole or in part. No network."""
    return sum(_size(path) for _, path in _removable_files(model))


def remove_download(model: str) -> None:
    """Remove a model's weights from the hub's cache, whole or in part.

    Raises InputError while another program transfers one of them.
    """
    for name, path in _removable_files(model):
        remove(name, path)


def _removable_files(model: str) -> list[tuple[str, Path]]:
    """Repositories and files: whole files of the codec stay, since other models use it."""
    if not is_hub_name(model):
        return []
    paths = [(model, path) for path in (*part_files(model), *whole_files(model))]
    repository = _codec_repository(model)
    return paths + [(repository, path) for path in part_files(repository)] if repository else paths


def _codec_repository(model: str) -> str:
    # By its name: where its config is damaged, it can still be removed.
    return assumed_info(model).family.codecs.repository


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:  # It became whole, and has another name.
        return 0
