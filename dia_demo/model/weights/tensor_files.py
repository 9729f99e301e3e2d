"""Reads weight files one tensor at a time, from safetensors or pickles.

`tensor_names` says what the tensors are called; `checkpoint` builds the model.
"""

from __future__ import annotations

import pickle
import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from dia_demo.checkpoint_files import ADAPTER
from dia_demo.errors import InputError
from dia_demo.untrusted import LFS_POINTER, is_lfs_pointer

# A pickle is mapped again after this many bytes, so that pages already read are released.
MAPPED_BYTES = 512 * 2**20
# Messages of safetensors and torch when memory runs out while a file is mapped or copied.
NO_MEMORY = re.compile(r"allocate memory|not enough memory", re.I)
# Names of each kind that an error lists.
NAMES_SHOWN = 8
_ADAPTER = re.compile(r"^base_model\.model\.|[._]lora_[AB]\b|\.lora_(?:down|up)\.", re.I)
_PREFIXES = {"_orig_mod.": "torch.compile", "module.": "DataParallel or DistributedDataParallel"}

Shapes = dict[str, tuple[int, ...]]


def tensor_shapes(files: list[Path]) -> dict[str, tuple[int, ...]]:
    """Name and shape of every tensor, without reading any.

    Raises InputError for an unreadable file and for a tensor that two of them contain.
    """
    shapes: dict[str, tuple[int, ...]] = {}
    for file in files:
        with _explain_errors(file):
            file_shapes = _shapes_in(file)
        twice = sorted(file_shapes.keys() & shapes.keys())
        if twice:
            raise InputError(
                f"{file} contains {twice[0]}, which another file of the folder contains too."
            )
        shapes |= file_shapes
    return shapes


def check_kind(names: Iterable[str], folder: Path) -> None:
    """Raise InputError with the cause where tensors with these names are a known other thing than
    the weights of a model: an adapter, or weights that a training tool has renamed."""
    adapter = next((name for name in names if _ADAPTER.search(name)), None)
    if adapter is not None:
        raise InputError(f"{folder} contains {adapter}: {ADAPTER}")
    for prefix, tool in _PREFIXES.items():
        if any(name.startswith(prefix) for name in names):
            raise InputError(
                f"The names of the weights in {folder} begin with {prefix!r}, which {tool} put "
                "there: save the weights of the model inside, or remove it from every name."
            )


def shape_differences(expected: Shapes, shapes: Shapes) -> str:
    """Missing, surplus and misshapen tensors, listed by name; "" if there are none."""
    differences = {
        "missing": [name for name in expected if name not in shapes],
        "surplus": [name for name in shapes if name not in expected],
        "misshapen": [
            f"{name} is {list(shapes[name])}, should be {list(shape)}"
            for name, shape in expected.items()
            if name in shapes and shapes[name] != shape
        ],
    }
    return "; ".join(
        f"{kind}: {_list_names(names)}" for kind, names in differences.items() if names
    )


def _list_names(names: Sequence[str]) -> str:
    rest = len(names) - NAMES_SHOWN
    return ", ".join(names[:NAMES_SHOWN]) + (f" and {rest} more" if rest > 0 else "")


def _shapes_in(file: Path) -> dict[str, tuple[int, ...]]:
    if file.suffix != ".safetensors":
        return {name: tuple(tensor.shape) for name, tensor in _load_pickle(file).items()}
    with safe_open(file, framework="pt") as opened:
        return {name: tuple(opened.get_slice(name).get_shape()) for name in opened.keys()}


def read_tensors(files: list[Path]) -> Iterator[tuple[str, Tensor]]:
    """Yield (name in the file, tensor). Raises InputError for a file that cannot be read.

    A file is mapped only while it is read, so memory stays close to what the caller keeps.
    """
    for file in files:
        read = _read_safetensors if file.suffix == ".safetensors" else _read_pickle
        with _explain_errors(file):
            yield from read(file)


@contextmanager
def _explain_errors(file: Path) -> Iterator[None]:
    try:
        yield
    except (
        SafetensorError, pickle.UnpicklingError, RuntimeError, OSError, EOFError, MemoryError
    ) as error:  # fmt: skip
        fault = "corrupted or not a weight file"
        raise unreadable_error(file, error, fault, "Fetch it again.") from error


def unreadable_error(file: Path, error: Exception, fault: str, remedy: str) -> InputError:
    """The error for a file that cannot be read: out of memory, else `fault` with its remedy."""
    reason = (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
    if isinstance(error, MemoryError) or NO_MEMORY.search(reason):
        return InputError(
            f"{file} cannot be read: this process is out of memory ({reason}). Close other "
            "programs, raise the limit, or use a smaller model."
        )
    if is_lfs_pointer(file):
        return InputError(f"{file} {LFS_POINTER}")
    return InputError(f"{file} is {fault} ({reason}). {remedy}")


def _read_safetensors(file: Path) -> Iterator[tuple[str, Tensor]]:
    with safe_open(file, framework="pt") as opened:
        names = list(opened.keys())
    for name in names:
        with safe_open(file, framework="pt") as opened:
            yield name, opened.get_tensor(name)


def _read_pickle(file: Path) -> Iterator[tuple[str, Tensor]]:
    names, done = list(_load_pickle(file)), 0
    while done < len(names):
        state, mapped = _load_pickle(file), 0
        while done < len(names) and mapped < MAPPED_BYTES:
            tensor = state.pop(names[done]).detach()
            mapped += tensor.nbytes
            yield names[done], tensor
            done += 1


def _load_pickle(file: Path) -> dict[str, Tensor]:
    """A state dict of tensors; weights_only refuses code."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # About the pickle protocol.
            state = _load_tensors(file)
    except pickle.UnpicklingError as error:
        # torch's own message advises to let the code in the file run.
        reason = "it contains objects other than tensors, which are not loaded"
        raise pickle.UnpicklingError(reason) from error
    except Exception as error:  # Damaged bytes raise any kind of error inside the unpickler.
        raise pickle.UnpicklingError(str(error) or type(error).__name__) from error
    state = state.get("state_dict", state) if isinstance(state, dict) else state
    if not isinstance(state, dict) or not all(isinstance(v, Tensor) for v in state.values()):
        raise pickle.UnpicklingError("it contains something other than a dict of tensors")
    return state


def _load_tensors(file: Path) -> object:
    try:
        return torch.load(file, map_location="cpu", weights_only=True, mmap=True)
    except RuntimeError:  # Files in torch's old format cannot be mapped.
        return torch.load(file, map_location="cpu", weights_only=True)


def weight_fault(tensor: Tensor) -> str:
    """Why a tensor cannot be a weight, or "": NaN, infinity, or only zeros."""
    # One pass and no mask: a sum is finite unless an element is not (or floats overflow).
    total = tensor.sum(dtype=torch.float32)
    if not total.isfinite() and not tensor.isfinite().all():
        return "contains NaN or infinity: the file is damaged."
    if total == 0 and not tensor.any():
        return "contains only zeros: the file is damaged or its download was interrupted."
    return ""
