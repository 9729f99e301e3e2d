"""Attention of a few heads of one slot over what is filled of its cache.

Query heads that share keys and values are taken together, so that these are read, and turned from
bfloat16 to float32, once for all of them. Numbers are float32, but keys and values may be bfloat16.
"""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import carray, types
from numba.core import cgutils
from numba.extending import intrinsic

from dia_demo.kernels.intrinsics import cast_like, exp, floats_at, halves_at
from dia_demo.kernels.jit import ANY_ORDER, compiled, inlined
from dia_demo.kernels.llvm_simd import F32, I64, SimdBuilder
from dia_demo.kernels.microkernels import tiles_of_rows

LANES = 16
# Sums kept at once: enough that one need not wait for the one before, few enough for registers.
HEADS_AT_ONCE = (4, 1)
KEYS_AT_ONCE = {4: (2, 1), 1: (4, 1)}
VECTORS_AT_ONCE = {4: (4, 1), 1: (8, 1)}
# Each slot's keys are a short stretch of memory: what follows is prefetched so many bytes ahead.
PREFETCH_BYTES = 8192


@inlined
def attend(is_bf16, q, heads, width, keys, values, count, scores, out):
    """out [heads, width] = softmax(q [heads, width] @ keys.T) @ values; Dia has no scale.

    Addresses; keys and values [count, width], bfloat16 where `is_bf16`, a constant; scores: space
    for [heads, count].
    """
    if is_bf16:
        attend_halves(q, heads, width, keys, values, count, scores, out)
    else:
        attend_floats(q, heads, width, keys, values, count, scores, out)


@inlined
def _attend(is_bf16, q, heads, width, keys, values, count, scores, out):
    qk_scores(is_bf16, q, heads, keys, width, count, scores)
    for head in range(heads):
        _softmax(carray(floats_at(scores + 4 * count * head), count))
    weighted_values(is_bf16, scores, heads, values, width, count, out)


@compiled()
def attend_halves(q, heads, width, keys, values, count, scores, out):
    _attend(True, q, heads, width, keys, values, count, scores, out)


@compiled()
def attend_floats(q, heads, width, keys, values, count, scores, out):
    _attend(False, q, heads, width, keys, values, count, scores, out)


@compiled(fastmath=ANY_ORDER, forceinline=True)
def _softmax(scores):
    best = np.float32(-1e30)
    for s in range(len(scores)):
        best = max(best, scores[s])
    total = np.float32(0)
    for s in range(len(scores)):
        scores[s] = exp(scores[s] - best)
        total += scores[s]
    for s in range(len(scores)):
        scores[s] /= total


@compiled(fastmath=ANY_ORDER, forceinline=True)
def rotate(x, cos, sin, out):
    """Rotary positions: a head's first half against its second; the sines carry the signs."""
    half = len(x) // 2
    for i in range(half):
        out[i] = x[i] * cos[i] + x[half + i] * sin[i]
        out[half + i] = x[half + i] * cos[half + i] + x[i] * sin[half + i]


@inlined
def store_kv(is_bf16, numbers, address):
    """float32 numbers as one position of keys or values."""
    if is_bf16:
        stored = carray(halves_at(address), len(numbers))
        for i in range(len(numbers)):
            stored[i] = cast_like(stored[i], numbers[i])
    else:
        stored32 = carray(floats_at(address), len(numbers))
        for i in range(len(numbers)):
            stored32[i] = numbers[i]


