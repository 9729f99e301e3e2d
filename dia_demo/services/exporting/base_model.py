"""The model that an export is made from: its name, revision, files, codec and licence."""

from __future__ import annotations

import re
import shutil
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path

from dia_demo.checkpoint_files import FileRecord, weight_files
from dia_demo.codec.files import HUB_NAME as CODEC_NAME
from dia_demo.files import ROOT
from dia_demo.hub.cache import cached_config, cached_source
from dia_demo.hub.fetch import fetch_checkpoint, fetch_if_there
from dia_demo.model.checkpoint import EMBEDDED
from dia_demo.services.models import DIA_NAME, ModelRef

# Models whose licence is known, although no file of theirs says so.
LICENSES = {EMBEDDED: "apache-2.0", DIA_NAME: "apache-2.0"}
LICENSE_FILES = ("LICENSE", "LICENSE.txt", "LICENSE.md", "NOTICE")
FRONT_MATTER = re.compile(r"\A---\s*\n(.*?)\n---\s*\n", re.DOTALL)
LICENSE_LINE = re.compile(r"^license:\s*[\"']?([\w.-]+)", re.MULTILINE)
LONGEST_README = 10**6


@dataclass(frozen=True)
class BaseModel:
    """name: as `PreparedWeights.base`. revision: the hub's, None of a folder elsewhere.

    files: its weight files. license: the hub's identifier, None where it is not known. codec: what
    decodes its codes, as the manifest says it.
    """

    name: str
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


def fetch_base(name: str) -> Generator[float, None, Path]:
    """The folder of the model to export, fetched if it is a hub model; yields the fraction."""
    folder = ModelRef.resolve(name).local
    if folder is None:
        folder = yield from fetch_checkpoint(name)
        if name not in LICENSES:
            yield from fetch_if_there(name, "README.md", 1.0, 0.0)
    return folder


def describe_base(name: str, folder: Path) -> Generator[float, None, BaseModel]:
    """What is known of the model in `folder`; yields the fraction of its files that were read."""
    source = cached_source(folder)
    if name != EMBEDDED and ModelRef.resolve(name).local is not None:
        name = source[0] if source else f"./{folder.resolve().name}"
    files = weight_files(folder)
    records: dict[str, FileRecord] = {}
    for file in files:
        yield len(records) / len(files)
        records[file.name] = FileRecord.of(file)
    revision = source[1] if source else None
    return BaseModel(name, revision, records, _license_of(name, folder), _codec_of(folder))


def _codec_of(folder: Path) -> dict[str, str | None]:
    if (folder / "codec").is_dir():
        return {"folder": "codec"}
    cached = cached_config(CODEC_NAME)
    return {"repository": CODEC_NAME, "revision": cached.name if cached else None}


def _license_of(name: str, folder: Path) -> str | None:
    if name in LICENSES:
        return LICENSES[name]
    try:
        with open(folder / "README.md", encoding="utf-8", errors="replace") as file:
            front = FRONT_MATTER.match(file.read(LONGEST_README))
    except OSError:
        return None
    line = LICENSE_LINE.search(front[1]) if front else None
    return line[1].lower() if line else None


def copy_license(base: BaseModel, folder: Path, target: Path) -> list[str]:
    """Copy the texts of a model's licence, as far as they are here; returns the files' names."""
    names = [name for name in LICENSE_FILES if (folder / name).is_file()]
    for name in names:
        shutil.copyfile(folder / name, target / name)
    if not names and base.name in LICENSES:
        names = ["LICENSE", "NOTICE"]
        for name in names:
            shutil.copyfile(ROOT / name, target / name)
    return names
