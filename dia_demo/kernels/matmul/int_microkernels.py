"""Dot products of bytes: a block of int8 or int4 weights with a few rows of int8 activations.

The integer sums are the same on every processor, whether by one instruction or by three.
"""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from dia_demo.kernels.llvm_simd import F32, I32, I64, NEXT_CACHE, SimdBuilder, dot_lanes
from dia_demo.kernels.matmul.microkernels import (
    GROUP_BYTES,
    HEADER_BYTES,
    PREFETCH_BYTES,
    SUMS_AVX2,
    ZERO_POINT,
    half_scales,
    scale_rows,
    tiles_of_rows,
)
from dia_demo.kernels.packing import BLOCK, GROUP, HALF, INT4, INT4_VALUES, INT8
from dia_demo.machine.processor import adds_byte_products_at_once, has_avx512

# How far ahead weights are prefetched where a block is read for one tile of rows: INT8 with
# vpdpbusd and without (Zen 5; Zen 3), and INT4, which computes longest on a cache line, so that it
# also prefetches early into the L2 cache.
INT8_AHEAD, INT8_AHEAD_AVX2, INT4_AHEAD = PREFETCH_BYTES[INT8], 2048, 8192
# Vectors of a block whose sums are computed at the same time, with AVX-512's vpdpbusd.
VECTORS_AT_ONCE = 4
# Steps of four inputs of INT8 that are unrolled: of more, LLVM would put all prefetches first.
INT8_STEPS = 4
# Steps of eight inputs in half a group of INT4.
INT4_STEPS = HALF // 8
# INT4's weights as they are multiplied: unsigned.
INT4_BYTES = [value + ZERO_POINT[INT4] for value in INT4_VALUES]


@intrinsic(prefer_literal=True)
def gemm_int_dot_block(
    context, format, weights, x, x_stride, scales, x_sums, groups, rows, out, out_stride
):  # fmt: skip
    """out [rows, BLOCK] += x @ weights by dot products of bytes.

    format (INT8, INT4) is a constant. x is int8 [rows, GROUP * groups], with its float32 scales and
    int32 sums [rows, groups, 2] from `quantize`. out is float32; strides are in bytes.
    """
    fmt = format.literal_value

    def generate(context, builder, _signature, arguments):
        _, weights, x, x_stride, scales, x_sums, groups, rows, out, out_stride = arguments
        simd = SimdBuilder(builder, dot_lanes(fmt))
        stride = builder.mul(groups, I64(4))
        sums_stride = builder.mul(groups, I64(8))
        arrays = (x, x_stride), (out, out_stride), (scales, stride), (x_sums, sums_stride)
        counts = (4, 2, 1) if fmt == INT4 or adds_byte_products_at_once() else (2, 1)
        tiles = builder.udiv(rows, I64(counts[0]))
        for count, x_tile, out_tile, *group_tiles in tiles_of_rows(
            simd, rows, *arrays, counts=counts
        ):
            number = builder.udiv(builder.sub(x_tile, x), builder.mul(x_stride, I64(counts[0])))
            ahead = _Ahead(simd, fmt, weights, groups, tiles, number)
            _int_dot_tile(
                simd, fmt, count, weights, x_tile, x_stride, *group_tiles, groups, out_tile,
                out_stride, ahead,
            )  # fmt: skip
        return context.get_dummy_value()

    if not dot_lanes(fmt):
        return None
    return types.void(format, *[types.int64] * 9), generate


class _Ahead:
    """Which weights are prefetched while a tile of rows is multiplied with a block.

    The first tile reads the block from memory, the others from the cache. So that the memory does
    not rest meanwhile, each of them prefetches its part of the next block: one tile of 2 ** shift
    a part of that size. A tile that is alone prefetches a little ahead in its own block.
    """

    def __init__(self, simd: SimdBuilder, fmt: int, weights, groups, tiles, number) -> None:
        builder = simd.builder
        self._simd, self._fmt, self._weights = simd, fmt, weights
        leading = simd.call("llvm.ctlz.i64", I64, builder.or_(tiles, I64(1)), ir.IntType(1)(True))
        self._shift = builder.sub(I64(63), leading)
        size = builder.add(builder.mul(groups, I64(GROUP_BYTES[fmt])), I64(4 * BLOCK))
        own_part = builder.add(size, builder.mul(number, builder.lshr(size, self._shift)))
        is_alone = builder.icmp_unsigned("<", tiles, I64(2))
        int8_ahead = INT8_AHEAD if adds_byte_products_at_once() else INT8_AHEAD_AVX2
        ahead = INT4_AHEAD if fmt == INT4 else int8_ahead
        start = builder.select(is_alone, I64(ahead), own_part)
        self._start = builder.add(weights, start)

    def prefetch(self, address) -> None:
        """Called for each cache line of the block."""
        simd, builder = self._simd, self._simd.builder
        part = builder.lshr(builder.sub(address, self._weights), self._shift)
        if self._fmt == INT4:
            simd.prefetch(simd.at(address, PREFETCH_BYTES[INT4]))
            simd.prefetch(builder.add(self._start, part), NEXT_CACHE)
        else:
            simd.prefetch(builder.add(self._start, part))


