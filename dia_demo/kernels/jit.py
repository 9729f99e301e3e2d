"""How kernels are compiled: without the GIL, kept on disk, and never at import.

Compiled code is kept in the cache folder, keyed by a hash of the kernels' sources (numba itself
looks at the file of the outermost function only) and, by numba, by the processor. Without a
writable folder everything is compiled anew in each process.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from dia_demo.machine import cache_folder

FOLDER = Path(__file__).parent
# For sums that may be taken in any order. Not "fast": that would let NaN and infinity vanish, and
# the loop looks for them in every step's logits.
ANY_ORDER = {"reassoc", "contract", "arcp", "nsz"}


def _keep_on_disk() -> bool:
    """Tell numba where to keep what it compiles; whether it can."""
    digest = hashlib.sha256()
    for source in sorted(FOLDER.glob("*.py")):
        digest.update(source.read_bytes())
    folder = cache_folder() / "kernels" / digest.hexdigest()[:16]
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
    cache = _keep_on_disk()  # Before numba is imported: it reads its settings then.
    import numba

    numba.config.CACHE_DIR = os.environ.get("NUMBA_CACHE_DIR", numba.config.CACHE_DIR)
    return numba.njit(nogil=True, cache=cache, error_model="numpy", **options)


def inlined(function: Callable) -> Callable:
    """Decorator: a part of compiled functions that is compiled within them, and only there.

    A kernel of its own would be compiled once by itself and again in every function above it.
    """
    import numba

    return numba.njit(inline="always", error_model="numpy")(function)
