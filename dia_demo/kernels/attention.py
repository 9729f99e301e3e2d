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

from dia_demo.kernels.emit import F32, I64, Emitter
from dia_demo.kernels.jit import ANY_ORDER, compiled, inlined
from dia_demo.kernels.scalars import exp, floats_at, halves_at, like
from dia_demo.kernels.tiles import few_rows

LANES = 16
# Sums kept at once: enough that one need not wait for the one before, few enough for registers.
HEADS_AT_ONCE = (4, 1)
KEYS_AT_ONCE = {4: (2, 1), 1: (4, 1)}
VECTORS_AT_ONCE = {4: (4, 1), 1: (8, 1)}
# Each slot's keys are a short stretch of memory: what follows is asked for so many bytes before.
AHEAD = 8192


@inlined
def attend(half, q, heads, width, keys, values, count, scores, out):
    """out [heads, width] = softmax(q [heads, width] @ keys.T) @ values; Dia has no scale.

    Addresses; keys and values [count, width], bfloat16 where `half`, a constant; scores: room for
    [heads, count].
    """
    if half:
        attend_halves(q, heads, width, keys, values, count, scores, out)
    else:
        attend_floats(q, heads, width, keys, values, count, scores, out)


@inlined
def _attend(half, q, heads, width, keys, values, count, scores, out):
    weigh(half, q, heads, keys, width, count, scores)
    for head in range(heads):
        _softmax(carray(floats_at(scores + 4 * count * head), count))
    mix(half, scores, heads, values, width, count, out)


@compiled()
def attend_halves(q, heads, width, keys, values, count, scores, out):
    _attend(True, q, heads, width, keys, values, count, scores, out)


@compiled()
def attend_floats(q, heads, width, keys, values, count, scores, out):
    _attend(False, q, heads, width, keys, values, count, scores, out)


@compiled(fastmath=ANY_ORDER)
def _softmax(scores):
    best = np.float32(-1e30)
    for s in range(len(scores)):
        best = max(best, scores[s])
    whole = np.float32(0)
    for s in range(len(scores)):
        scores[s] = exp(scores[s] - best)
        whole += scores[s]
    for s in range(len(scores)):
        scores[s] /= whole


@compiled(fastmath=ANY_ORDER)
def rotate(x, cos, sin, out):
    """Rotary positions: a head's first half against its second; the sines carry the signs."""
    half = len(x) // 2
    for i in range(half):
        out[i] = x[i] * cos[i] + x[half + i] * sin[i]
        out[half + i] = x[half + i] * cos[half + i] + x[i] * sin[half + i]


@inlined
def keep(half, numbers, address):
    """float32 numbers as one position of keys or values."""
    if half:
        there = carray(halves_at(address), len(numbers))
        for i in range(len(numbers)):
            there[i] = like(there[i], numbers[i])
    else:
        there32 = carray(floats_at(address), len(numbers))
        for i in range(len(numbers)):
            there32[i] = numbers[i]


@intrinsic(prefer_literal=True)
def weigh(context, half, q, heads, keys, width, count, scores):
    """scores [heads, count] = q [heads, width] @ keys [count, width] transposed; addresses."""
    size = 2 if half.literal_value else 4

    def tile(emits, together, keys_together, q, key, width, score, score_stride):
        builder = emits[0].builder
        totals = [[F32(0.0)] * keys_together for _ in range(together)]
        for emit, first, steps in _spans(emits, width):
            sums = emit.variables(together, keys_together, emit.floats)
            emit.fill(sums, emit.zeros())
            with cgutils.for_range(builder, steps) as loop:
                place = builder.add(first, builder.mul(loop.index, I64(emit.lanes)))
                lines = [
                    emit.row(key, builder.mul(width, I64(size)), one)
                    for one in range(keys_together)
                ]
                near = [_read(emit, size, line, place, AHEAD) for line in lines]
                for head in range(together):
                    given = _read(emit, 4, emit.row(q, builder.mul(width, I64(4)), head), place)
                    for one, number in enumerate(near):
                        kept = sums[head][one]
                        builder.store(emit.fma(number, given, builder.load(kept)), kept)
            for head in range(together):
                for one in range(keys_together):
                    part = emit.sum_lanes(builder.load(sums[head][one]))
                    totals[head][one] = builder.fadd(totals[head][one], part)
        for head, line in enumerate(totals):
            for one, total in enumerate(line):
                where = emits[0].at(emits[0].row(score, score_stride, head), 4 * one)
                emits[0].store(total, where)

    def generate(context, builder, _signature, arguments):
        _, q, heads, keys, width, count, scores = arguments
        emits = Emitter(builder, LANES), Emitter(builder, 1)
        line, stride = builder.mul(count, I64(4)), builder.mul(width, I64(4))
        given = (q, stride), (scores, line)
        for together, q_here, here in few_rows(emits[0], heads, *given, counts=HEADS_AT_ONCE):
            lines = (keys, builder.mul(width, I64(size))), (here, I64(4))
            counts = KEYS_AT_ONCE[together]
            for keys_together, key, score in few_rows(emits[0], count, *lines, counts=counts):
                tile(emits, together, keys_together, q_here, key, width, score, line)
        return context.get_dummy_value()

    return types.void(half, *[types.int64] * 6), generate