def _int_dot_tile(
    simd, fmt, count, weights, x, x_stride, scales, x_sums, groups, out, out_stride, ahead
) -> None:
    """The block's products with `count` rows: the integer sums of each group, scaled and added."""
    builder = simd.builder
    vectors = BLOCK // simd.lanes
    at_once = _vectors_at_once(simd, count)
    sums = simd.variables(count, vectors, simd.floats)
    simd.fill(sums, simd.zeros())
    int_sums = simd.variables(count, at_once, simd.ints)
    stride = builder.mul(groups, I64(4))
    with cgutils.for_range(builder, groups) as loop:
        group_weights = simd.at(weights, builder.mul(loop.index, I64(GROUP_BYTES[fmt])))
        x_rows, scale_addresses, x_sum_addresses = (
            [
                simd.at(simd.row(array, row_bytes, row), builder.mul(loop.index, I64(group_bytes)))
                for row in range(count)
            ]
            for array, row_bytes, group_bytes in (
                (x, x_stride, GROUP),
                (scales, stride, 4),
                (x_sums, builder.add(stride, stride), 8),
            )
        )
        for cache_line in range(0, HEADER_BYTES[fmt], 64):
            ahead.prefetch(simd.at(group_weights, cache_line))
        for first in range(0, vectors, at_once):
            group_sums = _GROUP_SUMS[fmt](
                simd, group_weights, first, x_rows, x_sum_addresses, int_sums, ahead
            )
            for row, row_ints in enumerate(group_sums):
                scale = simd.broadcast(scale_addresses[row], F32)
                for v, int_sum in enumerate(row_ints):
                    total = builder.load(sums[row][first + v])
                    total = simd.fma(simd.to_floats(int_sum), scale, total)
                    builder.store(total, sums[row][first + v])
    scale_rows(simd, fmt, sums, weights, groups)
    simd.add_to_memory(sums, out, out_stride)


