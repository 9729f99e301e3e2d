"""Dot products of bytes: a block of int8 or int4 weights with a few rows of int8 activations.

The integer sums are the same on every processor, whether by one instruction or by three.
"""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from dia_demo.kernels.llvm_simd import BYTE, F32, I32, I64, NEXT_CACHE, SimdBuilder, dot_lanes
from dia_demo.kernels.microkernels import (
    GROUP_BYTES,
    HEADER_BYTES,
    PREFETCH_BYTES,
    SUMS_AVX2,
    ZERO_POINT,
    scale_rows,
    tiles_of_rows,
)
from dia_demo.kernels.packing import BLOCK, GROUP, INT4, INT8
from dia_demo.processor import adds_byte_products_at_once

# INT4 computes longest on a cache line, so it prefetches it earlier into the L2 cache as well.
FAR_PREFETCH_BYTES = {INT8: 0, INT4: 8192}
# Vectors of a block whose sums are computed at the same time, with vpdpbusd.
VECTORS_AT_ONCE = 4


@intrinsic(prefer_literal=True)
def gemm_int_dot_block(
    context, format, weights, x, x_stride, scales, x_sums, groups, rows, out, out_stride
):  # fmt: skip
    """out [rows, BLOCK] += x @ weights by dot products of bytes.

    format (INT8, INT4) is a constant. x is int8 [rows, GROUP * groups], with its float32 scales and
    int32 sums [rows, groups] from `quantize`. out is float32; strides are in bytes.
    """
    fmt = format.literal_value

    def generate(context, builder, _signature, arguments):
        _, weights, x, x_stride, scales, x_sums, groups, rows, out, out_stride = arguments
        simd = SimdBuilder(builder, dot_lanes(fmt))
        stride = builder.mul(groups, I64(4))
        arrays = (x, x_stride), (out, out_stride), (scales, stride), (x_sums, stride)
        counts = (4, 2, 1) if adds_byte_products_at_once() else (2, 1)
        for count, x_tile, out_tile, *group_tiles in tiles_of_rows(
            simd, rows, *arrays, counts=counts
        ):
            _int_dot_tile(
                simd, fmt, count, weights, x_tile, x_stride, *group_tiles, groups, out_tile,
                out_stride,
            )  # fmt: skip
        return context.get_dummy_value()

    if not dot_lanes(fmt):
        return None
    return types.void(format, *[types.int64] * 9), generate


def _int_dot_tile(
    simd, fmt, count, weights, x, x_stride, scales, x_sums, groups, out, out_stride
) -> None:
    """The block's products with `count` rows: the integer sums of each group, scaled and added."""
    builder = simd.builder
    vectors, is_vnni = BLOCK // simd.lanes, adds_byte_products_at_once()
    at_once = min(VECTORS_AT_ONCE, vectors) if is_vnni else SUMS_AVX2 // count
    sums = simd.variables(count, vectors, simd.floats)
    simd.fill(sums, simd.zeros())
    int_sums = simd.variables(count, at_once, simd.ints)
    stride = builder.mul(groups, I64(4))
    with cgutils.for_range(builder, groups) as loop:
        group_weights = simd.at(weights, builder.mul(loop.index, I64(GROUP_BYTES[fmt])))
        x_rows = [
            simd.at(simd.row(x, x_stride, row), builder.mul(loop.index, I64(GROUP)))
            for row in range(count)
        ]
        offset = builder.mul(loop.index, I64(4))
        for cache_line in range(0, HEADER_BYTES[fmt], 64):
            _prefetch_weights(simd, fmt, simd.at(group_weights, cache_line))
        for first in range(0, vectors, at_once):
            for row in range(count):
                start = simd.int_constant(0)
                if is_vnni or fmt == INT4:
                    # Weights are multiplied as stored, which is the zero point above their value.
                    x_sum = simd.broadcast(simd.at(simd.row(x_sums, stride, row), offset), I32)
                    start = builder.mul(x_sum, simd.int_constant(-ZERO_POINT[fmt]))
                for v in range(at_once):
                    builder.store(start, int_sums[row][v])
            if is_vnni:
                _dot_group(simd, fmt, group_weights, first, x_rows, int_sums)
            elif fmt == INT8:
                _int8_group_avx2(simd, group_weights, first, x_rows, int_sums)
            else:
                _int4_group_avx2(simd, group_weights, first, x_rows, int_sums)
            for row in range(count):
                scale = simd.broadcast(simd.at(simd.row(scales, stride, row), offset), F32)
                for v in range(at_once):
                    factor = scale
                    if fmt == INT4:
                        scale_address = simd.at(group_weights, 2 * simd.lanes * (first + v))
                        factor = builder.fmul(scale, simd.load_bfloats(scale_address))
                    group_sum = simd.to_floats(builder.load(int_sums[row][v]))
                    total = builder.load(sums[row][first + v])
                    builder.store(simd.fma(group_sum, factor, total), sums[row][first + v])
    if fmt == INT8:
        scale_rows(simd, sums, weights, groups)
    simd.add_to_memory(sums, out, out_stride)


