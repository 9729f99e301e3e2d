"""A linear in blocks: which thread computes which blocks, and by which function."""

from __future__ import annotations

from functools import cache

import numpy as np
from numba import carray

from dia_demo.kernels import packing
from dia_demo.kernels.intrinsics import bfloat16_at, call, cast_like, fetch_add, float32_at
from dia_demo.kernels.jit import address_of, compiled, inlined
from dia_demo.kernels.llvm_simd import dot_lanes
from dia_demo.kernels.matmul.five_bits import gemm_int5_block
from dia_demo.kernels.matmul.int_microkernels import gemm_int_dot_block
from dia_demo.kernels.matmul.microkernels import gemm_block, gemm_int_dequant_block
from dia_demo.kernels.matmul.quantization import quantize
from dia_demo.kernels.packing import BFLOAT16, BLOCK, FLOAT32, GROUP, INT5

# So many inputs of a dense block are computed for all slots before the next, to stay in the cache.
CHUNK = 1024
# One block in this many is assigned to no thread beforehand: threads that finish early take it.
UNASSIGNED_SHARE = 4
# What a block's function reads: float32, bfloat16, or int8 with scales and sums.
FLOATS, BFLOATS, BYTES = range(3)

padded_size = compiled()(packing.padded_size)


def input_kind(format: int, use_dot: bool) -> int:
    """What the `block_function` reads: FLOATS, BFLOATS or BYTES."""
    if not use_dot:
        return FLOATS
    return BFLOATS if format == BFLOAT16 else BYTES


@cache
def block_function(format: int, use_dot: bool, /) -> int:
    """The address of the function that computes one block, compiled at the first call.

    Its arguments, addresses and sizes, are weights, x, x_stride, inputs, rows, out and out_stride:
    out [rows, BLOCK] += x [rows, inputs] @ the block's weights. x is of the `input_kind`, padded
    with zeros to whole groups; after int8 follow scales and sums, as `convert_input` writes them.
    use_dot: by the processor's dot products; NotImplementedError if it has none for the format.
    """
    if use_dot and not dot_lanes(format):
        raise NotImplementedError("this processor has no dot product for these weights")
    if format in (FLOAT32, BFLOAT16):
        return address_of(_dense_function(format, use_dot), arguments=7)
    return address_of(_integer_function(format, use_dot), arguments=7)


def _dense_function(format: int, use_dot: bool):
    """`block_function` of FLOAT32 or BFLOAT16."""
    input_bytes, weight_bytes = 2 if use_dot else 4, 4 if format == FLOAT32 else 2

    def compute_dense_block(weights, x, x_stride, inputs, rows, out, out_stride):
        for first in range(0, inputs, CHUNK):
            count, chunk = min(CHUNK, inputs - first), weights + weight_bytes * BLOCK * first
            x_chunk = x + input_bytes * first
            gemm_block(format, use_dot, chunk, x_chunk, x_stride, count, rows, out, out_stride)

    return compute_dense_block


def _integer_function(format: int, use_dot: bool):
    """`block_function` of INT8, INT4 or INT5."""
    is_int5 = format == INT5

    def compute_integer_block(weights, x, x_stride, inputs, rows, out, out_stride):
        groups = padded_size(inputs) // GROUP
        scales = x + rows * x_stride
        sums = scales + 4 * rows * groups
        if is_int5:
            gemm_int5_block(
                use_dot, weights, x, x_stride, scales, sums, groups, rows, out, out_stride
            )
        elif use_dot:
            gemm_int_dot_block(
                format, weights, x, x_stride, scales, sums, groups, rows, out, out_stride
            )
        else:
            gemm_int_dequant_block(format, weights, x, x_stride, groups, rows, out, out_stride)

    return compute_integer_block


@inlined
def linear_share(args, op, x, x_stride, thread_index, block_counter):
    """op.out [slots, outputs] (+)= x [slots, inputs] @ op's linear, for this thread's blocks.

    args: a STEP_ARGS, op: an OP; see decoder_step.py. x: what the block's function reads. op.out
    has space for whole blocks. block_counter: address of an int64 that is 0 before the first thread
    arrives.

    Most blocks are assigned to threads beforehand. Threads take the last blocks one by one as they
    finish, since cores are not equally fast.
    """
    blocks = padded_size(op.outputs) // BLOCK
    assigned = blocks - blocks // UNASSIGNED_SHARE if args.threads > 1 else blocks
    block = assigned * thread_index // args.threads
    end = assigned * (thread_index + 1) // args.threads
    while True:
        if block >= end:
            block = assigned + fetch_add(block_counter)
        if block >= blocks:
            break
        out = op.out + 4 * BLOCK * block
        if op.overwrite:
            for row in range(args.slots):
                out_row = carray(float32_at(out + row * op.out_stride), BLOCK)
                for i in range(BLOCK):
                    out_row[i] = np.float32(0)
        weights = op.weights + block * op.block_size
        call(op.compute, (weights, x, x_stride, op.inputs, args.slots, out, op.out_stride))
        block += 1


@inlined
def convert_input(kind, x, x_stride, inputs, rows, out):
    """Write float32 x [rows, inputs] to `out` as BFLOATS or BYTES; returns the bytes of a row."""
    whole = padded_size(inputs)
    groups = whole // GROUP
    if kind == BFLOATS:
        for row in range(rows):
            source = carray(float32_at(x + row * x_stride), whole)
            out_row = carray(bfloat16_at(out + 2 * whole * row), whole)
            for i in range(whole):
                out_row[i] = cast_like(out_row[i], source[i])
        return 2 * whole
    scales = out + rows * whole
    sums = scales + 4 * rows * groups
    for row in range(rows):
        quantize(
            x + row * x_stride,
            groups,
            out + row * whole,
            scales + 4 * row * groups,
            sums + 8 * row * groups,
        )
    return whole
