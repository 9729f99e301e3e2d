"""Kernels of the step linears: every one that runs here says what the plain product says."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from dia_demo.model import linear


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("name", list(linear.KERNELS))
@pytest.mark.parametrize("slots", [1, 2, 7])
def test_kernel_equals_the_product(name, dtype, slots):
    torch.manual_seed(0)
    weight, x = torch.randn(70, 48).to(dtype), torch.randn(slots, 3, 48).to(dtype)
    with torch.inference_mode():
        try:
            found = linear.KERNELS[name](weight)(x)
        except (RuntimeError, AttributeError) as reason:
            pytest.skip(f"{name} does not run on this machine: {reason}")
    expected = x.double() @ weight.double().t()
    assert found.shape == (slots, 3, 70) and found.dtype == dtype
    assert (found.double() - expected).norm() <= linear.LARGEST_ERROR[dtype] * expected.norm()


def test_a_kernel_that_errs_or_fails_is_never_chosen(monkeypatch):
    """Speed alone must not decide: a wrong kernel is often the fastest."""

    class Wrong(nn.Module):
        def __init__(self, weight):
            super().__init__()
            self.zeros = torch.zeros(2, weight.shape[0])

        def forward(self, x):
            return self.zeros

    def broken(weight):
        raise RuntimeError("could not create a primitive")

    kernels = {"wrong": Wrong, "broken": broken, "plain": linear.PlainLinear}
    monkeypatch.setattr(linear, "KERNELS", kernels)
    choice = linear.choose(torch.randn(64, 64))
    assert choice.name == "plain"
    assert set(choice.milliseconds) == {"plain"}
