"""Let transformers and descript-audio-codec be imported beside a torchaudio that does not load.

descript-audio-codec installs a torchaudio that may be built for another torch, and both import it.
The app needs neither of the three; tests compare with the first two, and the embedded voice's codec
is trained with the second.
"""

from __future__ import annotations

import importlib
import sys
import types
import warnings
from collections.abc import Iterator
from contextlib import contextmanager


def hide_broken_torchaudio() -> None:
    """Make a torchaudio that does not load look as if it were not installed."""
    try:
        import torchaudio  # noqa: F401
    except (ImportError, OSError):
        sys.modules["torchaudio"] = None


def import_dac() -> types.ModuleType:
    """The `dac` package, even if torchaudio is missing or does not load.

    Its audiotools import torchaudio for effects that neither encoding nor decoding uses. If
    torchaudio does not load, an empty module replaces it during this import.
    """
    if "dac" in sys.modules:
        return sys.modules["dac"]
    with quiet(), _torchaudio_or_stand_in():
        return importlib.import_module("dac")


@contextmanager
def quiet() -> Iterator[None]:
    """Suppress two deprecation warnings that dac causes with torch 2.13."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", r".*torch\.jit\.script.*deprecated")
        warnings.filterwarnings("ignore", r".*torch\.nn\.utils\.weight_norm.*deprecated")
        yield


@contextmanager
def _torchaudio_or_stand_in() -> Iterator[None]:
    before = _torchaudio_modules()
    try:
        importlib.import_module("torchaudio")
    except Exception:  # A build for another torch raises OSError, AttributeError, RuntimeError, ...
        sys.modules["torchaudio"] = types.ModuleType("torchaudio")
        try:
            yield
        finally:
            # audiotools keeps its reference; other imports find what is really installed.
            for name in _torchaudio_modules():
                del sys.modules[name]
            sys.modules.update(before)
    else:
        yield


def _torchaudio_modules() -> dict[str, types.ModuleType]:
    ours = [name for name in sys.modules if name.partition(".")[0] == "torchaudio"]
    return {name: sys.modules[name] for name in ours}
