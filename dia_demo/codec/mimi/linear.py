"""A linear of a stream's windows: compiled, or by torch where the kernels do not run.

Activations are rows [T, P], P a width in whole blocks of the packed weights; what is beyond the
width of a layer are zeros. A window of n rows follows in memory, so it is one input of n * P.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import cache

import numpy as np
import torch
from torch import Tensor

from dia_demo.kernels.packing import BLOCK, padded
from dia_demo.kernels.thread_pool import thread_pool, yield_core
from dia_demo.model.linear import can_compile
from dia_demo.model.packed_linear import PackedLinear

log = logging.getLogger(__name__)
# Relative L2 error against float64 that the compiled product may have.
_LARGEST_ERROR = 1e-5


class WindowLinear:
    """bias + the linear of each window of `rows` neighbouring rows.

    weight_ORI: its weights [O, rows, I]. precision: of the stored weights, float32 or bfloat16;
    sums are in float32. is_compiled: by the compiled kernel, which is used where it runs if this is
    left out. By it, a row of the result does not depend on the rows or threads beside it.
    """

    def __init__(
        self,
        weight_ORI: Tensor,
        bias_O: Tensor | None,
        precision: str,
        is_compiled: bool | None = None,
    ) -> None:
        outputs, self.window, inputs = weight_ORI.shape
        self.width = padded(inputs)
        spread = torch.nn.functional.pad(weight_ORI, (0, self.width - inputs))
        self.packed = PackedLinear.from_weight(spread.flatten(1), precision)
        self.outputs = padded(outputs)
        self.bias = torch.zeros(self.outputs)
        if bias_O is not None:
            self.bias[:outputs] = bias_O
        self._dense: Tensor | None = None
        if is_compiled is None:
            is_compiled = windows_kind() == "compiled"
        self._template = self._make_template() if is_compiled else None

    def __call__(self, x_TP: Tensor, threads: int) -> Tensor:
        """x [T + window - 1, P] to [T, padded outputs]; both are contiguous float32."""
        rows = len(x_TP) - self.window + 1
        out = torch.empty(rows, self.outputs)
        if self._template is None:
            steps = (self.width, 1)
            windows = x_TP.as_strided((rows, self.window * self.width), steps)
            return torch.addmm(self.bias, windows, self._torch_weight(), out=out)
        from dia_demo.kernels.windows import multiply_windows

        args = self._template.copy()
        args["rows"], args["x"], args["out"] = rows, x_TP.data_ptr(), out.data_ptr()
        run_beside(multiply_windows, args, threads)
        return out

    def _torch_weight(self) -> Tensor:
        if self._dense is None:
            weight = self.packed.dense(torch.float32)
            missing = self.outputs - len(weight)
            self._dense = torch.nn.functional.pad(weight, (0, 0, 0, missing)).t().contiguous()
        return self._dense

    def _make_template(self) -> np.ndarray:
        from dia_demo.kernels.windows import WINDOWS

        args = np.zeros(1, WINDOWS)
        values = {
            "row_width": self.width,
            "inputs": self.window * self.width,
            "format": self.packed.format,
            "weights": self.packed.blocks.data_ptr(),
            "blocks": self.outputs // BLOCK,
            "bias": self.bias.data_ptr(),
        }
        for name, value in values.items():
            args[name] = value
        return args


def run_beside(function: Callable, args: np.ndarray, threads: int) -> None:
    """Run a kernel of kernels/windows.py in so many threads; args: its record, to which what
    the threads share is added."""
    counter, pool = np.zeros(1, np.int64), thread_pool(threads)
    args["threads"], args["barrier"], args["yield_core"] = threads, pool.barrier, yield_core()
    args["counter"] = counter.ctypes.data
    pool.run(function, args)


@cache
def windows_kind() -> str:
    """Which of the two this process uses: "compiled" or "torch"."""
    if not can_compile():
        return "torch"
    try:
        _check()
    except Exception as error:  # numba, its compiler and a damaged cache raise any type of error.
        log.warning("no compiled windows, using torch: %s: %s", type(error), error)
        return "torch"
    return "compiled"


def _check() -> None:
    """Compile the kernel, and compare it with torch."""
    generator = torch.Generator().manual_seed(0)
    weight_ORI = torch.randn(70, 3, 100, generator=generator)
    x_TP = torch.zeros(9, padded(100))
    x_TP[:, :100] = torch.randn(9, 100, generator=generator)
    out_TO = WindowLinear(weight_ORI, None, "float32", is_compiled=True)(x_TP, 1)[:, :70]
    windows_TRI = x_TP[:, :100].double().unfold(0, 3, 1).transpose(1, 2)
    expected_TO = windows_TRI.flatten(1) @ weight_ORI.double().flatten(1).t()
    error = float((out_TO - expected_TO).norm() / expected_TO.norm())
    if not error <= _LARGEST_ERROR:
        raise ArithmeticError(f"windows have an error of {error:.1e}")
