"""Random weights, which benchmarks measure with."""

from dataclasses import replace

import pytest
import torch

from dia_demo.model.linear import INTEGERS, KERNELS
from dia_demo.model.packed_linear import PackedLinear
from dia_demo.model.weights import checkpoint
from dia_demo.task import result_of
from tests.helpers.models.checkpoints import SMALL


@pytest.mark.parametrize("precision", INTEGERS)
def test_a_large_random_weight_is_packed_once_for_all_layers(precision, monkeypatch):
    """At Dia-1.6B's size loading took 77 of a benchmark's 172 s."""
    monkeypatch.setattr(checkpoint, "DRAWN", 1023)
    packed = []

    def build(weight, width):
        packed.append(weight.shape)
        return PackedLinear.from_weight(weight, width)

    kernel = replace(KERNELS[0], build=build)
    decoder = result_of(checkpoint.load_random(SMALL, precision, kernel)).decoder
    first, last = (layer.mlp.down_proj for layer in (decoder.layers[0], decoder.layers[-1]))
    assert first is not last and first.blocks.data_ptr() != last.blocks.data_ptr()
    assert torch.equal(first.blocks, last.blocks)
    assert len(packed) == 6  # Of 13: two layers with six linears, two of them alike, and logits.