def _vectors_at_once(simd: SimdBuilder, rows: int) -> int:
    """How many vectors of a block have their integer sums computed at the same time."""
    if has_avx512() and adds_byte_products_at_once():
        return min(VECTORS_AT_ONCE, BLOCK // simd.lanes)
    return SUMS_AVX2 // rows


def _int8_group(
    simd: SimdBuilder, weights, first: int, x_rows, x_sums, int_sums, ahead: _Ahead
) -> list[list]:
    """The sums of a group's products [rows][vectors], for the block's vectors from `first` on."""
    builder = simd.builder
    if not adds_byte_products_at_once():
        simd.fill(int_sums, simd.int_constant(0))
        _int8_group_avx2(simd, weights, first, x_rows, int_sums, ahead)
    else:
        for address, row_sums in zip(x_sums, int_sums, strict=True):
            halves = [simd.load(simd.at(address, 4 * half), I32) for half in (0, 1)]
            _fill_start(simd, INT8, builder.add(*halves), row_sums)
        _int8_steps(simd, weights, first, x_rows, int_sums, ahead)
    return [[builder.load(total) for total in row_sums] for row_sums in int_sums]


def _int4_group(
    simd: SimdBuilder, weights, first: int, x_rows, x_sums, int_sums, ahead: _Ahead
) -> list[list]:
    """`_int8_group` of INT4: the sums of both halves, each times its scale."""
    builder = simd.builder
    if not adds_byte_products_at_once():
        return _int4_group_avx2(simd, weights, first, x_rows, x_sums, int_sums, ahead)
    totals = simd.variables(len(int_sums), len(int_sums[0]), simd.ints)
    simd.fill(totals, simd.int_constant(0))
    for half in (0, 1):
        for address, row_sums in zip(x_sums, int_sums, strict=True):
            _fill_start(simd, INT4, simd.load(simd.at(address, 4 * half), I32), row_sums)
        _int4_half(simd, weights, first, half, x_rows, int_sums, ahead)
        for v in range(len(int_sums[0])):
            scale = half_scales(simd, weights, half, first + v)
            for row_totals, row_sums in zip(totals, int_sums, strict=True):
                product = builder.mul(builder.load(row_sums[v]), scale)
                builder.store(builder.add(builder.load(row_totals[v]), product), row_totals[v])
    return [[builder.load(total) for total in row_totals] for row_totals in totals]


_GROUP_SUMS = {INT8: _int8_group, INT4: _int4_group}


def _fill_start(simd: SimdBuilder, fmt: int, x_sum: ir.Value, row_sums) -> None:
    """Begin a row's sums: the weights that are multiplied are the zero point above their value."""
    start = simd.splat(simd.builder.mul(x_sum, I32(-ZERO_POINT[fmt])))
    simd.fill([row_sums], start)


def _int8_steps(simd: SimdBuilder, weights, first: int, x_rows, int_sums, ahead) -> None:
    """Add the products of a group of INT8 to `int_sums`, with vpdpbusd."""
    builder = simd.builder
    with cgutils.for_range(builder, simd.opaque(I64(GROUP // 4 // INT8_STEPS))) as loop:
        steps = builder.mul(loop.index, I64(INT8_STEPS))
        loop_weights = simd.at(weights, builder.mul(steps, I64(4 * BLOCK)))
        x_steps = [simd.at(row, builder.mul(steps, I64(4))) for row in x_rows]
        for step in range(INT8_STEPS):
            inputs = [simd.broadcast(simd.at(row, 4 * step), I32) for row in x_steps]
            for v in range(len(int_sums[0])):
                address = simd.at(loop_weights, 4 * BLOCK * step + 4 * simd.lanes * (first + v))
                ahead.prefetch(address)
                weight = simd.load(address, simd.ints)
                for x, row_sums in zip(inputs, int_sums, strict=True):
                    builder.store(simd.dot(builder.load(row_sums[v]), weight, x), row_sums[v])


def _int4_half(
    simd: SimdBuilder, weights, first: int, half: int, x_rows, int_sums, ahead: _Ahead
) -> None:
    """Add the products of half a group of INT4 to `int_sums`, with vpdpbusd.

    The loop is not unrolled: LLVM would put all prefetches of a group before its first load.
    """
    builder = simd.builder
    with cgutils.for_range(builder, simd.opaque(I64(INT4_STEPS))) as loop:
        step_weights, inputs = _int4_step(simd, weights, first, half, loop.index, x_rows)
        for v in range(len(int_sums[0])):
            weights_v = _load_int4(simd, step_weights, first, v, ahead)
            for part, weight in enumerate(simd.look_up_nibbles(weights_v, INT4_BYTES)):
                for x, row_sums in zip(inputs, int_sums, strict=True):
                    total = simd.dot(builder.load(row_sums[v]), weight, x[part])
                    builder.store(total, row_sums[v])


def _int4_step(simd: SimdBuilder, weights, first: int, half: int, step, x_rows) -> tuple:
    """A step of half a group: the address of its weights from vector `first` on, and each row's two
    times four inputs in all lanes."""
    builder = simd.builder
    step = builder.add(step, I64(INT4_STEPS * half))
    lane = I64(HEADER_BYTES[INT4] + 4 * simd.lanes * first)
    step_weights = simd.at(weights, builder.add(builder.mul(step, I64(4 * BLOCK)), lane))
    offset = builder.mul(step, I64(8))
    inputs = [
        [simd.broadcast(simd.at(simd.at(row, offset), i), I32) for i in (0, 4)] for row in x_rows
    ]
    return step_weights, inputs


def _load_int4(simd: SimdBuilder, step_weights, first: int, v: int, ahead) -> ir.Value:
    """The codes of vector first + v in a step; prefetches once for each cache line."""
    address = simd.at(step_weights, 4 * simd.lanes * v)
    if (4 * simd.lanes * (first + v)) % 64 == 0:
        ahead.prefetch(address)
    return simd.load(address, simd.ints)


def _int8_group_avx2(simd: SimdBuilder, weights, first: int, x_rows, int_sums, ahead) -> None:
    """`_dot_steps` of INT8 without vpdpbusd, as llama.cpp does it: |x| times the weight with x's
    sign. No int16 saturates: both are at most 127, and 2 * 127 * 127 is less than 32,768.

    The loop is not unrolled: LLVM would spill hundreds of values.
    """
    builder = simd.builder
    lane = 4 * simd.lanes * first
    flip = simd.int_constant(-0x7F7F7F80)  # 0x80808080: from the weight + 128 to the weight
    with cgutils.for_range(builder, I64(GROUP // 4)) as loop:
        step = builder.add(builder.mul(loop.index, I64(4 * BLOCK)), I64(lane))
        step_weights = simd.at(weights, step)
        offset = builder.mul(loop.index, I64(4))
        inputs = [simd.bitcast_bytes(simd.broadcast(simd.at(row, offset), I32)) for row in x_rows]
        magnitudes = [simd.abs_bytes(x) for x in inputs]
        for v in range(len(int_sums[0])):
            address = simd.at(step_weights, 4 * simd.lanes * v)
            if (lane + 4 * simd.lanes * v) % 64 == 0:  # Once for each cache line.
                ahead.prefetch(address)
            weight = simd.bitcast_bytes(builder.xor(simd.load(address, simd.ints), flip))
            for row, x in enumerate(inputs):
                pairs = simd.add_byte_pairs(magnitudes[row], simd.multiply_by_sign(weight, x))
                total = builder.add(builder.load(int_sums[row][v]), simd.add_short_pairs(pairs))
                builder.store(total, int_sums[row][v])


def _int4_group_avx2(
    simd: SimdBuilder, weights, first: int, x_rows, x_sums, int_sums, ahead: _Ahead
) -> list[list]:
    """`_int4_group` in vectors of 256 bits, by vpmaddubsw and vpmaddwd.

    A step adds four products to each int16, at most 4 * 60 * 127 = 30,480, less than 32,768. The
    multiplication that adds two int16 multiplies with their scale as well.
    """
    builder = simd.builder
    simd.fill(int_sums, simd.int_constant(0))
    scales = [
        [
            simd.load_bytes(simd.at(weights, BLOCK * half + simd.lanes * (first + v)))
            for half in (0, 1)
        ]
        for v in range(len(int_sums[0]))
    ]
    for half in (0, 1):
        factors = [simd.sext_pairs(halves[half], halves[half]) for halves in scales]
        _int4_half_avx2(simd, weights, first, half, x_rows, factors, int_sums, ahead)
    totals = []
    for address, row_sums in zip(x_sums, int_sums, strict=True):
        low, high = (simd.load(simd.at(address, 4 * half), I32) for half in (0, 1))
        both = builder.or_(builder.and_(low, I32(0xFFFF)), builder.shl(high, I32(16)))
        x_pairs = builder.bitcast(simd.splat(both), simd.shorts)
        row_totals = []
        for halves, total in zip(scales, row_sums, strict=True):
            # The zero point is 2 ** 5.
            above = simd.add_short_pairs(x_pairs, simd.sext_pairs(*halves))
            above = builder.shl(above, simd.int_constant(ZERO_POINT[INT4].bit_length() - 1))
            row_totals.append(builder.sub(builder.load(total), above))
        totals.append(row_totals)
    return totals


def _int4_half_avx2(
    simd: SimdBuilder, weights, first: int, half: int, x_rows, factors, int_sums, ahead: _Ahead
) -> None:
    """Add the products of half a group, times `factors` [vectors], to `int_sums`."""
    builder = simd.builder
    with cgutils.for_range(builder, I64(INT4_STEPS)) as loop:
        step_weights, inputs = _int4_step(simd, weights, first, half, loop.index, x_rows)
        inputs = [[simd.bitcast_bytes(four) for four in row_inputs] for row_inputs in inputs]
        for v, factor in enumerate(factors):
            codes = _load_int4(simd, step_weights, first, v, ahead)
            low, high = (
                simd.bitcast_bytes(part) for part in simd.look_up_nibbles(codes, INT4_BYTES)
            )
            for (x_low, x_high), row_sums in zip(inputs, int_sums, strict=True):
                shorts = builder.add(
                    simd.add_byte_pairs(low, x_low), simd.add_byte_pairs(high, x_high)
                )
                products = simd.add_short_pairs(shorts, factor)
                builder.store(builder.add(builder.load(row_sums[v]), products), row_sums[v])
