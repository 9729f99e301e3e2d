"""Dia on an ordinary CPU: generates spoken dialogue from a script.

For programs: the names of `dia_demo.api`, which __init__.pyi lists for type checkers.

Layers (imports point left only): base (config, text, audio, stats) <- kernels <- model <-
codec <- engine <- accelerator <- services <- { ui, cli, api } <- app.py.
"""

from importlib import import_module
from typing import Any

from dia_demo.machine.processor import apply_override

apply_override()

__all__ = [
    "BatchError", "DiaDemoError", "InputError", "Model", "RunError", "Stream", "Take", "load",
]  # fmt: skip


def __dir__() -> list[str]:
    """The package's names, those of the API included."""
    return sorted({*globals(), *__all__})


def __getattr__(name: str) -> Any:
    """The names of the API, on first use: they bring torch."""
    if name in __all__:
        return getattr(import_module("dia_demo.api"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
