"""The bits of a result do not depend on where its arrays lie in memory.

LLVM makes two loops of one that writes an array: with vectors, and without for a result that lies
close behind one of its inputs. In small models, activations and weights do lie so.
"""

import numpy as np
import pytest

from dia_demo.model import linear

pytestmark = pytest.mark.processor

EPS = np.float32(1e-5)
# Numbers from the start of one array to the start of another that has no influence on it.
FAR = 4096


@pytest.fixture(scope="module")
def functions():
    """For each kernel: the function of addresses and a width, and the widths of its arrays, of
    which the last is the result."""
    if not linear.can_compile():
        pytest.skip("needs numba")
    from numba import carray

    from dia_demo.kernels.attention import rotate
    from dia_demo.kernels.decoder_step import _silu_mul, rms_norm
    from dia_demo.kernels.frames.mimi_step import _layer_norm
    from dia_demo.kernels.intrinsics import float32_at
    from dia_demo.kernels.jit import compiled
    from dia_demo.kernels.snake import snake_float32

    @compiled()
    def run_rms_norm(at, n):
        x, weight, out = at
        rms_norm(
            carray(float32_at(x), n), carray(float32_at(weight), n), EPS, carray(float32_at(out), n)
        )

    @compiled()
    def run_layer_norm(at, n):
        x, weight, bias, out = at
        _layer_norm(
            carray(float32_at(x), n), carray(float32_at(weight), n), carray(float32_at(bias), n),
            EPS, carray(float32_at(out), n),
        )  # fmt: skip

    @compiled()
    def run_rotate(at, n):
        x, cos, sin, out = at
        rotate(
            carray(float32_at(x), n), carray(float32_at(cos), n), carray(float32_at(sin), n),
            carray(float32_at(out), n),
        )  # fmt: skip

    @compiled()
    def run_silu_mul(at, n):
        gate_up, out = at
        _silu_mul(carray(float32_at(gate_up), 2 * n), carray(float32_at(out), n))

    @compiled()
    def run_snake(at, n):
        x, alpha, per_alpha, out = at
        snake_float32(
            carray(float32_at(x), (1, n)), carray(float32_at(alpha), n),
            carray(float32_at(per_alpha), n), carray(float32_at(out), (1, n)),
        )  # fmt: skip

    return {
        "rms_norm": (run_rms_norm, (1, 1, 1)),
        "layer_norm": (run_layer_norm, (1, 1, 1, 1)),
        "rotate": (run_rotate, (1, 1, 1, 1)),
        "silu_mul": (run_silu_mul, (2, 1)),
        "snake": (run_snake, (1, 1, 1, 1)),
    }


def result(function, arrays, starts, width):
    """The bits of the result, the arrays and it being at these places of one piece of memory."""
    memory = np.zeros(2 * FAR * len(starts), np.float32)
    for start, array in zip(starts, arrays, strict=False):
        memory[start : start + len(array)] = array
    function(tuple(memory.ctypes.data + 4 * start for start in starts), width)
    return memory[starts[-1] : starts[-1] + width].tobytes()


def close_places(rng, widths):
    """Arrays in any order, with no more than a few numbers between them."""
    starts, end = [0] * len(widths), 0
    for index in rng.permutation(len(widths)):
        starts[index] = end
        end += widths[index] + 4 * int(rng.integers(0, 3))
    return starts


@pytest.mark.parametrize("name", ["rms_norm", "layer_norm", "rotate", "silu_mul", "snake"])
@pytest.mark.parametrize("width", [8, 16, 48, 64, 256])
def test_a_result_does_not_depend_on_addresses(functions, name, width):
    function, parts = functions[name]
    rng, widths = np.random.default_rng(width), [part * width for part in parts]
    for _ in range(40):
        arrays = [rng.standard_normal(size).astype(np.float32) for size in widths[:-1]]
        apart = [FAR * index for index in range(len(widths))]
        expected = result(function, arrays, apart, width)
        assert result(function, arrays, close_places(rng, widths), width) == expected
