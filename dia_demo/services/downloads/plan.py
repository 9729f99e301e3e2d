"""What has to be fetched for a hub model: its files, their sizes, and how much of them is here."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

from dia_demo.codec.files import find_codec, is_codec_here, missing_codec_files
from dia_demo.errors import InputError
from dia_demo.hub.fetch import fetch_checkpoint, missing_files
from dia_demo.hub.transfer import RemoteFile
from dia_demo.model.checkpoint import check_tensors
from dia_demo.services.models import ModelRef


@dataclass(frozen=True)
class DownloadPlan:
    """The files that a model lacks on this machine, its codec's included."""

    model: str
    files: tuple[RemoteFile, ...]

    @property
    def total_bytes(self) -> int:
        return sum(file.size for file in self.files)

    def bytes_here(self) -> int:
        """How much of them has arrived."""
        return sum(file.bytes_here() for file in self.files)


def is_here(model: str) -> bool:
    """Whether a take with this model needs no download."""
    ref = ModelRef.resolve(model)
    if ref.local is not None:
        return True
    return ref.cached is not None and ref.has_weights and is_codec_here(ref.cached)


def plan_download(model: str) -> Generator[float, None, DownloadPlan]:
    """Fetch the model's config files, and ask the hub for the sizes of all others.

    Raises InputError where the hub has no such model, or it is not a Dia checkpoint.
    """
    files = yield from missing_files(model)
    ref = ModelRef.resolve(model)
    ref.describe()  # Raises InputError for a config of something else.
    assert ref.cached is not None, "its config was fetched"
    try:
        files += yield from missing_codec_files(ref.cached)
    except InputError:
        pass  # Descript's own release is tried as well, at an unknown size.
    return DownloadPlan(model, tuple(files))


def fetch_all(model: str) -> Generator[float, None, None]:
    """Fetch the model and its codec, and compare its tensors with its config.

    Raises InputError where a tensor is missing, surplus or misshapen, or a file cannot be read.
    """
    folder = yield from fetch_checkpoint(model)
    for _ in find_codec(folder):
        yield 1.0
    check_tensors(folder)
