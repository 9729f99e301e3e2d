"""A linear in blocks: which thread computes which blocks, with which microkernel."""

from __future__ import annotations

import numpy as np
from numba import carray

from dia_demo.kernels import packing
from dia_demo.kernels.intrinsics import bfloat16_at, cast_like, fetch_add, float32_at
from dia_demo.kernels.jit import compiled, inlined
from dia_demo.kernels.matmul.five_bits import gemm_int5_block
from dia_demo.kernels.matmul.int_microkernels import gemm_int_dot_block
from dia_demo.kernels.matmul.microkernels import gemm_block, gemm_int_dequant_block
from dia_demo.kernels.matmul.quantization import quantize
from dia_demo.kernels.packing import BFLOAT16, BLOCK, FLOAT32, GROUP, INT4, INT5, INT8

# So many inputs of a dense block are computed for all slots before the next, to stay in the cache.
CHUNK = 1024
# One block in this many is assigned to no thread beforehand: threads that finish early take it.
UNASSIGNED_SHARE = 4

padded_size = compiled()(packing.padded_size)
block_bytes = compiled()(packing.block_bytes)


@inlined
def _dense(format, use_dot, weights, x, x_stride, x_size, inputs, rows, out, out_stride):
    """FLOAT32 or BFLOAT16; x_size: bytes of one number of x."""
    for first in range(0, inputs, CHUNK):
        count, chunk = min(CHUNK, inputs - first), weights + block_bytes(format, first)
        x_chunk = x + x_size * first
        gemm_block(format, use_dot, chunk, x_chunk, x_stride, count, rows, out, out_stride)


@inlined
def _integer(format, use_dot, weights, x, x_stride, quantized, groups, rows, out, out_stride):
    """INT8 or INT4."""
    if use_dot:
        stride, scales = groups * GROUP, quantized + rows * groups * GROUP
        sums = scales + 4 * rows * groups
        gemm_int_dot_block(
            format, weights, quantized, stride, scales, sums, groups, rows, out, out_stride
        )  # fmt: skip
    else:
        gemm_int_dequant_block(format, weights, x, x_stride, groups, rows, out, out_stride)


@inlined
def _five_bits(use_dot, weights, x, x_stride, quantized, groups, rows, out, out_stride):
    """INT5."""
    if use_dot:
        stride, scales = groups * GROUP, quantized + rows * groups * GROUP
        sums = scales + 4 * rows * groups
        gemm_int5_block(
            True, weights, quantized, stride, scales, sums, groups, rows, out, out_stride
        )  # fmt: skip
    else:
        gemm_int5_block(False, weights, x, x_stride, x, x, groups, rows, out, out_stride)


@inlined
def linear_share(
    precision, use_dot, args, op, x, x_stride, quantized, thread_index, block_counter
):  # fmt: skip
    """op.out [slots, outputs] (+)= x [slots, inputs] @ op's linear, for this thread's blocks.

    precision and use_dot are constants, args a STEP_ARGS, op an OP: see decoder_step.py. x is
    float32, padded with zeros to whole groups of inputs; with use_dot, `quantized` is the result of
    `quantize_activations`. op.out has space for whole blocks. block_counter: address of an int64
    that is 0 before the first thread arrives.

    Most blocks are assigned to threads beforehand. Threads take the last blocks one by one as they
    finish, since cores are not equally fast.
    """
    blocks = padded_size(op.outputs) // BLOCK
    assigned = blocks - blocks // UNASSIGNED_SHARE if args.threads > 1 else blocks
    block = assigned * thread_index // args.threads
    end = assigned * (thread_index + 1) // args.threads
    size = block_bytes(op.format, op.inputs)
    while True:
        if block >= end:
            block = assigned + fetch_add(block_counter)
        if block >= blocks:
            break
        _compute_block(
            precision, use_dot, op, op.weights + block * size, x, x_stride, quantized, args.slots,
            op.out + 4 * BLOCK * block,
        )  # fmt: skip
        block += 1


@inlined
def _compute_block(precision, use_dot, op, weights, x, x_stride, quantized, rows, out):
    """Compute one block; `weights` and `out` are its addresses."""
    inputs, stride = op.inputs, op.out_stride
    groups = padded_size(inputs) // GROUP
    if op.overwrite:
        for row in range(rows):
            out_row = carray(float32_at(out + row * stride), BLOCK)
            for i in range(BLOCK):
                out_row[i] = np.float32(0)
    if precision == FLOAT32:
        _dense(FLOAT32, False, weights, x, x_stride, 4, inputs, rows, out, stride)
    elif precision == BFLOAT16:
        if use_dot:
            x_bf16, bf16_stride = quantized, 2 * GROUP * groups
            _dense(BFLOAT16, True, weights, x_bf16, bf16_stride, 2, inputs, rows, out, stride)
        else:
            _dense(BFLOAT16, False, weights, x, x_stride, 4, inputs, rows, out, stride)
    elif precision == INT5:
        if op.format == INT8:
            _integer(INT8, use_dot, weights, x, x_stride, quantized, groups, rows, out, stride)
        else:
            _five_bits(use_dot, weights, x, x_stride, quantized, groups, rows, out, stride)
    elif precision == INT8 or op.format == INT8:
        _integer(INT8, use_dot, weights, x, x_stride, quantized, groups, rows, out, stride)
    else:
        _integer(INT4, use_dot, weights, x, x_stride, quantized, groups, rows, out, stride)


@inlined
def quantize_activations(precision, x, x_stride, inputs, rows, quantized):
    """Write x [rows, inputs] to `quantized` as the dot-product route reads it.

    For BFLOAT16, bfloat16 in whole groups; else int8, then its scales, then its sums.
    """
    groups = padded_size(inputs) // GROUP
    if precision == BFLOAT16:
        for row in range(rows):
            source = carray(float32_at(x + row * x_stride), GROUP * groups)
            out_row = carray(bfloat16_at(quantized + 2 * GROUP * groups * row), GROUP * groups)
            for i in range(GROUP * groups):
                out_row[i] = cast_like(out_row[i], source[i])
    else:
        scales = quantized + rows * groups * GROUP
        sums = scales + 4 * rows * groups
        for row in range(rows):
            quantize(
                x + row * x_stride,
                groups,
                quantized + row * groups * GROUP,
                scales + 4 * row * groups,
                sums + 8 * row * groups,
            )
