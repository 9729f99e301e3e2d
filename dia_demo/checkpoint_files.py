"""The files of a checkpoint's folder: which contain its weights, and whether they have changed.

A folder with prepared weights (`python -m dia_demo export`) has a manifest, which lists the files
that loading reads, with their checksums. Reading tensors is model/weights/tensor_files.py.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from dia_demo.errors import InputError
from dia_demo.files import Stamp, file_stamp
from dia_demo.untrusted import read_json

SAFETENSORS = "model.safetensors"
INDEX = "model.safetensors.index.json"
# In order of preference; pickles last. nari-labs/dia names its files dia-v1.pth (2025-06).
PICKLES = ("dia-v1.pth", "pytorch_model.bin", "dia-v0_1.pth")
SHARD = re.compile(r"[A-Za-z0-9][\w.-]*\.safetensors")
ADAPTER_CONFIG = "adapter_config.json"
ADAPTER = (
    "it is a LoRA adapter, not the weights of a model. Merge it into its base model, and use the "
    "folder of the result."
)
# In config.json of a folder with prepared weights, as `quant_method` of `quantization_config`.
QUANT_METHOD = "dia_demo"
MANIFEST = "prepared.json"
MANIFEST_FORMAT = 1
LISTED_FILE = re.compile(r"(?:codec/)?[A-Za-z0-9][\w.-]*", re.ASCII)
SHA256 = re.compile(r"[0-9a-f]{64}")
HASHED_AT_ONCE = 2**22
# Safetensors allows no longer header.
LONGEST_HEADER = 10**8
# Bytes read from both ends of a weight file: rewriting it changes its size, time or these.
ENDS = 65536
COPY_AGAIN = "copy or fetch this model again."


@dataclass(frozen=True)
class FileRecord:
    """Size and SHA-256 of a file, which a copy of it must have."""

    bytes: int
    sha256: str

    @classmethod
    def from_file(cls, path: Path) -> FileRecord:
        """The record of a file as it is now; reads all of it."""
        digest = hashlib.sha256()
        with open(path, "rb") as file:
            while piece := file.read(HASHED_AT_ONCE):
                digest.update(piece)
        return cls(path.stat().st_size, digest.hexdigest())

    def check(self, path: Path) -> None:
        """Raise InputError, naming the file, unless it is as recorded."""
        self.check_size(path)
        if self.from_file(path) != self:
            raise InputError(f"{path} is corrupted (its checksum differs): {COPY_AGAIN}")

    def check_size(self, path: Path) -> None:
        """Raise InputError, naming the file, unless it is there and has the recorded size."""
        if not path.is_file():
            raise InputError(f"{path} is missing: {COPY_AGAIN}")
        size = path.stat().st_size
        if size != self.bytes:
            raise InputError(
                f"{path} is corrupted ({size:,} bytes, expected {self.bytes:,}): {COPY_AGAIN}"
            )


@dataclass(frozen=True)
class Manifest:
    """What loading needs of a folder's manifest.

    files: by their names in the folder, what loading reads. weights: the name of the file with the
    prepared weights; header_sha256: of its header, whose tensors have checksums of their own.
    """

    weights: str
    header_sha256: str
    files: Mapping[str, FileRecord]


def read_manifest(folder: Path) -> Manifest:
    """The manifest of a folder with prepared weights.

    Raises InputError where it is missing, damaged, or of a later program.
    """
    path = folder / MANIFEST
    if not path.is_file():
        raise InputError(f"{path} is missing: {COPY_AGAIN}")
    raw = read_json(path)
    if raw.pop("sha256", None) != _digest(raw):
        raise InputError(f"{path} is corrupted (its checksum differs): {COPY_AGAIN}")
    if raw.get("format") != MANIFEST_FORMAT:
        raise InputError(
            f"{path} has format {raw.get('format')!r}, and this program reads {MANIFEST_FORMAT}: "
            "install the latest version of the program, or export the model again."
        )
    try:
        return _parse_manifest(raw)
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"{path} is not a manifest of prepared weights ({error}).") from error


def write_manifest(folder: Path, manifest: Manifest, about: Mapping[str, Any]) -> None:
    """Write the manifest of `folder`. about: what it says beyond what loading needs."""
    content = {"format": MANIFEST_FORMAT} | dict(about) | asdict(manifest)
    content["sha256"] = _digest(content)
    (folder / MANIFEST).write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def _digest(content: dict) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _parse_manifest(raw: dict) -> Manifest:
    files = {str(name): FileRecord(**record) for name, record in raw["files"].items()}
    for name, record in files.items():
        is_valid = isinstance(record.bytes, int) and SHA256.fullmatch(record.sha256)
        if not LISTED_FILE.fullmatch(name) or not is_valid:
            raise ValueError(f"{name!r} has an invalid entry")
    weights, header = raw["weights"], raw["header_sha256"]
    if weights not in files or not SHARD.fullmatch(weights):
        raise ValueError(f"{weights!r} is not a listed weight file")
    return Manifest(weights, header, files)


def is_prepared(folder: Path) -> bool:
    """Whether the checkpoint in `folder`, by its config.json, has prepared weights."""
    section = read_json(folder / "config.json").get("quantization_config")
    return isinstance(section, dict) and section.get("quant_method") == QUANT_METHOD


def check_configs(folder: Path) -> None:
    """Raise InputError unless the config files of a folder with a manifest are as it lists them.

    Of any other checkpoint nothing is checked.
    """
    if not (folder / MANIFEST).is_file():
        return
    manifest = read_manifest(folder)
    for name, record in manifest.files.items():
        if name.endswith(".json"):
            record.check(folder / name)


def header_sha256(path: Path) -> str:
    """The SHA-256 of a safetensors file's header. Raises ValueError where it has none."""
    with open(path, "rb") as file:
        start = file.read(8)
        length = int.from_bytes(start, "little")
        if len(start) < 8 or length > LONGEST_HEADER:
            raise ValueError("it has no valid header")
        return hashlib.sha256(start + file.read(length)).hexdigest()


