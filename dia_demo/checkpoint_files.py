"""The files of a checkpoint's folder: which contain its weights, and whether they have changed.

Reading tensors from them is model/tensor_files.py.
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from dia_demo.errors import InputError
from dia_demo.untrusted import read_json

SAFETENSORS = "model.safetensors"
INDEX = "model.safetensors.index.json"
# In order of preference; pickles last. nari-labs/dia names its files dia-v1.pth (2025-06).
PICKLES = ("dia-v1.pth", "pytorch_model.bin", "dia-v0_1.pth")
SHARD = re.compile(r"[A-Za-z0-9][\w.-]*\.safetensors")
# Bytes read from both ends of a weight file: rewriting it changes its size, time or these.
ENDS = 65536


def weight_files(folder: Path) -> list[Path]:
    """The weight files of a checkpoint folder. Raises InputError if there are none."""
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
    digest = hashlib.sha256()
    for file in (folder / "config.json", *_weight_files(folder)):
        if not file.is_file():
            continue
        stat = file.stat()
        digest.update(f"{file.name} {stat.st_size} ".encode())
        if file.suffix != ".json":
            digest.update(str(stat.st_mtime_ns).encode())
        with open(file, "rb") as opened:
            digest.update(opened.read(ENDS))
            opened.seek(max(0, stat.st_size - ENDS))
            digest.update(opened.read(ENDS))
    return digest.hexdigest()[:12]


def _weight_files(folder: Path) -> list[Path]:
    try:
        return weight_files(folder)
    except InputError:
        return []


def shard_names(index: Path) -> list[str]:
    """The files that an index lists. Raises InputError unless all are in its folder."""
    weight_map = read_json(index).get("weight_map")
    names = set(map(str, weight_map.values())) if isinstance(weight_map, dict) else set()
    if not names or not all(SHARD.fullmatch(name) for name in names):
        raise InputError(
            f"{index} must map tensors to .safetensors files in its folder: fetch it again."
        )
    return sorted(names)
