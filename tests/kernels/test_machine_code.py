"""What LLVM makes of the microkernels: properties that only show in their speed otherwise."""

from __future__ import annotations

import itertools
import re

import pytest

pytest.importorskip("numba")

from numba import njit, types

from dia_demo.kernels.matmul.five_bits import gemm_int5_block
from dia_demo.kernels.matmul.int_microkernels import gemm_int_dot_block
from dia_demo.kernels.packing import INT4, INT8
from dia_demo.machine.processor import byte_product_lanes, is_arm64

pytestmark = [
    pytest.mark.processor,
    pytest.mark.skipif(
        is_arm64() or not byte_product_lanes(), reason="this processor has no products of bytes"
    ),
]
# Of the eleven cache lines that INT5 prefetches with 16 outputs, those before half a group.
MOST_PREFETCHES = 6


def machine_code(function) -> list[str]:
    """The instructions of a function of nine addresses and sizes, without labels and comments."""
    compiled = njit([types.void(*[types.int64] * 9)], error_model="numpy")
    (text,) = compiled(function).inspect_asm().values()
    lines = (line.strip() for line in text.splitlines())
    return [line for line in lines if re.match(r"[a-z]\S*(\s|$)", line) and ":" not in line]


def test_five_bits_are_prefetched_in_turns_with_their_use():
    def multiply(weights, x, x_stride, scales, sums, groups, rows, out, out_stride):
        gemm_int5_block(True, weights, x, x_stride, scales, sums, groups, rows, out, out_stride)

    is_prefetch = [line.startswith("prefetch") for line in machine_code(multiply)]
    runs = [len(list(run)) for prefetch, run in itertools.groupby(is_prefetch) if prefetch]

    assert runs
    assert max(runs) <= MOST_PREFETCHES


@pytest.mark.parametrize("format", [INT8, INT4])
def test_no_vector_on_the_stack_lies_in_two_cache_lines(format):
    def multiply(weights, x, x_stride, scales, sums, groups, rows, out, out_stride):
        gemm_int_dot_block(
            format, weights, x, x_stride, scales, sums, groups, rows, out, out_stride
        )

    code = machine_code(multiply)
    on_stack = [line for line in code if "(%rsp)" in line and re.search(r"[yz]mm\d", line)]

    assert any(re.search(r"[yz]mm\d", line) for line in code)
    assert not [line for line in on_stack if re.match(r"vmov(dqu|ups)", line)]