def weight_files(folder: Path) -> list[Path]:
    """The weight files of a checkpoint folder. Raises InputError if there are none."""
    if (folder / MANIFEST).is_file():
        weights = folder / read_manifest(folder).weights
        if not weights.is_file():
            raise InputError(f"{weights} is missing: {COPY_AGAIN}")
        return [weights]
    index = folder / INDEX
    if index.is_file():
        files = [folder / name for name in shard_names(index)]
        missing = [file.name for file in files if not file.is_file()]
        if missing:
            raise InputError(f"{index} names files that are missing: {', '.join(missing)}.")
        return files
    for name in (SAFETENSORS, *PICKLES):
        if (folder / name).is_file():
            return [folder / name]
    others = sorted(folder.glob("*.safetensors")) + sorted(folder.glob("*.pth"))
    if len(others) == 1:
        return others
    raise InputError(
        f"{folder} contains no weights: {INDEX}, {SAFETENSORS} or {' or '.join(PICKLES)} is needed."
    )


def fingerprint(folder: Path) -> str:
    """12 hex digits that change with a checkpoint's config or weights.

    Of the weights, only names, sizes, times and both ends of each file are read.
    """
    files = (folder / "config.json", *_weight_files(folder))
    return _fingerprint(tuple((file, file_stamp(file)) for file in files))


@lru_cache(maxsize=64)
def _fingerprint(files: tuple[tuple[Path, Stamp | None], ...]) -> str:
    digest = hashlib.sha256()
    for file, stamp in files:
        if stamp is None or not file.is_file():
            continue
        changed, size, _ = stamp
        digest.update(f"{file.name} {size} ".encode())
        if file.suffix != ".json":
            digest.update(str(changed).encode())
        with open(file, "rb") as opened:
            digest.update(opened.read(ENDS))
            opened.seek(max(0, size - ENDS))
            digest.update(opened.read(ENDS))
    return digest.hexdigest()[:12]


def _weight_files(folder: Path) -> list[Path]:
    try:
        return weight_files(folder)
    except InputError:
        return []


def shard_names(index: Path) -> list[str]:
    """The files that an index lists; it is parsed again only when it changes.

    Raises InputError unless all are in its folder.
    """
    return list(_shard_names(index, file_stamp(index)))


@lru_cache(maxsize=16)
def _shard_names(index: Path, _stamp: Stamp | None) -> tuple[str, ...]:
    weight_map = read_json(index).get("weight_map")
    names = set(map(str, weight_map.values())) if isinstance(weight_map, dict) else set()
    if not names or not all(SHARD.fullmatch(name) for name in names):
        raise InputError(
            f"{index} must map tensors to .safetensors files in its folder: fetch it again."
        )
    return tuple(sorted(names))
