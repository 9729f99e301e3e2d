"""How kernels are compiled: without the GIL, cached on disk, and never at import.

Compiled code is kept in the cache folder, keyed by a hash of the kernels' sources (numba itself
looks at the file of the outermost function only) and of the features of the processor. Where it
cannot be saved, every process compiles again.
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

from dia_demo import processor
from dia_demo.files import cache_folder

FOLDER = Path(__file__).parent
# For sums that may be taken in any order. Not "fast": that would let NaN and infinity vanish, and
# the loop looks for them in every step's logits.
ANY_ORDER = {"reassoc", "contract", "arcp", "nsz"}

log = logging.getLogger(__name__)
# Failures to save, in words for a person, and whether they are still to be reported.
_failures: dict[str, bool] = {}


@cache
def digest() -> str:
    """16 hex digits that change with the kernels' sources and the features of the processor."""
    found = hashlib.sha256(" ".join(sorted(processor.features())).encode())
    for source in sorted(FOLDER.glob("*.py")):
        found.update(source.read_bytes())
    return found.hexdigest()[:16]


def _use_cache_folder() -> bool:
    """Tell numba where to keep compiled code; False where that folder cannot be written."""
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

    options go to numba.njit (fastmath, boundscheck, error_model ...). ImportError without numba.
    """
    can_cache = _use_cache_folder()  # Before numba is imported: it reads its settings then.
    import numba

    numba.config.CACHE_DIR = os.environ.get("NUMBA_CACHE_DIR", numba.config.CACHE_DIR)
    decorate = numba.njit(nogil=True, error_model="numpy", **options)

    def decorated(function: Callable) -> Callable:
        dispatcher = decorate(function)
        if can_cache:
            dispatcher._cache = _optional_cache(dispatcher.py_func)
        return dispatcher

    return decorated


def _optional_cache(function: Callable) -> object:
    """numba's cache of one function, except that a failure only means that nothing is cached.

    numba raises from the first call where the disk is full or a file is damaged.
    """
    from numba.core.caching import FunctionCache

    class OptionalCache(FunctionCache):
        def load_overload(self, sig, target_context):
            try:
                return super().load_overload(sig, target_context)
            except Exception as error:  # Unpickling a damaged file fails in many ways.
                log.info("compiled code of %s is not usable: %s", self._name, error)
                with suppress(OSError):
                    self.flush()  # Forget what the index names: it may be damaged itself.
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
        "them again, which takes some seconds. Free some space there, or name another folder in "
        "DIA_CACHE."
    )
    if text not in _failures:
        log.warning("%s", text)
        _failures[text] = True


def new_failures() -> list[str]:
    """What a person should know about saving compiled code; each failure once."""
    new = [text for text, is_new in _failures.items() if is_new]
    _failures.update(dict.fromkeys(new, False))
    return new


def inlined(function: Callable) -> Callable:
    """Decorator: a part of compiled functions that is compiled within them, and only there.

    A kernel of its own would be compiled once by itself and again in every function above it.
    """
    import numba

    return numba.njit(inline="always", error_model="numpy")(function)
