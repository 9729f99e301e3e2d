"""Prepared weights: a model in packed form, stored on disk and memory-mapped at the next start.

Their bytes are the same on every processor (model/packed_linear.py). In the cache folder there is
one file for each checkpoint and precision. A file of another checkpoint or layout, or with damaged
bytes, counts as missing there and is written again. Files have gigabytes, so before one is written,
those that will never be read again are removed. A folder that `python -m dia_demo export` wrote
contains the same file, and there is nothing to write it again from: damage is an error.
"""

from __future__ import annotations

import json
import logging
import time
import zlib
from collections.abc import Callable, Generator, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from dia_demo.checkpoint_files import COPY_AGAIN, fingerprint, header_sha256, read_manifest
from dia_demo.config import ModelConfig
from dia_demo.errors import InputError
from dia_demo.files import ABANDONED_SECONDS, PART, cache_folder, write_atomic
from dia_demo.kernels.packing import BLOCK, block_bytes, padded_size
from dia_demo.model.dia import Dia
from dia_demo.model.linear import step_linears
from dia_demo.model.packed_linear import FORMATS, PackedLinear
from dia_demo.model.weights.checkpoint import DTYPES
from dia_demo.model.weights.tensor_files import unreadable_error, weight_fault

# Increase a precision's number when its bytes change their meaning.
LAYOUTS = {"float32": 2, "bfloat16": 2, "int8": 2, "int8+int5": 1, "int4": 3}
# Precisions whose weights are not rounded to the nearest. The cache's files that are rounded in
# another way are made again.
ROUNDING = {"int8+int5": "gptq", "int4": "gptq"}
NOT_CALIBRATED = "rounded to the nearest"
# A smaller model loads as fast from its checkpoint. Not in int4, which has to be calibrated.
LEAST_BYTES = 100 * 2**20

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Shape:
    """How a model is built from its config, and the names of its linears that must be packed."""

    build: Callable[[Any], nn.Module] = Dia
    packed_linears: Callable[[Any], Iterable[str]] = step_linears


DIA = Shape()


def prepared_file(folder: Path, precision: str) -> Path:
    """The path of a checkpoint's prepared weights in this precision, whether it exists or not."""
    name = "".join(letter if letter.isalnum() else "-" for letter in folder.resolve().name)[:40]
    home = cache_folder() / "prepared" / f"{name}-{fingerprint(folder)}"
    return home / _file_name(precision)


def _file_name(precision: str) -> str:
    layout = str(LAYOUTS.get(precision, 0))
    parts = precision, ROUNDING.get(precision), layout, "safetensors"
    return ".".join(part for part in parts if part)


def read(
    file: Path, config: ModelConfig, precision: str, shape: Shape = DIA
) -> Generator[float, None, Any]:
    """The model in `file` with memory-mapped weights; None if there is no valid file.

    Yields the fraction checked: every byte is read once, which also loads it into memory.
    """
    if not file.is_file():
        return None
    try:
        return (yield from read_packed(file, config, precision, shape))
    except InputError as error:
        log.warning("%s is not used and will be written again: %s", file, error)
        return None


def read_packed(
    file: Path, config: ModelConfig, precision: str, shape: Shape = DIA
) -> Generator[float, None, Any]:
    """`read` of a file that must be valid: raises InputError, naming file and tensor, if not."""
    with torch.device("meta"):
        model = shape.build(config)
    try:
        with safe_open(file, framework="pt") as opened:
            metadata = opened.metadata() or {}
            checksums = json.loads(metadata.get("sums", "{}"))
            linears = json.loads(metadata.get("linears", "{}"))
            names = list(opened.keys())
            layout, stored = metadata.get("layout"), metadata.get("precision")
            if layout != str(LAYOUTS[precision]) or stored != precision:
                raise InputError(
                    f"{file} contains {stored} in layout {layout}, and this program reads "
                    f"{precision} in layout {LAYOUTS[precision]}: prepare the original model again "
                    "(python -m dia_demo export)."
                )
            state = {}
            for done, name in enumerate(names):
                state[name] = opened.get_tensor(name)
                if _checksum(state[name]) != checksums[name]:
                    raise InputError(
                        f"{file} is corrupted (the checksum of {name} differs): {COPY_AGAIN}"
                    )
                yield (done + 1) / len(names)
        _assign(model, state, linears, precision, shape)
    except (
        SafetensorError, RuntimeError, OSError, ValueError, KeyError, TypeError, AttributeError
    ) as error:  # fmt: skip
        fault = "corrupted or not a file of prepared weights"
        raise unreadable_error(file, error, fault, COPY_AGAIN.capitalize()) from error
    return model.requires_grad_(False).eval()