@intrinsic(prefer_literal=True)
def qk_scores(context, is_bf16, q, heads, keys, width, count, scores):
    """scores [heads, count] = q [heads, width] @ keys [count, width] transposed; addresses."""
    size = 2 if is_bf16.literal_value else 4

    def tile(simds, together, keys_together, q, key, width, score, score_stride):
        builder = simds[0].builder
        totals = [[F32(0.0)] * keys_together for _ in range(together)]
        for simd, first, steps in _spans(simds, width):
            sums = simd.variables(together, keys_together, simd.floats)
            simd.fill(sums, simd.zeros())
            with cgutils.for_range(builder, steps) as loop:
                place = builder.add(first, builder.mul(loop.index, I64(simd.lanes)))
                lines = [
                    simd.row(key, builder.mul(width, I64(size)), one)
                    for one in range(keys_together)
                ]
                near = [_read(simd, size, line, place, PREFETCH_BYTES) for line in lines]
                for head in range(together):
                    query = _read(simd, 4, simd.row(q, builder.mul(width, I64(4)), head), place)
                    for one, number in enumerate(near):
                        kept = sums[head][one]
                        builder.store(simd.fma(number, query, builder.load(kept)), kept)
            for head in range(together):
                for one in range(keys_together):
                    part = simd.sum_lanes(builder.load(sums[head][one]))
                    totals[head][one] = builder.fadd(totals[head][one], part)
        for head, line in enumerate(totals):
            for one, total in enumerate(line):
                where = simds[0].at(simds[0].row(score, score_stride, head), 4 * one)
                simds[0].store(total, where)

    def generate(context, builder, _signature, arguments):
        _, q, heads, keys, width, count, scores = arguments
        simds = SimdBuilder(builder, LANES), SimdBuilder(builder, 1)
        line, stride = builder.mul(count, I64(4)), builder.mul(width, I64(4))
        arrays = (q, stride), (scores, line)
        for together, q_here, here in tiles_of_rows(simds[0], heads, *arrays, counts=HEADS_AT_ONCE):
            lines = (keys, builder.mul(width, I64(size))), (here, I64(4))
            counts = KEYS_AT_ONCE[together]
            for keys_together, key, score in tiles_of_rows(simds[0], count, *lines, counts=counts):
                tile(simds, together, keys_together, q_here, key, width, score, line)
        return context.get_dummy_value()

    return types.void(is_bf16, *[types.int64] * 6), generate


@intrinsic(prefer_literal=True)
def weighted_values(context, is_bf16, scores, heads, values, width, count, out):
    """out [heads, width] = scores [heads, count] @ values [count, width]; addresses."""
    size = 2 if is_bf16.literal_value else 4

    def tile(simd, together, vectors, score, score_stride, value, value_stride, count, out, stride):
        builder = simd.builder
        sums = simd.variables(together, vectors, simd.floats)
        simd.fill(sums, simd.zeros())
        with cgutils.for_range(builder, count) as loop:
            offset = builder.mul(loop.index, I64(4))
            shares = [
                simd.broadcast(simd.at(simd.row(score, score_stride, head), offset), F32)
                for head in range(together)
            ]
            here = simd.at(value, builder.mul(loop.index, value_stride))
            for v in range(vectors):
                number = _read(simd, size, here, I64(simd.lanes * v), PREFETCH_BYTES)
                for head, share in enumerate(shares):
                    kept = sums[head][v]
                    builder.store(simd.fma(number, share, builder.load(kept)), kept)
        for head, line in enumerate(sums):
            for v, kept in enumerate(line):
                where = simd.at(simd.row(out, stride, head), 4 * simd.lanes * v)
                simd.store(builder.load(kept), where)

    def generate(context, builder, _signature, arguments):
        _, scores, heads, values, width, count, out = arguments
        simds = SimdBuilder(builder, LANES), SimdBuilder(builder, 1)
        line, stride = builder.mul(count, I64(4)), builder.mul(width, I64(4))
        value_stride = builder.mul(width, I64(size))
        arrays = (scores, line), (out, stride)
        for together, score, there in tiles_of_rows(simds[0], heads, *arrays, counts=HEADS_AT_ONCE):
            for simd, first, steps in _spans(simds, width):
                value = simd.at(values, builder.mul(first, I64(size)))
                begun = simd.at(there, builder.mul(first, I64(4)))
                lines = (value, I64(size * simd.lanes)), (begun, I64(4 * simd.lanes))
                counts = VECTORS_AT_ONCE[together] if simd.lanes > 1 else (1,)
                for vectors, here, where in tiles_of_rows(simd, steps, *lines, counts=counts):
                    tile(
                        simd, together, vectors, score, line, here, value_stride, count, where,
                        stride,
                    )  # fmt: skip
        return context.get_dummy_value()

    return types.void(is_bf16, *[types.int64] * 6), generate


def _spans(simds: tuple[SimdBuilder, SimdBuilder], width: ir.Value):
    """(builder, first number, steps): whole vectors, then the remaining numbers one by one."""
    builder = simds[0].builder
    whole = builder.udiv(width, I64(LANES))
    done = builder.mul(whole, I64(LANES))
    yield simds[0], I64(0), whole
    yield simds[1], done, builder.sub(width, done)


def _read(
    simd: SimdBuilder, size: int, line: ir.Value, place: ir.Value, ahead: int = 0
) -> ir.Value:
    """Numbers of a line from the one at `place` on, of `size` bytes each, as float32."""
    where = simd.at(line, simd.builder.mul(place, I64(size)))
    if ahead:
        simd.prefetch(simd.at(where, ahead))
    return simd.load_bfloats(where) if size == 2 else simd.load_floats(where)
