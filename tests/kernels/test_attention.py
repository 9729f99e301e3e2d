"""The compiled attention at shapes of its own: Dia's, and those that leave a rest of every loop."""

from __future__ import annotations

import ctypes

import pytest
import torch

from dia_demo.model import linear

pytestmark = pytest.mark.processor

SHAPES = [
    (4, 128, 300),
    (1, 128, 91),
    (16, 128, 2),
    (6, 80, 33),
    (3, 18, 7),
    (2, 8, 1),
    (5, 16, 64),
    (4, 32, 161),
    (1, 32, 203),
]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(("heads", "width", "count"), SHAPES)
def test_attention_is_softmax_of_the_products(heads, width, count, dtype):
    if not linear.can_compile():
        pytest.skip("needs numba")
    from dia_demo.kernels.attention import attend_function

    torch.manual_seed(0)
    q = torch.randn(heads, width) / width**0.5
    # A guard behind everything written: what is past the end must stay.
    keys, values = torch.randn(2, count, width).to(dtype)
    scores, out = torch.full((heads * count + 1,), 7.0), torch.full((heads * width + 1,), 7.0)
    kind = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * 8)
    attend = kind(attend_function(dtype == torch.bfloat16))
    pointers = [tensor.data_ptr() for tensor in (q, keys, values, scores, out)]
    attend(pointers[0], heads, width, pointers[1], pointers[2], count, pointers[3], pointers[4])
    expected = (q.double() @ keys.double().t()).softmax(-1) @ values.double()
    error = (out[:-1].view(heads, width).double() - expected).abs().max()
    assert error < 1e-5 * values.abs().max()
    assert out[-1] == scores[-1] == 7
