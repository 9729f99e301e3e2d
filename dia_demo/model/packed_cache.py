"""Prepared weights: a model as its steps read it, kept on disk and mapped on the next start.

One file for each checkpoint and precision, in the cache folder; its bytes are the same on every
processor (model/packed_linear.py). A file that does not fit, of another checkpoint, layout or with
damaged bytes, counts as missing and is written again. They are gigabytes, so whoever writes one
first removes those that no start will read again.
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

# Raise it when the bytes of any precision change their meaning.
LAYOUT = 2
# A smaller model is read as fast from its checkpoint.
LEAST_BYTES = 100 * 2**20
# A file half written for so long was left by a process that is gone.
ABANDONED_SECONDS = 3600

log = logging.getLogger(__name__)


def prepared_file(folder: Path, precision: str) -> Path:
    """Where a checkpoint's weights in this precision are kept, whether they are there or not."""
    name = "".join(letter if letter.isalnum() else "-" for letter in folder.resolve().name)[:40]
    home = cache_folder() / "prepared" / f"{name}-{fingerprint(folder)}"
    return home / f"{precision}.{LAYOUT}.safetensors"


def read(file: Path, config: ModelConfig, precision: str) -> Generator[float, None, Dia | None]:
    """The model in `file`, its weights mapped; None where there is none that fits.

    Yields the fraction checked: every byte is read once, which also brings it into memory.
    """
    if not file.is_file():
        return None
    with torch.device("meta"):
        model = Dia(config)
    try:
        with safe_open(file, framework="pt") as opened:
            told = opened.metadata() or {}
            sums = json.loads(told.get("sums", "{}"))
            linears = json.loads(told.get("linears", "{}"))
            names = list(opened.keys())
            if told.get("layout") != str(LAYOUT) or told.get("precision") != precision:
                raise InputError("it is of another layout")
            state = {}
            for done, name in enumerate(names):
                state[name] = opened.get_tensor(name)
                if _sum(state[name]) != sums[name]:
                    raise InputError(f"{name} is damaged")
                yield (done + 1) / len(names)
        for name, (kind, outputs, inputs) in linears.items():
            linear = PackedLinear(state.pop(name), kind, outputs, inputs)
            above, _, leaf = name.rpartition(".")
            setattr(model.get_submodule(above), leaf, linear)
        model.load_state_dict(state, assign=True)
    except (InputError, SafetensorError, RuntimeError, OSError, ValueError, KeyError) as error:
        log.warning("%s is not used and will be made again: %s", file, error)
        return None
    return model.requires_grad_(False).eval()


def keep(model: Dia, file: Path, folder: Path, precision: str) -> str:
    """Write the model of the checkpoint in `folder`, for the next start, as its `prepared_file`.

    Returns what went wrong, in words for a person, or "". The file appears whole or not at all.
    """
    state, linears = dict(model.state_dict()), {}
    for name, module in model.named_modules():
        if isinstance(module, PackedLinear):
            state[name] = module.blocks
            linears[name] = (module.precision, module.outputs, module.inputs)
    if sum(tensor.nbytes for tensor in state.values()) < LEAST_BYTES:
        return ""
    told = {
        "layout": str(LAYOUT),
        "precision": precision,
        "checkpoint": str(folder.resolve()),
        "linears": json.dumps(linears),
        "sums": json.dumps({name: _sum(tensor) for name, tensor in state.items()}),
    }
    _remove_stale(file.parent, told["checkpoint"])
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with write_atomic(file) as part:
            save_file(state, part, told)
        return ""
    except (OSError, SafetensorError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        return (
            f"The prepared weights could not be kept in {file.parent} ({reason}): the next start "
            "prepares them again. Free some space there, or name another folder in DIA_CACHE."
        )


def _remove_stale(home: Path, checkpoint: str) -> None:
    """Remove the files that no start will read again; `home` holds those that fit `checkpoint`."""
    for one in home.parent.glob("*/*"):
        # One that is in use cannot be removed everywhere: it is stale the next time too.
        with suppress(OSError, SafetensorError):
            if _is_stale(one, home, checkpoint):
                one.unlink()
                log.info("removed %s: it fits no checkpoint any more", one)
            if one.parent != home:
                one.parent.rmdir()


def _is_stale(file: Path, home: Path, checkpoint: str) -> bool:
    """Of another layout, of a checkpoint that is gone or has changed, or half written."""
    if file.suffix == PART:
        return time.time() - file.stat().st_mtime > ABANDONED_SECONDS
    with safe_open(file, framework="pt") as opened:
        told = opened.metadata() or {}
    of = told.get("checkpoint")
    if told.get("layout") != str(LAYOUT) or not of or not Path(of).is_dir():
        return True
    return of == checkpoint and file.parent != home


def _sum(tensor: Tensor) -> int:
    """A sum over all bytes, eight at a time, that any changed byte changes."""
    flat = tensor.detach().contiguous().view(-1).view(torch.uint8)
    whole = len(flat) // 8 * 8
    ends = int(flat[whole:].sum(dtype=torch.int64))
    if whole and flat.data_ptr() % 8 == 0:
        return int(flat[:whole].view(torch.int64).sum()) + ends
    return int(flat[:whole].clone().view(torch.int64).sum()) + ends
