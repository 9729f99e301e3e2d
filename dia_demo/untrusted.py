"""Reading untrusted files: JSON as typed values, and the codes of a voice prompt."""

from __future__ import annotations

import io
import json
import math
import os
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from dia_demo.errors import InputError

if TYPE_CHECKING:
    from pydantic import TypeAdapter

T = TypeVar("T")

# The index of a checkpoint of thousands of tensors is smaller than one, an hour of codes is six.
MAX_MEGABYTES = 10

LFS_POINTER = (
    "is a Git LFS pointer, not the file itself: run git lfs pull in its folder, or download the "
    "file."
)
_LFS_START = b"version https://git-lfs"


def is_lfs_pointer(path: Path) -> bool:
    """Whether a file is what Git LFS leaves in place of one that was not fetched."""
    try:
        with open(path, "rb") as file:
            return file.read(len(_LFS_START)) == _LFS_START
    except OSError:
        return False


def read_json(path: Path) -> dict:
    """A JSON object from a regular file of at most MAX_MEGABYTES.

    Raises InputError with the reason for anything else.
    """
    try:
        raw = json.loads(read_regular(path).decode("utf-8"))
    except FileNotFoundError:
        raise InputError(f"{path} is missing: a Dia checkpoint folder must contain it.") from None
    except RecursionError:
        raise InputError(f"{path} cannot be read as JSON: it is nested too deeply.") from None
    except (OSError, ValueError) as error:  # Not UTF-8, not JSON, or a number of 5,000 digits.
        if is_lfs_pointer(path):
            raise InputError(f"{path} {LFS_POINTER}") from None
        raise InputError(f"{path} cannot be read as JSON: {error}.") from error
    if not isinstance(raw, dict):
        raise InputError(f"{path} must contain a JSON object, not a {type(raw).__name__}.")
    return raw


def parse_as(kind: type[T], raw: object) -> T:
    """Parsed JSON as a dataclass, or as a container of them.

    Fields that have defaults may be missing; unknown ones are ignored. Raises ValueError
    (pydantic.ValidationError) where a field is missing or of another type.
    """
    adapter: TypeAdapter[T] = _adapter(kind)  # type: ignore[arg-type]
    return adapter.validate_json(json.dumps(raw), strict=True)


def parse_config(kind: type[T], raw: Mapping[str, Any], source: str) -> T:
    """A parsed config file as a dataclass. Fields may be missing as in `parse_as`.

    Raises InputError "source: key …" with the ValueError of the first validator that refuses.
    """
    from pydantic import ValidationError

    try:
        return _adapter(kind).validate_python(raw)  # type: ignore[arg-type]
    except ValidationError as error:
        problem: Any = error.errors(include_url=False)[0]
    (key, *index), said = problem["loc"], problem.get("ctx", {}).get("error", problem["msg"])
    raise InputError(f"{source}: {f'each of {key}' if index else key} {said}")


@dataclass(frozen=True)
class ParseBy:
    """In Annotated: pydantic passes on what `parse` returns. Its InputError is a mistake."""

    parse: Callable[[Any], Any]

    def _validate(self, value: Any) -> Any:
        try:
            return self.parse(value)
        except InputError as error:
            raise ValueError(error) from None

    def __get_pydantic_core_schema__(self, kind: Any, handler: Callable[[Any], Any]) -> Any:
        from pydantic_core import core_schema

        return core_schema.no_info_before_validator_function(self._validate, handler(kind))


@cache
def _adapter(kind: type) -> TypeAdapter:
    from pydantic import TypeAdapter

    return TypeAdapter(kind)


def read_codes(path: Path) -> np.ndarray:
    """The array of a .npy file of at most MAX_MEGABYTES; `check_prompt` checks its values.

    Raises InputError if it cannot be read. A size that only the header claims is not allocated.
    """
    try:
        data = read_regular(path)
        if data.startswith(b"PK"):
            raise InputError(
                f"{path} contains several arrays: give one .npy of [frames, channels]."
            )
        _check_header(data)
        return np.load(io.BytesIO(data), allow_pickle=False)
    except InputError:
        raise
    except Exception as error:  # numpy parses the header as Python, which fails in many ways.
        raise InputError(f"{path} cannot be read as a .npy array: {error}.") from error


def _check_header(data: bytes) -> None:
    """Raise ValueError unless the file has exactly the bytes that its header describes."""
    file = io.BytesIO(data)
    read = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }.get(np.lib.format.read_magic(file))
    if read is None:
        raise ValueError("its version is not known")
    shape, _, dtype = read(file)
    if dtype.hasobject:
        raise ValueError("it contains Python objects")
    if math.prod(shape) * dtype.itemsize != len(data) - file.tell():
        raise ValueError("its length does not match its header")


def read_regular(path: Path) -> bytes:
    """The content of a regular file of at most MAX_MEGABYTES. Raises InputError for another one,
    OSError if it cannot be read."""
    # Without O_NONBLOCK, opening a named pipe waits for somebody to write into it.
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    with os.fdopen(handle, "rb") as file:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise InputError(f"{path} is not a regular file.")
        limit = MAX_MEGABYTES * 10**6
        if status.st_size > limit:
            raise InputError(
                f"{path} is too large: {status.st_size / 1e6:,.0f} MB, and at most "
                f"{MAX_MEGABYTES} MB are allowed."
            )
        return file.read(limit)