def _prefetch_weights(simd: SimdBuilder, format: int, address: ir.Value) -> None:
    simd.prefetch(simd.at(address, PREFETCH_BYTES[format]))
    if FAR_PREFETCH_BYTES[format]:
        simd.prefetch(simd.at(address, FAR_PREFETCH_BYTES[format]), NEXT_CACHE)


def _dot_group(simd: SimdBuilder, format: int, weights, first: int, x_rows, int_sums) -> None:
    """Add one group's products to `int_sums`, for the block's vectors from `first` on."""
    builder = simd.builder
    nibble, four = simd.int_constant(0x0F0F0F0F), simd.int_constant(4)
    for step in range(GROUP // 4):
        inputs = [simd.broadcast(simd.at(row, 4 * step), I32) for row in x_rows]
        for v in range(len(int_sums[0])):
            offset = 4 * BLOCK * (step if format == INT8 else step // 2)
            offset += HEADER_BYTES[format] + 4 * simd.lanes * (first + v)
            address = simd.at(weights, offset)
            if format == INT8 or step % 2 == 0:
                _prefetch_weights(simd, format, address)
            weight = simd.load(address, simd.ints)
            if format == INT4:
                weight = builder.lshr(weight, four) if step % 2 else weight
                weight = builder.and_(weight, nibble)
            for x, row_sums in zip(inputs, int_sums, strict=True):
                total = simd.dot(builder.load(row_sums[v]), weight, x)
                builder.store(total, row_sums[v])


def _int8_group_avx2(simd: SimdBuilder, weights, first: int, x_rows, int_sums) -> None:
    """`_dot_group` of INT8 without vpdpbusd, as llama.cpp does it: |x| times the weight with x's
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
                _prefetch_weights(simd, INT8, address)
            weight = simd.bitcast_bytes(builder.xor(simd.load(address, simd.ints), flip))
            for row, x in enumerate(inputs):
                pairs = simd.add_byte_pairs(magnitudes[row], simd.multiply_by_sign(weight, x))
                total = builder.add(builder.load(int_sums[row][v]), simd.add_short_pairs(pairs))
                builder.store(total, int_sums[row][v])


def _int4_group_avx2(simd: SimdBuilder, weights, first: int, x_rows, int_sums) -> None:
    """`_dot_group` of INT4 without vpdpbusd, in two halves of the group.

    The nibbles are unsigned already. A step adds two sums of at most 2 * 15 * 127 to each int16, so
    the sums of four steps, half a group, are below 32,768.
    """
    builder = simd.builder
    lane = HEADER_BYTES[INT4] + 4 * simd.lanes * first
    nibble, four = simd.int_constant(0x0F0F0F0F), simd.int_constant(4)
    short_sums = simd.variables(len(x_rows), len(int_sums[0]), simd.shorts)
    steps = GROUP // 16
    with cgutils.for_range(builder, I64(2)) as half:
        simd.fill(short_sums, ir.Constant(simd.shorts, [0] * (2 * simd.lanes)))
        with cgutils.for_range(builder, I64(steps)) as loop:
            step = builder.add(builder.mul(half.index, I64(steps)), loop.index)
            step_offset = builder.add(builder.mul(step, I64(4 * BLOCK)), I64(lane))
            step_weights = simd.at(weights, step_offset)
            offset = builder.mul(step, I64(8))
            inputs = [
                [
                    simd.bitcast_bytes(simd.broadcast(simd.at(simd.at(row, offset), i), I32))
                    for i in (0, 4)
                ]
                for row in x_rows
            ]
            for v in range(len(int_sums[0])):
                address = simd.at(step_weights, 4 * simd.lanes * v)
                if (4 * simd.lanes * (first + v)) % 64 == 0:  # Once for each cache line.
                    _prefetch_weights(simd, INT4, address)
                both = simd.load(address, simd.ints)
                low = simd.bitcast_bytes(builder.and_(both, nibble))
                high = simd.bitcast_bytes(builder.and_(builder.lshr(both, four), nibble))
                for (x_low, x_high), row_sums in zip(inputs, short_sums, strict=True):
                    total = builder.load(row_sums[v])
                    total = builder.add(total, simd.add_byte_pairs(low, x_low))
                    total = builder.add(total, simd.add_byte_pairs(high, x_high))
                    builder.store(total, row_sums[v])
        for row_ints, row_shorts in zip(int_sums, short_sums, strict=True):
            for total, short_sum in zip(row_ints, row_shorts, strict=True):
                half_sum = simd.add_short_pairs(builder.load(short_sum))
                builder.store(builder.add(builder.load(total), half_sum), total)


@intrinsic(prefer_literal=True)
def quantize(context, x, groups, out, scales, sums):
    """Round float32 x [GROUP * groups] to int8, ties to even; a group's largest becomes 127.

    scales: float32 [groups], the value of 1. sums: int32 [groups], of the int8 numbers.
    """

    def generate(context, builder, _signature, arguments):
        x, groups, out, scales, sums = arguments
        simd = SimdBuilder(builder)
        vectors = GROUP // simd.lanes
        ints = f"v{simd.lanes}i32"
        with cgutils.for_range(builder, groups) as loop:
            group = simd.at(x, builder.mul(loop.index, I64(4 * GROUP)))
            values = [simd.load_floats(simd.at(group, 4 * simd.lanes * v)) for v in range(vectors)]
            # The bits of absolute values compare as integers like the values, and NaN is above all:
            # it makes the scale NaN, and with it the sum.
            largest = simd.abs_bits(values[0])
            for value in values[1:]:
                bits = simd.abs_bits(value)
                largest = simd.call(f"llvm.umax.{ints}", simd.ints, largest, bits)
            peak = builder.bitcast(simd.call(f"llvm.vector.reduce.umax.{ints}", I32, largest), F32)
            is_zero = builder.fcmp_ordered("<", peak, F32(1e-30))
            inverse = builder.select(is_zero, F32(0.0), builder.fdiv(F32(127.0), peak))
            total = simd.int_constant(0)
            for v, value in enumerate(values):
                integers = simd.round_to_int(builder.fmul(value, simd.splat(inverse)))
                total = builder.add(total, integers)
                as_bytes = builder.trunc(integers, ir.VectorType(BYTE, simd.lanes))
                out_group = simd.at(out, builder.mul(loop.index, I64(GROUP)))
                simd.store(as_bytes, simd.at(out_group, simd.lanes * v), align=1)
            offset = builder.mul(loop.index, I64(4))
            simd.store(builder.fdiv(peak, F32(127.0)), simd.at(scales, offset))
            group_sum = simd.call(f"llvm.vector.reduce.add.{ints}", I32, total)
            simd.store(group_sum, simd.at(sums, offset))
        return context.get_dummy_value()

    return types.void(*[types.int64] * 5), generate
