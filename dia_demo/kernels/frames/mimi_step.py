"""The next frames of a Mimi stream, from codes to samples, as one call of the pool.

A convolution is a linear of windows: some neighbouring rows of activations, which follow one
another in memory, so that the input moves on by a row. Each layer reads a buffer that begins with
the last rows of the frames before, which the stream keeps between calls. Every row of a result is
computed in the same order, whatever is computed beside it: it does not depend on the number of
frames or threads.
"""

from __future__ import annotations

import numpy as np
from numba import carray

from dia_demo.kernels.attention import rotate
from dia_demo.kernels.intrinsics import (
    barrier_wait,
    call,
    exp,
    fetch_add,
    float32_at,
    int64_at,
    sum_of_squares,
)
from dia_demo.kernels.jit import ANY_ORDER, compiled, inlined
from dia_demo.kernels.packing import BLOCK

# counters: address of int64 [operations], all 0. history: of the rows that the stream keeps,
# float32. codes: int64 [frames, channels]. cos, sin: float32 [positions, head_dim], the sines of
# the first half of a head negative. filled: positions in the cache before these frames. attend:
# attention.attend_function.
MIMI_ARGS = np.dtype(
    [
        (name, np.int64)
        for name in (
            "threads barrier yield_core counters frames history codes channels semantic tables "
            "cos sin filled capacity kv heads head_dim window scores attend"
        ).split()
    ]
    + [("eps", np.float32), ("", np.float32)]
)
# rows: of a frame. x, out, add, active: addresses of float32 rows, with bytes from one row to the
# next. count: numbers of a row, of a linear's input those of a window. compute: the function of a
# linear's blocks, of `block_size` bytes each (matmul/linear.py). place: in the history, or the
# number of a layer. ends_phase: all threads wait for one another after it.
MIMI_OP = np.dtype(
    [
        (name, np.int64)
        for name in (
            "kind ends_phase rows count place x x_stride out out_stride "
            "compute block_size weights blocks bias add activation active active_stride"
        ).split()
    ]
)
# Kinds of operations. RESTORE: out = what the history has at `place`; KEEP: the opposite, of the
# rows that end with the frames' last. SUM_CODES: out = the sums of the codes' vectors, semantic and
# acoustic. UPSAMPLE: each row of x and the one before it, as two rows.
RESTORE, KEEP, SUM_CODES, LINEAR, UPSAMPLE, NORM, ATTENTION = range(7)
# What follows a linear: active = ELU(out) or GELU(out).
NOTHING, ELU, GELU = range(3)
# Rows that are computed with a block of weights before the next one: they stay in the cache.
ROWS_AT_ONCE = 64
# erf(x) = 1 - (a1 t + ... + a5 t**5) exp(-x**2), t = 1 / (1 + p x): Abramowitz and Stegun, 7.1.26.
ERF_P = np.float32(0.3275911)
A1, A2, A3 = np.float32(0.254829592), np.float32(-0.284496736), np.float32(1.421413741)
A4, A5 = np.float32(-1.453152027), np.float32(1.061405429)
HALF, ONE, ROOT_HALF = np.float32(0.5), np.float32(1), np.float32(0.5**0.5)


@compiled(fastmath={"contract"}, forceinline=True)
def _elu(x, out):
    for i in range(BLOCK):
        out[i] = x[i] if x[i] > 0 else exp(x[i]) - ONE


@compiled(fastmath={"contract"}, forceinline=True)
def _gelu(x, out):
    for i in range(BLOCK):
        size = abs(x[i])
        z = size * ROOT_HALF
        t = ONE / (ONE + ERF_P * z)
        rest = t * (A1 + t * (A2 + t * (A3 + t * (A4 + t * A5)))) * exp(-z * z)
        out[i] = (x[i] if x[i] > 0 else np.float32(0)) - HALF * size * rest


@compiled(fastmath=ANY_ORDER, forceinline=True)
def _mean(x):
    total = np.float32(0)
    for i in range(len(x)):
        total += x[i]
    return total / np.float32(len(x))


@compiled(fastmath={"contract"}, forceinline=True)
def _layer_norm(x, weight, bias, eps, out):
    mean = _mean(x)
    scale = ONE / np.sqrt(sum_of_squares(x, mean) / np.float32(len(x)) + eps)
    for i in range(len(x)):
        out[i] = (x[i] - mean) * weight[i] * scale + bias[i]


@inlined
def _copy(source, target, count):
    numbers, copied = carray(float32_at(source), count), carray(float32_at(target), count)
    for i in range(count):
        copied[i] = numbers[i]


@inlined
def _linear(args, op, counter):
    """op.out = bias + op.add + the linear of every window of op.x, and op.active of it.

    Threads take parts of it one by one, since cores are not equally fast.
    """
    all_rows = op.rows * args.frames
    parts = (all_rows + ROWS_AT_ONCE - 1) // ROWS_AT_ONCE
    while True:
        number = fetch_add(counter)
        if number >= parts * op.blocks:
            break
        block, first = number // parts, number % parts * ROWS_AT_ONCE
        rows = min(ROWS_AT_ONCE, all_rows - first)
        offset = op.out_stride * first + 4 * BLOCK * block
        _begin(op, block, rows, offset)
        out, x = op.out + offset, op.x + op.x_stride * first
        weights = op.weights + op.block_size * block
        call(op.compute, (weights, x, op.x_stride, op.count, rows, out, op.out_stride))
        if op.activation != NOTHING:
            active = op.active + op.active_stride * first + 4 * BLOCK * block
            for row in range(rows):
                values = carray(float32_at(out + op.out_stride * row), BLOCK)
                result = carray(float32_at(active + op.active_stride * row), BLOCK)
                if op.activation == ELU:
                    _elu(values, result)
                else:
                    _gelu(values, result)


