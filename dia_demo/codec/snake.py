"""The codec's activation: the compiled kernel where there is one, torch's operations elsewhere."""

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
        """Write to `out_TC`, which must not overlap x, or in place."""
        run = _kernels().get((x_TC.dtype, out_TC is None))
        if run is None:
            self._by_torch(x_TC, x_TC if out_TC is None else out_TC)
        elif out_TC is None:
            run(_array(x_TC), *self._parameters)
        else:
            run(_array(x_TC), *self._parameters, _array(out_TC))

    def _by_torch(self, x_TC: Tensor, out_TC: Tensor) -> None:
        wide = x_TC.float()
        sine = torch.mul(wide, self.alpha_C).sin_()
        torch.addcmul(wide, sine.square_(), self.per_alpha_C, out=sine)
        out_TC.copy_(sine)


def snake_kind() -> str:
    """Which of the two this process runs."""
    return "compiled" if _kernels() else "torch"


def _array(x_TC: Tensor) -> np.ndarray:
    return x_TC.numpy() if x_TC.dtype == torch.float32 else x_TC.view(torch.uint16).numpy()


@cache
def _kernels() -> dict[tuple[torch.dtype, bool], Callable]:
    """By dtype and whether in place; empty where they do not compile or compute as they should."""
    try:
        from dia_demo.kernels import snake

        found = {
            (torch.float32, False): snake.snake_float32,
            (torch.float32, True): snake.snake_float32_inplace,
            (torch.bfloat16, False): snake.snake_bfloat16,
            (torch.bfloat16, True): snake.snake_bfloat16_inplace,
        }
        for (dtype, here), run in found.items():
            _check(run, dtype, here)
    except Exception as error:  # numba, its compiler and a damaged cache fail in many ways.
        log.warning("no compiled activation here, torch's serves: %s: %s", type(error), error)
        return {}
    return found


def _check(run: Callable, dtype: torch.dtype, here: bool) -> None:
    """Compile it for what it will be called with, and compare."""
    activation = Snake(torch.tensor([0.3, 1.0, 2.5]))
    given = torch.linspace(-20, 20, 63).reshape(21, 3).to(dtype)
    expected, found = torch.empty_like(given), given.clone()
    activation._by_torch(given, expected)
    arguments = (_array(given), *activation._parameters, _array(found))
    run(*(arguments if not here else (arguments[-1], *arguments[1:-1])))
    off = (found.float() - expected.float()).abs().max()
    if not off <= (1e-5 if dtype == torch.float32 else 0.13):
        raise ArithmeticError(f"{run} is off by {off:.1e} in {dtype}")
