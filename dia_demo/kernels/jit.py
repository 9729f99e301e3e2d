"""Compiles kernels: without the GIL, cached on disk, and never at import.

Compiled code is stored in the cache folder, keyed by a hash of the kernels' sources (numba itself
checks only the file of the outermost function) and of the processor's features. If it cannot be
saved, every process compiles again.
"""

from __future__ import annotations

import hashlib
import logging
import os
import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from dia_demo.files import cache_folder
from dia_demo.machine import processor

FOLDER = Path(__file__).parent
# For sums that may be computed in any order. Not "fast": that would lose NaN and infinity, which
# the generation loop looks for in every step's logits. Not where a loop writes products of several
# arrays: LLVM has a scalar loop for a result that lies close behind one of them in memory, and
# orders it otherwise, so that the bits of a result would depend on its address.
ANY_ORDER = {"reassoc", "contract", "arcp", "nsz"}

log = logging.getLogger(__name__)
_callbacks: list[object] = []  # Their code is freed with them.
# Messages about failures to save, and whether they have not been reported yet.
_failures: dict[str, bool] = {}


@cache
def digest() -> str:
    """16 hex digits that change with the kernels' sources and the processor's features."""
    sha256 = hashlib.sha256(" ".join(sorted(processor.features())).encode())
    for source in sorted(FOLDER.rglob("*.py")):
        sha256.update(source.read_bytes())
    return sha256.hexdigest()[:16]


def use_cache_folder() -> bool:
    """Set numba's cache folder; False if it cannot be written."""
    folder = cache_folder() / "kernels" / digest()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        return False
    os.environ["NUMBA_CACHE_DIR"] = str(folder)
    return True


def compiled(**options) -> Callable[[Callable], Callable]:
    """Decorator: a numba function that runs without the GIL, compiled at its first call.

    options: of numba.njit (fastmath, boundscheck, error_model ...). ImportError without numba.
    """
    can_cache = use_cache_folder()  # Before the import, at which numba reads its settings.
    import numba

    config: Any = numba.config  # Its attributes are made at import.
    config.CACHE_DIR = os.environ.get("NUMBA_CACHE_DIR", config.CACHE_DIR)
    decorate = numba.njit(nogil=True, error_model="numpy", **options)

    def decorator(function: Callable) -> Callable:
        dispatcher = decorate(function)
        if can_cache:
            dispatcher._cache = _optional_cache(dispatcher.py_func)
        return dispatcher

    return decorator


def address_of(function: Callable, arguments: int) -> int:
    """The address of a function of so many int64 and no result, which kernels call by
    `intrinsics.call`: it is compiled once for all of them instead of again as a part of each."""
    can_cache = use_cache_folder()
    from numba import types
    from numba.core.ccallback import CFunc

    signature = (types.int64,) * arguments, types.void
    callback: Any = CFunc(function, signature, {}, {"error_model": "numpy"})
    if can_cache:
        callback._cache = _optional_cache(function)
    callback.compile()
    _callbacks.append(callback)
    return callback.address


def _optional_cache(function: Callable) -> object:
    """numba's cache of one function, except that a failure only means that nothing is cached.

    numba itself raises in the first call if the disk is full or a file is damaged.
    """
    from numba.core.caching import FunctionCache

    class OptionalCache(FunctionCache):
        def load_overload(self, sig, target_context):
            try:
                return super().load_overload(sig, target_context)
            except Exception as error:  # Unpickling a damaged file raises any kind of error.
                log.info("compiled code of %s is not usable: %s", self._name, error)
                with suppress(OSError):
                    self.flush()  # Clear the index, which may be damaged itself.
                return None

        def save_overload(self, sig, data):
            try:
                super().save_overload(sig, data)
            except OSError as error:
                _note_failure(self.cache_path, error.strerror or str(error))

    return OptionalCache(function)


def _note_failure(folder: str, reason: str) -> None:
    text = (
        f"Compiled kernels could not be saved in {folder} ({reason}), so the next start compiles "
        "them again, which takes some seconds. Free some space there, or set DIA_CACHE to "
        "another folder."
    )
    if text not in _failures:
        log.warning("%s", text)
        _failures[text] = True


def new_failures() -> list[str]:
    """Messages about compiled code that could not be saved, each once."""
    new = [text for text, is_new in _failures.items() if is_new]
    _failures.update(dict.fromkeys(new, False))
    return new


def inlined(function: Callable) -> Callable:
    """Decorator: a function that is compiled only as a part of the functions that call it.

    A compiled function would be compiled once by itself and again in every caller.
    """
    import numba

    return numba.njit(inline="always", error_model="numpy")(function)