@inlined
def _begin(op, block, rows, offset):
    """What a block's products are added to."""
    bias = carray(float32_at(op.bias + 4 * BLOCK * block), BLOCK)
    for row in range(rows):
        out_row = carray(float32_at(op.out + offset + op.out_stride * row), BLOCK)
        if op.add != 0:
            add_row = carray(float32_at(op.add + offset + op.out_stride * row), BLOCK)
            for i in range(BLOCK):
                out_row[i] = bias[i] + add_row[i]
        else:
            for i in range(BLOCK):
                out_row[i] = bias[i]


@inlined
def _sum_codes(args, op, thread_index):
    """op.out [frames, 2, count] = the sums of the vectors, for this thread's frames."""
    D = op.count
    tables = carray(int64_at(args.tables), args.channels)
    codes = carray(int64_at(args.codes), (args.frames, args.channels))
    for frame in range(thread_index, args.frames, args.threads):
        sums = carray(float32_at(op.out + op.out_stride * frame), (2, D))
        sums[:] = np.float32(0)
        for channel in range(args.channels):
            vector = carray(float32_at(tables[channel] + 4 * D * codes[frame, channel]), D)
            part = sums[int(channel >= args.semantic)]
            for i in range(D):
                part[i] += vector[i]


@inlined
def _upsample(args, op, thread_index):
    """Two rows of op.out for each of op.x and the one before it; weights [2, 2, count]: of the
    newer one for both rows, then of the older one."""
    C = op.count
    weights = carray(float32_at(op.weights), (2, 2, C))
    for row in range(thread_index, 2 * args.frames, args.threads):
        older = carray(float32_at(op.x + op.x_stride * (row // 2)), C)
        newer = carray(float32_at(op.x + op.x_stride * (row // 2 + 1)), C)
        out = carray(float32_at(op.out + op.out_stride * row), C)
        for i in range(C):
            out[i] = newer[i] * weights[0, row % 2, i] + older[i] * weights[1, row % 2, i]


@inlined
def _norm(args, op, thread_index):
    """op.out = op.x normed, for this thread's rows."""
    weight = carray(float32_at(op.weights), op.count)
    bias = carray(float32_at(op.bias), op.count)
    for row in range(thread_index, op.rows * args.frames, args.threads):
        x = carray(float32_at(op.x + op.x_stride * row), op.count)
        _layer_norm(
            x, weight, bias, args.eps, carray(float32_at(op.out + op.out_stride * row), op.count)
        )


@inlined
def _attention(args, op, counter):
    """Attention of each row to itself and the positions before it, `window` of them in all, from
    op.x [rows, 3, heads, K] to op.out. Threads take heads one by one."""
    K, heads, rows = args.head_dim, args.heads, op.rows * args.frames
    scale = ONE / np.sqrt(np.float32(K))
    head_bytes = 4 * K * args.capacity
    while True:
        head = fetch_add(counter)
        if head >= heads:
            break
        keys = args.kv + head_bytes * (2 * heads * op.place + head)
        values = keys + head_bytes * heads
        scratch = args.scores + 4 * (args.capacity + K) * head
        query = carray(float32_at(scratch), K)
        for row in range(rows):
            place = 4 * K * (args.filled + row)
            cos = carray(float32_at(args.cos + 4 * K * row), K)
            sin = carray(float32_at(args.sin + 4 * K * row), K)
            parts = carray(float32_at(op.x + op.x_stride * row), (3, heads, K))
            rotate(parts[1, head], cos, sin, carray(float32_at(keys + place), K))
            value = carray(float32_at(values + place), K)
            for i in range(K):
                value[i] = parts[2, head, i]
            rotate(parts[0, head], cos, sin, query)
            for i in range(K):
                query[i] *= scale
            last = args.filled + row
            first = max(0, last - args.window + 1)
            out = op.out + op.out_stride * row + 4 * K * head
            start = 4 * K * first
            count, scores = last - first + 1, scratch + 4 * K
            call(args.attend, (scratch, 1, K, keys + start, values + start, count, scores, out))


@compiled()
def run_mimi(thread_index, mimi_args, ops):
    """Run one thread's share of the operations. mimi_args: MIMI_ARGS [1]; ops: MIMI_OP."""
    args = mimi_args[0]
    for index in range(len(ops)):
        op = ops[index]
        counter = args.counters + 8 * index
        if op.kind == LINEAR:
            _linear(args, op, counter)
        elif op.kind == NORM:
            _norm(args, op, thread_index)
        elif op.kind == ATTENTION:
            _attention(args, op, counter)
        elif op.kind == UPSAMPLE:
            _upsample(args, op, thread_index)
        elif op.kind == SUM_CODES:
            _sum_codes(args, op, thread_index)
        elif index % args.threads == thread_index:
            if op.kind == RESTORE:
                _copy(args.history + 4 * op.place, op.out, op.count)
            else:
                source = op.x + op.x_stride * op.rows * args.frames
                _copy(source, args.history + 4 * op.place, op.count)
        if op.ends_phase:
            barrier_wait(args.barrier, args.threads, args.yield_core)
