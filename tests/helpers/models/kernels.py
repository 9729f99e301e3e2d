"""The compiled kernel, as tests use it on every processor."""

from __future__ import annotations

import pytest

from dia_demo.model import loading
from dia_demo.model.linear import KERNELS, KernelChoice

# Runs on every processor, in every precision.
COMPILED = next(kernel for kernel in KERNELS if kernel.name == "compiled")


def choose_compiled(patch: pytest.MonkeyPatch) -> None:
    """Models are loaded for the compiled kernel on one thread."""
    patch.setattr(loading, "choose_kernel", lambda *_: KernelChoice(COMPILED, 1))
