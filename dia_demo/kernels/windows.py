"""What a stream computes over its last rows: convolutions as linears of windows, and attention.

A window is some neighbouring rows of activations, which follow one another in memory, so that a
convolution is one linear whose input moves on by a row. Every row of the result is computed in the
same order, whatever is computed beside it: it does not depend on the number of rows or threads.
"""

from __future__ import annotations

import numpy as np
from numba import carray

from dia_demo.kernels.attention import attend
from dia_demo.kernels.intrinsics import barrier_wait, fetch_add, float32_at
from dia_demo.kernels.jit import compiled
from dia_demo.kernels.matmul.linear import CHUNK, block_bytes
from dia_demo.kernels.matmul.microkernels import gemm_block
from dia_demo.kernels.packing import BFLOAT16, BLOCK, FLOAT32

# x float32 [rows + ..., row_width], out float32 [rows, blocks * BLOCK], bias float32 of that width;
# inputs: numbers of a window. counter: address of an int64 that is 0 at first.
WINDOWS = np.dtype(
    [
        (name, np.int64)
        for name in (
            "threads barrier yield_core counter rows x row_width inputs format weights blocks bias "
            "out"
        ).split()
    ]
)
# q float32 [heads, rows, K], keys and values [heads, capacity, K], scores: scratch for [heads,
# capacity], out [rows, out_width]; filled: positions in the cache before the first of the rows.
ATTENTION = np.dtype(
    [
        (name, np.int64)
        for name in (
            "threads barrier yield_core counter rows heads head_dim window filled capacity q keys "
            "values scores out out_width"
        ).split()
    ]
)
# Rows that are computed with a block of weights before the next one: they stay in the cache.
ROWS_AT_ONCE = 64


@compiled()
def multiply_windows(thread_index, windows):
    """out = bias + the linear of every window of x. windows: WINDOWS [1].

    Threads take parts of it one by one, since cores are not equally fast.
    """
    args = windows[0]
    parts = (args.rows + ROWS_AT_ONCE - 1) // ROWS_AT_ONCE
    size = block_bytes(args.format, args.inputs)
    x_stride, out_stride = 4 * args.row_width, 4 * BLOCK * args.blocks
    while True:
        number = fetch_add(args.counter)
        if number >= parts * args.blocks:
            break
        block, first = number // parts, number % parts * ROWS_AT_ONCE
        rows = min(ROWS_AT_ONCE, args.rows - first)
        out = args.out + out_stride * first + 4 * BLOCK * block
        bias = carray(float32_at(args.bias + 4 * BLOCK * block), BLOCK)
        for row in range(rows):
            out_row = carray(float32_at(out + out_stride * row), BLOCK)
            for i in range(BLOCK):
                out_row[i] = bias[i]
        x, weights = args.x + x_stride * first, args.weights + size * block
        for begin in range(0, args.inputs, CHUNK):
            count = min(CHUNK, args.inputs - begin)
            chunk = weights + block_bytes(args.format, begin)
            x_chunk = x + 4 * begin
            if args.format == FLOAT32:
                gemm_block(FLOAT32, False, chunk, x_chunk, x_stride, count, rows, out, out_stride)
            else:
                gemm_block(BFLOAT16, False, chunk, x_chunk, x_stride, count, rows, out, out_stride)
    barrier_wait(args.barrier, args.threads, args.yield_core)


@compiled()
def attend_window(thread_index, attention):
    """Attention of each row to itself and the positions before it, `window` of them in all.

    attention: ATTENTION [1]. Threads take heads one by one.
    """
    args = attention[0]
    K = args.head_dim
    while True:
        head = fetch_add(args.counter)
        if head >= args.heads:
            break
        for row in range(args.rows):
            last = args.filled + row
            first = max(0, last - args.window + 1)
            start = 4 * K * (args.capacity * head + first)
            q = args.q + 4 * K * (args.rows * head + row)
            out = args.out + 4 * (args.out_width * row + K * head)
            scores = args.scores + 4 * args.capacity * head
            keys, values = args.keys + start, args.values + start
            attend(False, q, 1, K, keys, values, last - first + 1, scores, out)
    barrier_wait(args.barrier, args.threads, args.yield_core)
