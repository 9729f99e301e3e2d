"""Texts and voice prompts are multiplied as a step multiplies them."""

from __future__ import annotations

import pytest
import torch

from dia_demo.kernels.packing import INT4, INT8
from dia_demo.model.cpu_model import CpuModel
from dia_demo.model.linear import INTEGERS, KERNELS
from dia_demo.model.packed_linear import PackedLinear
from dia_demo.model.weights.checkpoint import load_random
from dia_demo.task import result_of
from tests.helpers.models.checkpoints import SMALL, marks_for, random_codes

TEXT, PROMPT = b"\x01 Hello there.", torch.from_numpy(random_codes(SMALL, 9)).long()
DOT_PRODUCTS = KERNELS[0]

pytestmark = [pytest.mark.processor, *marks_for(DOT_PRODUCTS)]


def installed(precision: str) -> CpuModel:
    dia = result_of(load_random(SMALL, precision, DOT_PRODUCTS))
    try:
        return DOT_PRODUCTS.install(dia, threads=2)
    except NotImplementedError as reason:
        pytest.skip(str(reason))


def prefill(model: CpuModel) -> torch.Tensor:
    """The logits after a text and a voice prompt."""
    cache = model.encode(TEXT, cfg_scale=1.0, max_positions=40)
    return model(PROMPT.expand(2, -1, -1), [cache])


@pytest.mark.parametrize("precision", INTEGERS)
@pytest.mark.parametrize("rows", [2, 128, 129, 301])
def test_a_row_of_many_is_the_row_alone(precision, rows):
    step = pytest.importorskip("dia_demo.model.compiled_step")
    generator = torch.Generator().manual_seed(rows)
    linear = PackedLinear.from_weight(torch.randn(200, 300, generator=generator), precision)
    x = torch.randn(rows, 300, generator=generator)
    try:
        together = step.ManyRows(threads=2, use_dot=True)(linear, x)
    except NotImplementedError as reason:
        pytest.skip(str(reason))
    assert together.shape == (rows, 200)
    one_thread = step.ManyRows(threads=1, use_dot=True)
    for row in (0, 1, rows - 1):
        alone = one_thread(linear, x[row : row + 1])
        assert torch.equal(together[row : row + 1], alone)


@pytest.mark.parametrize("precision", INTEGERS)
def test_no_weights_are_unpacked_for_texts_nor_prompts(precision, monkeypatch):
    model = installed(precision)

    def unpack(self, x):
        raise AssertionError(f"the weights of {tuple(x.shape)} were unpacked")

    monkeypatch.setattr(PackedLinear, "_multiply_unpacked", unpack)
    assert prefill(model).isfinite().all()


@pytest.mark.parametrize("precision", INTEGERS)
def test_a_prefill_differs_from_exact_products_by_the_rounding_of_its_inputs(precision):
    model = installed(precision)
    by_bytes = prefill(model)
    formats = {m.format for m in model.dia.modules() if isinstance(m, PackedLinear)}
    assert formats == ({INT8} if precision == "int8" else {INT8, INT4})
    for module in model.dia.modules():
        if isinstance(module, PackedLinear):
            module.many_rows = None
    model = CpuModel(model.dia, threads=2)  # Nothing kept of the prompt.
    exact = prefill(model)
    assert 0 < (by_bytes - exact).norm() / exact.norm() < 0.05