@intrinsic(prefer_literal=True)
def mix(context, half, scores, heads, values, width, count, out):
    """out [heads, width] = scores [heads, count] @ values [count, width]; addresses."""
    size = 2 if half.literal_value else 4

    def tile(emit, together, vectors, score, score_stride, value, value_stride, count, out, stride):
        builder = emit.builder
        sums = emit.variables(together, vectors, emit.floats)
        emit.fill(sums, emit.zeros())
        with cgutils.for_range(builder, count) as loop:
            offset = builder.mul(loop.index, I64(4))
            shares = [
                emit.broadcast(emit.at(emit.row(score, score_stride, head), offset), F32)
                for head in range(together)
            ]
            here = emit.at(value, builder.mul(loop.index, value_stride))
            for v in range(vectors):
                number = _read(emit, size, here, I64(emit.lanes * v), AHEAD)
                for head, share in enumerate(shares):
                    kept = sums[head][v]
                    builder.store(emit.fma(number, share, builder.load(kept)), kept)
        for head, line in enumerate(sums):
            for v, kept in enumerate(line):
                where = emit.at(emit.row(out, stride, head), 4 * emit.lanes * v)
                emit.store(builder.load(kept), where)

    def generate(context, builder, _signature, arguments):
        _, scores, heads, values, width, count, out = arguments
        emits = Emitter(builder, LANES), Emitter(builder, 1)
        line, stride = builder.mul(count, I64(4)), builder.mul(width, I64(4))
        value_stride = builder.mul(width, I64(size))
        given = (scores, line), (out, stride)
        for together, score, there in few_rows(emits[0], heads, *given, counts=HEADS_AT_ONCE):
            for emit, first, steps in _spans(emits, width):
                value = emit.at(values, builder.mul(first, I64(size)))
                begun = emit.at(there, builder.mul(first, I64(4)))
                lines = (value, I64(size * emit.lanes)), (begun, I64(4 * emit.lanes))
                counts = VECTORS_AT_ONCE[together] if emit.lanes > 1 else (1,)
                for vectors, here, where in few_rows(emit, steps, *lines, counts=counts):
                    tile(
                        emit, together, vectors, score, line, here, value_stride, count, where,
                        stride,
                    )  # fmt: skip
        return context.get_dummy_value()

    return types.void(half, *[types.int64] * 6), generate


def _spans(emits: tuple[Emitter, Emitter], width: ir.Value):
    """(emitter, first number, steps): whole vectors, then what is left one by one."""
    builder = emits[0].builder
    whole = builder.udiv(width, I64(LANES))
    done = builder.mul(whole, I64(LANES))
    yield emits[0], I64(0), whole
    yield emits[1], done, builder.sub(width, done)


def _read(emit: Emitter, size: int, line: ir.Value, place: ir.Value, ahead: int = 0) -> ir.Value:
    """Numbers of a line from the one at `place` on, of `size` bytes each, as float32."""
    where = emit.at(line, emit.builder.mul(place, I64(size)))
    if ahead:
        emit.prefetch(emit.at(where, ahead))
    return emit.bfloats_at(where) if size == 2 else emit.floats_at(where)
