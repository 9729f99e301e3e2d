"""The model that an export is made from: its name, revision, files, codec and licence."""

from __future__ import annotations

import re
import shutil
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path

from dia_demo.checkpoint_files import FileRecord, weight_files
from dia_demo.engine.family import ModelInfo, Profile
from dia_demo.files import ROOT
from dia_demo.hub.cache import cached_config, cached_source
from dia_demo.hub.fetch import fetch_if_there
from dia_demo.services.models import fetch_files

LICENSE_FILES = ("LICENSE", "LICENSE.txt", "LICENSE.md", "NOTICE")
FRONT_MATTER = re.compile(r"\A---\s*\n(.*?)\n---\s*\n", re.DOTALL)
LICENSE_LINE = re.compile(r"^license:\s*[\"']?([\w.-]+)", re.MULTILINE)
LONGEST_README = 10**6


@dataclass(frozen=True)
class BaseModel:
    """info: the model. name: as `PreparedWeights.base`, and its profile. revision: the hub's, None
    of a folder elsewhere.

    files: its weight files. license: the hub's identifier, None where it is not known. codec: what
    decodes its codes, as the manifest says it.
    """

    info: ModelInfo
    name: str
    profile: Profile
    revision: str | None
    files: dict[str, FileRecord]
    license: str | None
    codec: dict[str, str | None]

    @property
    def is_on_hub(self) -> bool:
        return "/" in self.name.removeprefix("./")

    @property
    def short_name(self) -> str:
        return self.name.rpartition("/")[2]


def fetch_base(info: ModelInfo) -> Generator[float, None, ModelInfo]:
    """The model to export, fetched if it is a hub model; yields the fraction."""
    info = yield from fetch_files(info)
    if not info.is_local and info.profile.license is None:
        yield from fetch_if_there(info.name, "README.md", 1.0, 0.0)
    return info


def describe_base(info: ModelInfo) -> Generator[float, None, BaseModel]:
    """What is known of the model; yields the fraction of its files that were read."""
    folder, name = info.folder, info.name
    assert folder is not None, "it was fetched"
    source = cached_source(folder)
    if info.is_local and not info.is_embedded:
        name = source[0] if source else f"./{folder.resolve().name}"
    files = weight_files(folder)
    records: dict[str, FileRecord] = {}
    for file in files:
        yield len(records) / len(files)
        records[file.name] = FileRecord.from_file(file)
    revision = source[1] if source else None
    profile = info.family.profiles.get(name, info.family.other)
    known = profile.license or _license_of(folder)
    return BaseModel(info, name, profile, revision, records, known, _codec_of(info, folder))


def _codec_of(info: ModelInfo, folder: Path) -> dict[str, str | None]:
    if (folder / "codec").is_dir():
        return {"folder": "codec"}
    repository = info.family.codecs.repository
    cached = cached_config(repository)
    return {"repository": repository, "revision": cached.name if cached else None}


def _license_of(folder: Path) -> str | None:
    try:
        with open(folder / "README.md", encoding="utf-8", errors="replace") as file:
            front = FRONT_MATTER.match(file.read(LONGEST_README))
    except OSError:
        return None
    line = LICENSE_LINE.search(front[1]) if front else None
    return line[1].lower() if line else None


def copy_license(base: BaseModel, target: Path) -> list[str]:
    """Copy the texts of a model's licence, as far as they are here; returns the files' names."""
    folder = base.info.folder
    assert folder is not None, "it was fetched"
    names = [name for name in LICENSE_FILES if (folder / name).is_file()]
    for name in names:
        shutil.copyfile(folder / name, target / name)
    if not names and base.profile.license:
        names = ["LICENSE", "NOTICE"]
        for name in names:
            shutil.copyfile(ROOT / name, target / name)
    return names
