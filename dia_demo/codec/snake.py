"""The codec's activation: the compiled kernel if available, otherwise torch's operations."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import cache

import numpy as np
import torch
from torch import Tensor

log = logging.getLogger(__name__)

# alpha = 0 switches the sine off rather than dividing by it, as in descript-audio-codec.
_TINY = 1e-9


class Snake:
    """x + sin²(alpha x) / alpha over rows of channels [T, C], float32 or bfloat16.

    Ziyin et al., https://arxiv.org/abs/2006.08195.
    """

    def __init__(self, alpha_C: Tensor) -> None:
        self.alpha_C = alpha_C.float().contiguous()
        self.per_alpha_C = (self.alpha_C + _TINY).reciprocal()
        self._parameters = self.alpha_C.numpy(), self.per_alpha_C.numpy()

    def __call__(self, x_TC: Tensor, out_TC: Tensor | None = None) -> None:
        """Write the result to `out_TC`, which must not overlap x, or in place."""
        run = _kernels().get((x_TC.dtype, out_TC is None))
        if run is None:
            self._compute_with_torch(x_TC, x_TC if out_TC is None else out_TC)
        elif out_TC is None:
            run(_array(x_TC), *self._parameters)
        else:
            run(_array(x_TC), *self._parameters, _array(out_TC))

    def _compute_with_torch(self, x_TC: Tensor, out_TC: Tensor) -> None:
        wide = x_TC.float()
        sine = torch.mul(wide, self.alpha_C).sin_()
        torch.addcmul(wide, sine.square_(), self.per_alpha_C, out=sine)
        out_TC.copy_(sine)


def snake_kind() -> str:
    """Which of the two this process uses: "compiled" or "torch"."""
    return "compiled" if _kernels() else "torch"


def _array(x_TC: Tensor) -> np.ndarray:
    return x_TC.numpy() if x_TC.dtype == torch.float32 else x_TC.view(torch.uint16).numpy()


@cache
def _kernels() -> dict[tuple[torch.dtype, bool], Callable]:
    """The kernels by (dtype, in place); empty if they do not compile or are wrong."""
    try:
        from dia_demo.kernels import snake

        kernels = {
            (torch.float32, False): snake.snake_float32,
            (torch.float32, True): snake.snake_float32_inplace,
            (torch.bfloat16, False): snake.snake_bfloat16,
            (torch.bfloat16, True): snake.snake_bfloat16_inplace,
        }
        for (dtype, in_place), run in kernels.items():
            _check(run, dtype, in_place)
    except Exception as error:  # numba, its compiler and a damaged cache raise any type of error.
        log.warning(
            "the compiled activation is not available, using torch: %s: %s", type(error), error
        )
        return {}
    return kernels


def _check(run: Callable, dtype: torch.dtype, in_place: bool) -> None:
    """Compile a kernel for the types it will be called with, and compare it with torch."""
    activation = Snake(torch.tensor([0.3, 1.0, 2.5]))
    x_TC = torch.linspace(-20, 20, 63).reshape(21, 3).to(dtype)
    expected_TC, out_TC = torch.empty_like(x_TC), x_TC.clone()
    activation._compute_with_torch(x_TC, expected_TC)
    if in_place:
        run(_array(out_TC), *activation._parameters)
    else:
        run(_array(x_TC), *activation._parameters, _array(out_TC))
    error = (out_TC.float() - expected_TC.float()).abs().max()
    if not error <= (1e-5 if dtype == torch.float32 else 0.13):
        raise ArithmeticError(f"{run} has an error of {error:.1e} in {dtype}")
