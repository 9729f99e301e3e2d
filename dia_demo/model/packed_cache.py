"""Prepared weights: a model in packed form, stored on disk and memory-mapped at the next start.

There is one file for each checkpoint and precision, in the cache folder; its bytes are the same on
every processor (model/packed_linear.py). A file of another checkpoint or layout, or with damaged
bytes, counts as missing and is written again. Files have gigabytes, so before one is written, those
that will never be read again are removed.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Generator
from contextlib import suppress
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from dia_demo.checkpoint_files import fingerprint
from dia_demo.config import ModelConfig
from dia_demo.errors import InputError
from dia_demo.files import PART, cache_folder, write_atomic
from dia_demo.model.dia import Dia
from dia_demo.model.packed_linear import PackedLinear

# Increase it when the bytes of any precision change their meaning.
LAYOUT = 2
# A smaller model loads as fast from its checkpoint.
LEAST_BYTES = 100 * 2**20
# A partial file that is older was left by a process that has ended.
ABANDONED_SECONDS = 3600

log = logging.getLogger(__name__)


def prepared_file(folder: Path, precision: str) -> Path:
    """The path of a checkpoint's prepared weights in this precision, whether it exists or not."""
    name = "".join(letter if letter.isalnum() else "-" for letter in folder.resolve().name)[:40]
    home = cache_folder() / "prepared" / f"{name}-{fingerprint(folder)}"
    return home / f"{precision}.{LAYOUT}.safetensors"


def read(file: Path, config: ModelConfig, precision: str) -> Generator[float, None, Dia | None]:
    """The model in `file` with memory-mapped weights; None if there is no valid file.

    Yields the fraction checked: every byte is read once, which also loads it into memory.
    """
    if not file.is_file():
        return None
    with torch.device("meta"):
        model = Dia(config)
    try:
        with safe_open(file, framework="pt") as opened:
            metadata = opened.metadata() or {}
            checksums = json.loads(metadata.get("sums", "{}"))
            linears = json.loads(metadata.get("linears", "{}"))
            names = list(opened.keys())
            if metadata.get("layout") != str(LAYOUT) or metadata.get("precision") != precision:
                raise InputError("it has another layout")
            state = {}
            for done, name in enumerate(names):
                state[name] = opened.get_tensor(name)
                if _checksum(state[name]) != checksums[name]:
                    raise InputError(f"{name} is damaged")
                yield (done + 1) / len(names)
        for name, (linear_precision, outputs, inputs) in linears.items():
            linear = PackedLinear(state.pop(name), linear_precision, outputs, inputs)
            above, _, leaf = name.rpartition(".")
            setattr(model.get_submodule(above), leaf, linear)
        model.load_state_dict(state, assign=True)
    except (InputError, SafetensorError, RuntimeError, OSError, ValueError, KeyError) as error:
        log.warning("%s is not used and will be written again: %s", file, error)
        return None
    return model.requires_grad_(False).eval()


def write(model: Dia, file: Path, folder: Path, precision: str) -> str:
    """Store the model of the checkpoint in `folder` as `file`, its `prepared_file`.

    Returns a message for the user if that failed, else "". The file is written whole or not at all.
    """
    state, linears = dict(model.state_dict()), {}
    for name, module in model.named_modules():
        if isinstance(module, PackedLinear):
            state[name] = module.blocks
            linears[name] = (module.precision, module.outputs, module.inputs)
    if sum(tensor.nbytes for tensor in state.values()) < LEAST_BYTES:
        return ""
    metadata = {
        "layout": str(LAYOUT),
        "precision": precision,
        "checkpoint": str(folder.resolve()),
        "linears": json.dumps(linears),
        "sums": json.dumps({name: _checksum(tensor) for name, tensor in state.items()}),
    }
    _remove_stale(file.parent, metadata["checkpoint"])
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with write_atomic(file) as part:
            save_file(state, part, metadata)
        return ""
    except (OSError, SafetensorError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        return (
            f"The prepared weights could not be stored in {file.parent} ({reason}): the next start "
            "prepares them again. Free some space there, or set DIA_CACHE to another folder."
        )


def _remove_stale(home: Path, checkpoint: str) -> None:
    """Remove the files that will never be read again; `home` is the folder of `checkpoint`."""
    for file in home.parent.glob("*/*"):
        # Some systems cannot remove a file in use; it will be removed another time.
        with suppress(OSError, SafetensorError):
            if _is_stale(file, home, checkpoint):
                file.unlink()
                log.info("removed %s: it belongs to no checkpoint any more", file)
            if file.parent != home:
                file.parent.rmdir()


def _is_stale(file: Path, home: Path, checkpoint: str) -> bool:
    """Whether it has another layout, its checkpoint is gone or has changed, or it is partial."""
    if file.suffix == PART:
        return time.time() - file.stat().st_mtime > ABANDONED_SECONDS
    with safe_open(file, framework="pt") as opened:
        metadata = opened.metadata() or {}
    source = metadata.get("checkpoint")
    if metadata.get("layout") != str(LAYOUT) or not source or not Path(source).is_dir():
        return True
    return source == checkpoint and file.parent != home


def _checksum(tensor: Tensor) -> int:
    """The sum over all bytes, eight at a time: any changed byte changes it."""
    flat = tensor.detach().contiguous().view(-1).view(torch.uint8)
    whole = len(flat) // 8 * 8
    ends = int(flat[whole:].sum(dtype=torch.int64))
    if whole and flat.data_ptr() % 8 == 0:
        return int(flat[:whole].view(torch.int64).sum()) + ends
    return int(flat[:whole].clone().view(torch.int64).sum()) + ends