def _assign(
    model: nn.Module, state: dict[str, Tensor], linears: dict, precision: str, shape: Shape
) -> None:
    """Give the model on meta the tensors of a file, which may come from anybody.

    Raises ValueError or RuntimeError unless they are exactly those of this model: compiled kernels
    read the blocks of a linear by its sizes alone.
    """
    if missing := set(shape.packed_linears(model)) - linears.keys():
        raise ValueError(f"{min(missing)} is not packed")
    modules = dict(model.named_modules())
    for name, (linear_precision, outputs, inputs) in linears.items():
        blocks, linear = state.pop(name), modules[name]
        size = (padded_size(outputs) // BLOCK, block_bytes(FORMATS[linear_precision], inputs))
        is_this = isinstance(linear, nn.Linear) and linear.weight.shape == (outputs, inputs)
        if not is_this or blocks.dtype != torch.uint8 or blocks.shape != size:
            raise ValueError(f"{name} has a wrong shape")
        above, _, leaf = name.rpartition(".")
        packed = PackedLinear(blocks, linear_precision, outputs, inputs)
        setattr(model.get_submodule(above), leaf, packed)
    for name, tensor in state.items():
        is_norm = name.endswith("norm.weight")
        if tensor.dtype != (torch.float32 if is_norm else DTYPES.get(precision, torch.bfloat16)):
            raise ValueError(f"{name} contains {tensor.dtype}")
        if reason := weight_fault(tensor):
            raise ValueError(f"{name} {reason}")
    model.load_state_dict(state, assign=True)


def read_export(
    folder: Path, config: ModelConfig, precision: str, shape: Shape = DIA
) -> Generator[float, None, Any]:
    """The model of a folder that `python -m dia_demo export` wrote; yields the fraction checked.

    Every file that its manifest lists is checked: raises InputError, naming the damaged one.
    """
    manifest = read_manifest(folder)
    for name, record in manifest.files.items():
        if name != manifest.weights:
            record.check(folder / name)
    file = folder / manifest.weights
    manifest.files[manifest.weights].check_size(file)
    try:
        header = header_sha256(file)
    except (OSError, ValueError) as error:
        raise InputError(f"{file} is corrupted ({error}): {COPY_AGAIN}") from error
    if header != manifest.header_sha256:
        raise InputError(f"{file} is corrupted (the checksum of its header differs): {COPY_AGAIN}")
    return (yield from read_packed(file, config, precision, shape))


def write(model: nn.Module, file: Path, folder: Path, precision: str) -> str:
    """Store the model of the checkpoint in `folder` as `file`, its `prepared_file`.

    Returns a message for the user if that failed, else "". The file is written whole or not at all.
    """
    size = sum(tensor.nbytes for tensor in _packed_state(model)[0].values())
    if size < LEAST_BYTES and precision not in ROUNDING:
        return ""
    checkpoint = str(folder.resolve())
    _remove_stale(file.parent, checkpoint)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with write_atomic(file) as part:
            write_packed(model, part, precision, checkpoint)
        return ""
    except (OSError, SafetensorError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        return (
            f"The prepared weights could not be stored in {file.parent} ({reason}): the next start "
            "prepares them again. Free some space there, or set DIA_CACHE to another folder."
        )


def write_packed(model: nn.Module, file: Path, precision: str, checkpoint: str) -> None:
    """Write a model with packed linears to `file`. checkpoint: the name of the original.

    Raises OSError or SafetensorError.
    """
    state, linears = _packed_state(model)
    metadata = {
        "layout": str(LAYOUTS[precision]),
        "precision": precision,
        "checkpoint": checkpoint,
        "linears": json.dumps(linears),
        "sums": json.dumps({name: _checksum(tensor) for name, tensor in state.items()}),
    }
    save_file(state, file, metadata)


def weights_name(model: nn.Module, precision: str) -> str:
    """What tells weights from others of the same checkpoint and precision: which rounding they
    have, where there are several; "" elsewhere."""
    if precision not in ROUNDING:
        return ""
    state, _ = _packed_state(model)
    return _rounding_name({name: _checksum(tensor) for name, tensor in state.items()})


def stored_weights_name(file: Path) -> str | None:
    """`weights_name` of prepared weights; None if there are none that can be read."""
    try:
        with safe_open(file, framework="pt") as opened:
            metadata = opened.metadata() or {}
        return _rounding_name(json.loads(metadata["sums"]))
    except (SafetensorError, OSError, ValueError, KeyError, AttributeError):
        return None


def _rounding_name(sums: dict[str, int]) -> str:
    """Calibrations differ between processors and versions, because their takes do."""
    text = json.dumps(sums, sort_keys=True)
    return f"calibrated as {zlib.crc32(text.encode()):08x}"


def _packed_state(model: nn.Module) -> tuple[dict[str, Tensor], dict[str, tuple[str, int, int]]]:
    """A model's tensors, and precision, outputs and inputs of its packed linears."""
    state, linears = dict(model.state_dict()), {}
    for name, module in model.named_modules():
        if isinstance(module, PackedLinear):
            state[name] = module.blocks
            linears[name] = (module.precision, module.outputs, module.inputs)
    return state, linears


def _remove_stale(home: Path, checkpoint: str) -> None:
    """Remove the files that will never be read again; `home` is the folder of `checkpoint`."""
    for file in home.parent.glob("*/*"):
        # Some systems cannot remove a file in use; it will be removed another time.
        with suppress(OSError, SafetensorError):
            if _is_stale(file, home, checkpoint):
                file.unlink()
                log.info("removed %s: its checkpoint no longer exists", file)
            if file.parent != home:
                file.parent.rmdir()


def _is_stale(file: Path, home: Path, checkpoint: str) -> bool:
    """Whether it has another layout or rounding, its checkpoint is gone or has changed, or it is
    partial."""
    if file.suffix == PART:
        return time.time() - file.stat().st_mtime > ABANDONED_SECONDS
    with safe_open(file, framework="pt") as opened:
        metadata = opened.metadata() or {}
    source = metadata.get("checkpoint")
    if not source or not Path(source).is_dir():
        return True
    if file.name != _file_name(metadata.get("precision", "")):
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
