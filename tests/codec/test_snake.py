"""The codec's activation: the compiled kernel computes what torch does, and torch stands in."""

import sys

import numpy as np
import pytest
import torch

from dia_demo.codec import snake
from dia_demo.codec.snake import Snake

pytestmark = pytest.mark.processor

DTYPES = [torch.float32, torch.bfloat16]
ODD_SIZES = [(1, 1), (1, 16), (7, 3), (33, 17), (5, 96), (64, 31), (0, 8)]


@pytest.fixture(autouse=True)
def forget():
    """Which kernels there are is asked once a process; here, once a test."""
    snake._kernels.cache_clear()
    yield
    snake._kernels.cache_clear()


def some(rows, channels, dtype=torch.float32, scale=4.0):
    generator = torch.Generator().manual_seed(rows)
    alpha = 0.05 + 3 * torch.rand(channels, generator=generator)
    return Snake(alpha), (scale * torch.randn(rows, channels, generator=generator)).to(dtype)


def exact(activation, x):
    alpha = activation.alpha_C.double()
    return x.double() + torch.sin(alpha * x.double()).square() / (alpha + 1e-9)


def run(activation, x, in_place):
    if in_place:
        found = x.clone()
        activation(found)
        return found
    found = torch.full_like(x, torch.nan)
    activation(x, found)
    return found


@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("size", ODD_SIZES, ids=str)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_values_for_any_size(dtype, size, in_place):
    assert snake.snake_kind() == "compiled"
    activation, x = some(*size, dtype)
    expected = exact(activation, x)
    found = run(activation, x, in_place)
    assert found.dtype == dtype
    if dtype == torch.float32:
        np.testing.assert_allclose(found.double(), expected, rtol=1e-6, atol=2e-6)
    else:  # To half a unit of bfloat16's last place, and the little that float32 is off.
        np.testing.assert_allclose(found.double(), expected, rtol=2**-8 + 1e-6, atol=3e-6)


def test_bfloat16_is_rounded_to_nearest_even():
    """As torch rounds: the bits agree but where float32 itself falls on the other side."""
    activation, x = some(400, 64, torch.bfloat16)
    wide = run(activation, x.float(), False)
    assert torch.equal(run(activation, x, False), wide.bfloat16())


@pytest.mark.parametrize("scale", [1e2, 1e4, 1e5])
def test_large_angles_keep_their_phase(scale):
    x = scale * torch.linspace(-1, 1, 4001)[:, None]
    activation = Snake(torch.ones(1))
    off = (run(activation, x, False).double() - exact(activation, x)).abs().max()
    assert off <= scale * 2**-23


@pytest.mark.parametrize("scale", [1e8, 1e20, 3e38])
def test_huge_angles_stay_within_bounds(scale):
    x = scale * torch.linspace(-1, 1, 401)[:, None]
    added = run(Snake(torch.ones(1)), x, False).double() - x.double()
    assert torch.isfinite(added).all() and (added.abs() <= 1 + scale * 2**-23).all()


def test_alpha_of_zero_is_no_activation():
    x = torch.linspace(-5, 5, 11)[:, None]
    assert torch.equal(run(Snake(torch.zeros(1)), x, False), x)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_what_is_not_finite_stays_so(dtype):
    x = torch.tensor([[np.inf, -np.inf, np.nan, 1.0]], dtype=dtype)
    finite = run(Snake(torch.ones(4)), x, True).isfinite()
    assert finite.tolist() == [[False, False, False, True]]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_without_numba_torch_computes_it(monkeypatch, dtype, caplog):
    monkeypatch.delitem(sys.modules, "dia_demo.kernels.snake", raising=False)
    monkeypatch.delattr("dia_demo.kernels.snake", raising=False)
    monkeypatch.setitem(sys.modules, "numba", None)
    monkeypatch.setitem(sys.modules, "numba.extending", None)
    assert snake.snake_kind() == "torch"
    assert "using torch" in caplog.text
    assert_like_torch(dtype)


@pytest.mark.parametrize("fault", ["raises", "is wrong", "is not finite"])
def test_a_kernel_that_fails_is_not_used(monkeypatch, fault):
    from dia_demo.kernels import snake as kernels

    def bad(x, *rest):
        if fault == "raises":
            raise RuntimeError("no compiler for this processor")
        rest[-1][:] = np.nan if fault == "is not finite" else 0

    monkeypatch.setattr(kernels, "snake_float32", bad)
    assert snake.snake_kind() == "torch"
    assert_like_torch(torch.float32)


def assert_like_torch(dtype):
    for in_place in (False, True):
        activation, x = some(33, 17, dtype)
        found = run(activation, x, in_place).double()
        off = 2e-6 if dtype == torch.float32 else 2**-8 * (1 + x.double().abs())
        assert ((found - exact(activation, x)).abs() <= off).all()
