"""Attention of a few heads of one slot over the filled part of its cache.

Query heads that share keys and values are computed together, so that these are read, and converted
from bfloat16, once for all of them. Everything but keys and values is float32.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from llvmlite import ir
from numba import carray, types
from numba.core import cgutils
from numba.extending import intrinsic

from dia_demo.kernels.intrinsics import bfloat16_at, cast_like, exp, float32_at
from dia_demo.kernels.jit import ANY_ORDER, address_of, compiled, inlined
from dia_demo.kernels.llvm_simd import F32, I64, SimdBuilder
from dia_demo.kernels.matmul.microkernels import tiles_of_rows
from dia_demo.machine import processor

LANES = 16
# Tile sizes, by heads: enough independent sums to hide the latency of an addition, few enough for
# the registers, of which AVX-512 has 32 that hold a vector, and AVX2 16 that hold half of one.
HEADS_AT_ONCE = (4, 1)
KEYS_AT_ONCE: dict[int, tuple[int, ...]] = {4: (1,), 1: (4, 1)}
VECTORS_AT_ONCE: dict[int, tuple[int, ...]] = {4: (1,), 1: (4, 2, 1)}
if processor.has_avx512():
    KEYS_AT_ONCE, VECTORS_AT_ONCE = {4: (2, 1), 1: (8, 1)}, {4: (4, 2, 1), 1: (8, 2, 1)}
# How far ahead keys and values are prefetched.
PREFETCH_BYTES = 8192


@cache
def attend_function(is_bf16: bool, /) -> int:
    """The address of the function that attends, compiled at the first call.

    Its arguments, addresses and sizes, are q, heads, width, keys, values, count, scores and out:
    out [heads, width] = softmax(q [heads, width] @ keys.T) @ values; Dia has no scale. keys and
    values [count, width] are bfloat16 or float32; scores: scratch for [heads, count].
    """

    def attend(q, heads, width, keys, values, count, scores, out):
        qk_scores(is_bf16, q, heads, keys, width, count, scores)
        for head in range(heads):
            _softmax(carray(float32_at(scores + 4 * count * head), count))
        weighted_values(is_bf16, scores, heads, values, width, count, out)

    return address_of(attend, arguments=8)


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
    """Rotate the first half of a head against the second; `sin` includes the signs."""
    half = len(x) // 2
    for i in range(half):
        out[i] = x[i] * cos[i] + x[half + i] * sin[i]
        out[half + i] = x[half + i] * cos[half + i] + x[i] * sin[half + i]


@inlined
def store_kv(number_size, numbers, address):
    """Store float32 numbers as one position of keys or values, of so many bytes a number."""
    if number_size == 2:
        cached = carray(bfloat16_at(address), len(numbers))
        for i in range(len(numbers)):
            cached[i] = cast_like(cached[i], numbers[i])
    else:
        cached32 = carray(float32_at(address), len(numbers))
        for i in range(len(numbers)):
            cached32[i] = numbers[i]


@intrinsic(prefer_literal=True)
def qk_scores(context, is_bf16, q, heads, keys, width, count, scores):
    """scores [heads, count] = q [heads, width] @ keys [count, width] transposed; addresses."""
    size = 2 if is_bf16.literal_value else 4

    def tile(simds, num_heads, num_keys, q, keys, width, scores, scores_stride):
        builder = simds[0].builder
        q_stride, key_stride = builder.mul(width, I64(4)), builder.mul(width, I64(size))
        totals = ir.Constant(ir.VectorType(F32, num_heads * num_keys), None)
        for simd, first, steps in _spans(simds, width):
            sums = simd.variables(num_heads, num_keys, simd.floats)
            simd.fill(sums, simd.zeros())
            with cgutils.for_range(builder, steps) as loop:
                index = builder.add(first, builder.mul(loop.index, I64(simd.lanes)))
                key_vectors = [
                    _read(simd, size, simd.row(keys, key_stride, key), index, PREFETCH_BYTES)
                    for key in range(num_keys)
                ]
                for head in range(num_heads):
                    query = _read(simd, 4, simd.row(q, q_stride, head), index)
                    for key_vector, total in zip(key_vectors, sums[head], strict=True):
                        product = simd.fma(key_vector, query, builder.load(total))
                        builder.store(product, total)
            all_sums = [builder.load(variable) for variable in sum(sums, [])]
            totals = builder.fadd(totals, simd.sum_lanes(all_sums))
        for head in range(num_heads):
            its_totals = simds[0].shuffle(totals, range(num_keys * head, num_keys * (head + 1)))
            simds[0].store(its_totals, simds[0].row(scores, scores_stride, head))

    def generate(context, builder, _signature, arguments):
        _, q, heads, keys, width, count, scores = arguments
        simds = SimdBuilder(builder, LANES), SimdBuilder(builder, 1)
        scores_stride, q_stride = builder.mul(count, I64(4)), builder.mul(width, I64(4))
        by_head = (q, q_stride), (scores, scores_stride)
        for num_heads, q_tile, head_scores in tiles_of_rows(
            simds[0], heads, *by_head, counts=HEADS_AT_ONCE
        ):
            by_key = (keys, builder.mul(width, I64(size))), (head_scores, I64(4))
            for num_keys, key_tile, score_tile in tiles_of_rows(
                simds[0], count, *by_key, counts=KEYS_AT_ONCE[num_heads]
            ):
                tile(
                    simds, num_heads, num_keys, q_tile, key_tile, width, score_tile, scores_stride
                )  # fmt: skip
        return context.get_dummy_value()

    return types.void(is_bf16, *[types.int64] * 6), generate


@intrinsic(prefer_literal=True)
def weighted_values(context, is_bf16, scores, heads, values, width, count, out):
    """out [heads, width] = scores [heads, count] @ values [count, width]; addresses."""
    size = 2 if is_bf16.literal_value else 4

    def tile(
        simd, num_heads, vectors, scores, scores_stride, values, value_stride, count, out, stride
    ):
        builder = simd.builder
        sums = simd.variables(num_heads, vectors, simd.floats)
        simd.fill(sums, simd.zeros())
        with cgutils.for_range(builder, count) as loop:
            offset = builder.mul(loop.index, I64(4))
            head_scores = [
                simd.broadcast(simd.at(simd.row(scores, scores_stride, head), offset), F32)
                for head in range(num_heads)
            ]
            value = simd.at(values, builder.mul(loop.index, value_stride))
            for v in range(vectors):
                value_vector = _read(simd, size, value, I64(simd.lanes * v), PREFETCH_BYTES)
                for score, head_sums in zip(head_scores, sums, strict=True):
                    total = builder.load(head_sums[v])
                    builder.store(simd.fma(value_vector, score, total), head_sums[v])
        for head, head_sums in enumerate(sums):
            for v, total in enumerate(head_sums):
                address = simd.at(simd.row(out, stride, head), 4 * simd.lanes * v)
                simd.store(builder.load(total), address)

    def generate(context, builder, _signature, arguments):
        _, scores, heads, values, width, count, out = arguments
        simds = SimdBuilder(builder, LANES), SimdBuilder(builder, 1)
        scores_stride, out_stride = builder.mul(count, I64(4)), builder.mul(width, I64(4))
        value_stride = builder.mul(width, I64(size))
        by_head = (scores, scores_stride), (out, out_stride)
        for num_heads, head_scores, head_out in tiles_of_rows(
            simds[0], heads, *by_head, counts=HEADS_AT_ONCE
        ):
            for simd, first, steps in _spans(simds, width):
                by_vector = (
                    (simd.at(values, builder.mul(first, I64(size))), I64(size * simd.lanes)),
                    (simd.at(head_out, builder.mul(first, I64(4))), I64(4 * simd.lanes)),
                )
                counts = VECTORS_AT_ONCE[num_heads] if simd.lanes > 1 else (1,)
                for vectors, value_tile, out_tile in tiles_of_rows(
                    simd, steps, *by_vector, counts=counts
                ):
                    tile(
                        simd, num_heads, vectors, head_scores, scores_stride, value_tile,
                        value_stride, count, out_tile, out_stride,
                    )  # fmt: skip
        return context.get_dummy_value()

    return types.void(is_bf16, *[types.int64] * 6), generate


def _spans(simds: tuple[SimdBuilder, SimdBuilder], width: ir.Value):
    """(SIMD builder, first number, steps): whole vectors, then the remaining numbers one by one."""
    builder = simds[0].builder
    whole = builder.udiv(width, I64(LANES))
    done = builder.mul(whole, I64(LANES))
    yield simds[0], I64(0), whole
    yield simds[1], done, builder.sub(width, done)


def _read(simd: SimdBuilder, size: int, row: ir.Value, index: ir.Value, ahead: int = 0) -> ir.Value:
    """One vector of a row's numbers of `size` bytes, from `index` on, as float32."""
    address = simd.at(row, simd.builder.mul(index, I64(size)))
    if ahead:
        simd.prefetch(simd.at(address, ahead))
    return simd.load_bfloats(address) if size == 2 else simd.load_floats(address)
