"""A linear in blocks: whose share is which, and which tiles it takes."""

from __future__ import annotations

import numpy as np
from numba import carray

from dia_demo.kernels import formats
from dia_demo.kernels.emit import dot_lanes
from dia_demo.kernels.formats import BFLOAT16, BLOCK, FLOAT32, GROUP, INT4, INT8
from dia_demo.kernels.jit import compiled, inlined
from dia_demo.kernels.scalars import claim, floats_at
from dia_demo.kernels.tiles import dense_block, dot_block, float_block, quantise

# Inputs of a dense block that are read for all rows before the next, so that they stay in cache.
STRETCH = 1024
# One in so many blocks is nobody's: members that are done sooner take them.
CLAIMED = 4


padded = compiled()(formats.padded)
block_bytes = compiled()(formats.block_bytes)


@inlined
def _dense(kind, weights, x, x_stride, inputs, rows, out, out_stride):
    for first in range(0, inputs, STRETCH):
        count = min(STRETCH, inputs - first)
        if kind == FLOAT32:
            here = weights + 4 * BLOCK * first
            dense_block(FLOAT32, here, x + 4 * first, x_stride, count, rows, out, out_stride)
        else:
            here = weights + 2 * BLOCK * first
            dense_block(BFLOAT16, here, x + 4 * first, x_stride, count, rows, out, out_stride)


@inlined
def _by_float(kind, weights, x, x_stride, groups, rows, out, out_stride):
    if kind == INT8:
        float_block(INT8, weights, x, x_stride, groups, rows, out, out_stride)
    else:
        float_block(INT4, weights, x, x_stride, groups, rows, out, out_stride)


if dot_lanes():

    @inlined
    def _by_dot(kind, weights, x, scales, sums, groups, rows, out, out_stride):
        stride = groups * GROUP
        if kind == INT8:
            dot_block(INT8, weights, x, stride, scales, sums, groups, rows, out, out_stride)
        else:
            dot_block(INT4, weights, x, stride, scales, sums, groups, rows, out, out_stride)

else:

    @compiled()
    def _by_dot(kind, weights, x, scales, sums, groups, rows, out, out_stride):
        """Never called: the route DOT is not offered here."""


@inlined
def project(
    kind, use_dot, weights, outputs, inputs, x, x_stride, small, rows, out, out_stride, fresh, me,
    team, claims,
):  # fmt: skip
    """out [rows, outputs] += x [rows, inputs] @ the linear, for member `me`'s share of the blocks.

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
            kind, use_dot, weights + block * block_bytes(kind, inputs), inputs, x, x_stride,
            small, rows, out + 4 * BLOCK * block, out_stride, fresh,
        )  # fmt: skip
        block += 1


@inlined
def _project_block(
    kind, use_dot, weights, inputs, x, x_stride, small, rows, out, out_stride, fresh
):
    """One block; `weights` and `out` are where it begins."""
    groups = padded(inputs) // GROUP
    if fresh:
        for row in range(rows):
            line = carray(floats_at(out + row * out_stride), BLOCK)
            for i in range(BLOCK):
                line[i] = np.float32(0)
    if kind == FLOAT32 or kind == BFLOAT16:
        _dense(kind, weights, x, x_stride, inputs, rows, out, out_stride)
    elif use_dot:
        scales = small + rows * groups * GROUP
        sums = scales + 4 * rows * groups
        _by_dot(kind, weights, small, scales, sums, groups, rows, out, out_stride)
    else:
        _by_float(kind, weights, x, x_stride, groups, rows, out, out_stride)


@inlined
def shrink(x, x_stride, inputs, rows, small):
    """int8 of x [rows, inputs] at `small`, then its scales, then its sums."""
    groups = padded(inputs) // GROUP
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
