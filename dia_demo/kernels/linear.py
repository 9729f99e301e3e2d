"""A linear in blocks: whose share is which, and which tiles it takes."""

from __future__ import annotations

import numpy as np
from numba import carray

from dia_demo.kernels import formats
from dia_demo.kernels.formats import BFLOAT16, BLOCK, FLOAT32, GROUP, INT4, INT8
from dia_demo.kernels.jit import compiled, inlined
from dia_demo.kernels.scalars import claim, floats_at, halves_at, like
from dia_demo.kernels.tiles import dense_block, dot_block, float_block, quantise

# Inputs of a dense block that are read for all rows before the next, so that they stay in cache.
STRETCH = 1024
# One in so many blocks is nobody's: members that are done sooner take them.
CLAIMED = 4


padded = compiled()(formats.padded)
block_bytes = compiled()(formats.block_bytes)


@inlined
def _dense(kind, use_dot, weights, x, x_stride, x_size, inputs, rows, out, out_stride):
    """FLOAT32 or BFLOAT16; x_size: bytes of one of x."""
    for first in range(0, inputs, STRETCH):
        count, here = min(STRETCH, inputs - first), weights + block_bytes(kind, first)
        given = x + x_size * first
        dense_block(kind, use_dot, here, given, x_stride, count, rows, out, out_stride)


@inlined
def _integer(kind, use_dot, weights, x, x_stride, small, groups, rows, out, out_stride):
    """INT8 or INT4."""
    if use_dot:
        stride, scales = groups * GROUP, small + rows * groups * GROUP
        sums = scales + 4 * rows * groups
        dot_block(kind, weights, small, stride, scales, sums, groups, rows, out, out_stride)
    else:
        float_block(kind, weights, x, x_stride, groups, rows, out, out_stride)


@inlined
def project(
    precision, use_dot, kind, weights, outputs, inputs, x, x_stride, small, rows, out, out_stride,
    fresh, me, team, claims,
):  # fmt: skip
    """out [rows, outputs] += x [rows, inputs] @ the linear, for member `me`'s share of the blocks.

    precision and use_dot are constants, see step.py; kind is this linear's format.

    Most blocks are shared out beforehand, the last of them go to whoever comes for them: cores are
    not equally fast. claims: address of an int64 that is 0 before the first member is here.
    fresh: out holds nothing yet and begins at zero. x float32, its inputs filled up with zeros to
    whole groups; with use_dot, `small` holds what `shrink` made of x. out has room for whole
    blocks. Addresses and strides in bytes.
    """
    blocks = padded(outputs) // BLOCK
    shared = blocks - blocks // CLAIMED if team > 1 else blocks
    block, end = shared * me // team, shared * (me + 1) // team
    while True:
        if block >= end:
            block = shared + claim(claims)
        if block >= blocks:
            break
        _project_block(
            precision, use_dot, kind, weights + block * block_bytes(kind, inputs), inputs, x,
            x_stride, small, rows, out + 4 * BLOCK * block, out_stride, fresh,
        )  # fmt: skip
        block += 1


@inlined
def _project_block(
    precision, use_dot, kind, weights, inputs, x, x_stride, small, rows, out, out_stride, fresh
):
    """One block; `weights` and `out` are where it begins."""
    groups = padded(inputs) // GROUP
    if fresh:
        for row in range(rows):
            line = carray(floats_at(out + row * out_stride), BLOCK)
            for i in range(BLOCK):
                line[i] = np.float32(0)
    if precision == FLOAT32:
        _dense(FLOAT32, False, weights, x, x_stride, 4, inputs, rows, out, out_stride)
    elif precision == BFLOAT16:
        if use_dot:
            stride = 2 * GROUP * groups
            _dense(BFLOAT16, True, weights, small, stride, 2, inputs, rows, out, out_stride)
        else:
            _dense(BFLOAT16, False, weights, x, x_stride, 4, inputs, rows, out, out_stride)
    elif precision == INT8 or kind == INT8:
        _integer(INT8, use_dot, weights, x, x_stride, small, groups, rows, out, out_stride)
    else:
        _integer(INT4, use_dot, weights, x, x_stride, small, groups, rows, out, out_stride)


@inlined
def shrink(precision, x, x_stride, inputs, rows, small):
    """What the route DOT reads, of x [rows, inputs], at `small`: bfloat16 of whole groups, or int8,
    then its scales, then its sums.
    """
    groups = padded(inputs) // GROUP
    if precision == BFLOAT16:
        for row in range(rows):
            given = carray(floats_at(x + row * x_stride), GROUP * groups)
            halves = carray(halves_at(small + 2 * GROUP * groups * row), GROUP * groups)
            for i in range(GROUP * groups):
                halves[i] = like(halves[i], given[i])
    else:
        scales = small + rows * groups * GROUP
        sums = scales + 4 * rows * groups
        for row in range(rows):
            quantise(
                x + row * x_stride,
                groups,
                small + row * groups * GROUP,
                scales + 4 * row * groups,
                sums + 4 * row * groups,
            )
