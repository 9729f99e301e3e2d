"""Products of one block of weights (packing.py) with a few rows of activations.

All formats but FLOAT32 have two routes. The dot-product route adds the products of four bytes, or
of two bfloat16, with one instruction, where the processor has it (llvm_simd.dot_lanes). For bytes
it needs activations that `quantize` has turned to int8, with one scale for every GROUP of them, so
that an outlier affects its own group alone. The dequantizing route multiplies in float32 and runs
everywhere. README.md in this folder draws the registers and the layout of a block.
"""

from __future__ import annotations

from collections.abc import Iterator

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from dia_demo.kernels.llvm_simd import BYTE, F32, I32, I64, NEXT_CACHE, SimdBuilder, dot_lanes
from dia_demo.kernels.packing import (
    BFLOAT16,
    BLOCK,
    FLOAT32,
    GROUP,
    INT4,
    INT4_GROUP,
    INT8,
    INT8_GROUP,
)

ZERO_POINT = {INT8: 128, INT4: 8}
GROUP_BYTES = {INT8: INT8_GROUP, INT4: INT4_GROUP}
HEAD_BYTES = {INT8: 0, INT4: 2 * BLOCK}  # of a group, before its weights
# How far ahead weights are prefetched: the hardware prefetcher comes too late where every cache
# line is multiplied with several rows. INT4, which computes longest on a line, prefetches it once
# before into the next cache level. Found by trial (Zen 5).
PREFETCH_BYTES = {FLOAT32: 3072, BFLOAT16: 8192, INT8: 4096, INT4: 3072}
FAR_PREFETCH_BYTES = {INT8: 0, INT4: 8192}
# Vectors of a block whose byte products are accumulated at the same time.
VECTORS_AT_ONCE = 4


def tiles_of_rows(
    simd: SimdBuilder,
    rows: ir.Value,
    *arrays: tuple[ir.Value, ir.Value],
    counts: tuple[int, ...] = (4, 2, 1),
) -> Iterator[tuple]:
    """Loops over tiles of four rows, then two, then one: yields once for each loop, whose body the
    caller emits, (rows of a tile, address of the tile's first row in each of `arrays`).

    arrays: (address, bytes a row). The sums of four rows are what the registers hold.
    """
    builder = simd.builder
    remaining = rows
    for count in counts:
        tiles, done = builder.udiv(remaining, I64(count)), builder.sub(rows, remaining)
        with cgutils.for_range(builder, tiles) as loop:
            first = builder.add(done, builder.mul(loop.index, I64(count)))
            addresses = [simd.at(base, builder.mul(first, stride)) for base, stride in arrays]
            yield count, *addresses
        remaining = builder.urem(remaining, I64(count))


@intrinsic(prefer_literal=True)
def gemm_block(context, format, use_dot, weights, x, x_stride, inputs, rows, out, out_stride):
    """out [rows, BLOCK] += x [rows, inputs] @ weights [inputs, BLOCK], all summed in float32.

    format (FLOAT32, BFLOAT16) and use_dot are constants. x is float32, on the dot-product route
    bfloat16; where inputs are odd, zero follows its BFLOAT16 rows. out float32; strides in bytes.
    """
    fmt, is_dot = format.literal_value, use_dot.literal_value
    per_lane = 2 if fmt == BFLOAT16 else 1

    def tile(simd, count, weights, x, x_stride, inputs, out, out_stride):
        builder = simd.builder
        vectors = BLOCK // simd.lanes
        sums = simd.variables(count, vectors, simd.floats)
        simd.fill(sums, simd.zeros())
        lines = [simd.row(x, x_stride, row) for row in range(count)]
        steps = builder.udiv(builder.add(inputs, I64(per_lane - 1)), I64(per_lane))
        with cgutils.for_range(builder, steps) as loop:
            place = simd.at(weights, builder.mul(loop.index, I64(4 * BLOCK)))
            offset = builder.mul(loop.index, I64(4 if is_dot else 4 * per_lane))
            inputs_of = [
                _activations(simd, is_dot, per_lane, simd.at(line, offset)) for line in lines
            ]
            for cache_line in range(0, 4 * BLOCK, 64):
                simd.prefetch(simd.at(place, PREFETCH_BYTES[fmt] + cache_line))
            for v in range(vectors):
                weight = simd.load(simd.at(place, 4 * simd.lanes * v), simd.ints)
                for row in range(count):
                    total = builder.load(sums[row][v])
                    total = _multiply_add(simd, is_dot, weight, inputs_of[row], total)
                    builder.store(total, sums[row][v])
        simd.add_to_memory(sums, out, out_stride)

    def generate(context, builder, _signature, arguments):
        _, _, weights, x, x_stride, inputs, rows, out, out_stride = arguments
        simd = SimdBuilder(builder)
        for count, x_tile, out_tile in tiles_of_rows(simd, rows, (x, x_stride), (out, out_stride)):
            tile(simd, count, weights, x_tile, x_stride, inputs, out_tile, out_stride)
        return context.get_dummy_value()

    if is_dot and not dot_lanes(fmt):
        return None
    return types.void(format, use_dot, *[types.int64] * 7), generate


def _activations(
    simd: SimdBuilder, is_dot: bool, per_lane: int, address: ir.Value
) -> list[ir.Value]:
    """A row's inputs that one lane of weights is multiplied with, broadcast to all lanes."""
    if is_dot:
        return [simd.broadcast(address, I32)]
    return [simd.broadcast(simd.at(address, 4 * i), F32) for i in range(per_lane)]


def _multiply_add(simd: SimdBuilder, is_dot: bool, weight: ir.Value, x: list, total: ir.Value):
    """total + the weights in each lane of 32 bits, one float32 or two bfloat16, times x."""
    if is_dot:
        return simd.dot_pairs(total, weight, x[0])
    if len(x) == 1:
        return simd.fma(simd.as_floats(weight), x[0], total)
    first, second = simd.unpack_bfloats(weight)
    return simd.fma(second, x[1], simd.fma(first, x[0], total))


@intrinsic(prefer_literal=True)
def gemm_int_dot_block(
    context, format, weights, x, x_stride, scales, x_sums, groups, rows, out, out_stride
):  # fmt: skip
    """out [rows, BLOCK] += x @ weights by dot products of bytes.

    format (INT8, INT4) is a constant; x int8 [rows, GROUP * groups] with its float32 scales and
    int32 sums [rows, groups] as `quantize` leaves them; out float32; strides in bytes.
    """
    fmt = format.literal_value

    def generate(context, builder, _signature, arguments):
        _, weights, x, x_stride, scales, x_sums, groups, rows, out, out_stride = arguments
        simd = SimdBuilder(builder, dot_lanes(fmt))
        stride = builder.mul(groups, I64(4))
        arrays = (x, x_stride), (out, out_stride), (scales, stride), (x_sums, stride)
        for count, x_tile, out_tile, *of_groups in tiles_of_rows(simd, rows, *arrays):
            _int_dot_tile(
                simd, fmt, count, weights, x_tile, x_stride, *of_groups, groups, out_tile,
                out_stride,
            )  # fmt: skip
        return context.get_dummy_value()

    if not dot_lanes(fmt):
        return None
    return types.void(format, *[types.int64] * 9), generate


def _int_dot_tile(
    simd, fmt, count, weights, x, x_stride, scales, x_sums, groups, out, out_stride
) -> None:
    """The block's products with `count` rows: integer sums of each group, scaled and added up."""
    builder = simd.builder
    vectors, at_once = BLOCK // simd.lanes, min(VECTORS_AT_ONCE, BLOCK // simd.lanes)
    sums = simd.variables(count, vectors, simd.floats)
    simd.fill(sums, simd.zeros())
    int_sums = simd.variables(count, at_once, simd.ints)
    stride = builder.mul(groups, I64(4))
    with cgutils.for_range(builder, groups) as loop:
        place = simd.at(weights, builder.mul(loop.index, I64(GROUP_BYTES[fmt])))
        lines = [
            simd.at(simd.row(x, x_stride, row), builder.mul(loop.index, I64(GROUP)))
            for row in range(count)
        ]
        offset = builder.mul(loop.index, I64(4))
        for line in range(0, HEAD_BYTES[fmt], 64):
            _prefetch_weights(simd, fmt, simd.at(place, line))
        for first in range(0, vectors, at_once):
            for row in range(count):
                # Weights are stored as unsigned numbers, the zero point above their value.
                x_sum = simd.broadcast(simd.at(simd.row(x_sums, stride, row), offset), I32)
                start = builder.mul(x_sum, simd.int_constant(-ZERO_POINT[fmt]))
                for v in range(at_once):
                    builder.store(start, int_sums[row][v])
            _dot_group(simd, fmt, place, first, lines, int_sums)
            for row in range(count):
                scale = simd.broadcast(simd.at(simd.row(scales, stride, row), offset), F32)
                for v in range(at_once):
                    factor = scale
                    if fmt == INT4:
                        lane = 2 * simd.lanes * (first + v)
                        factor = builder.fmul(scale, simd.load_bfloats(simd.at(place, lane)))
                    group_sum = simd.to_floats(builder.load(int_sums[row][v]))
                    total = builder.load(sums[row][first + v])
                    builder.store(simd.fma(group_sum, factor, total), sums[row][first + v])
    if fmt == INT8:
        _scale_rows(simd, sums, weights, groups)
    simd.add_to_memory(sums, out, out_stride)


def _prefetch_weights(simd: SimdBuilder, format: int, place: ir.Value) -> None:
    simd.prefetch(simd.at(place, PREFETCH_BYTES[format]))
    if FAR_PREFETCH_BYTES[format]:
        simd.prefetch(simd.at(place, FAR_PREFETCH_BYTES[format]), NEXT_CACHE)


def _dot_group(simd: SimdBuilder, format: int, place, first: int, lines, int_sums) -> None:
    """Sum one group of inputs into `int_sums`, for the vectors of the block from `first` on."""
    builder = simd.builder
    nibble, four = simd.int_constant(0x0F0F0F0F), simd.int_constant(4)
    for step in range(GROUP // 4):
        x_of = [simd.broadcast(simd.at(line, 4 * step), I32) for line in lines]
        for v in range(len(int_sums[0])):
            lane = 4 * simd.lanes * (first + v)
            row = step if format == INT8 else step // 2
            where = simd.at(place, HEAD_BYTES[format] + 4 * BLOCK * row + lane)
            if format == INT8 or step % 2 == 0:
                _prefetch_weights(simd, format, where)
            weight = simd.load(where, simd.ints)
            if format == INT4:
                weight = builder.lshr(weight, four) if step % 2 else weight
                weight = builder.and_(weight, nibble)
            for row, x in enumerate(x_of):
                total = simd.dot(builder.load(int_sums[row][v]), weight, x)
                builder.store(total, int_sums[row][v])


def _scale_rows(simd: SimdBuilder, sums, weights, groups) -> None:
    """Multiply with the scales of INT8's outputs, which follow the block's weights."""
    builder = simd.builder
    scales = simd.at(weights, builder.mul(groups, I64(GROUP_BYTES[INT8])))
    for v in range(len(sums[0])):
        scale = simd.load_floats(simd.at(scales, 4 * simd.lanes * v))
        for row_sums in sums:
            builder.store(builder.fmul(builder.load(row_sums[v]), scale), row_sums[v])


@intrinsic(prefer_literal=True)
def gemm_int_dequant_block(context, format, weights, x, x_stride, groups, rows, out, out_stride):
    """out [rows, BLOCK] += x @ weights with weights turned to float32.

    format (INT8, INT4) is a constant; x float32 [rows, GROUP * groups]; strides in bytes.
    """
    fmt = format.literal_value
    per_byte = 1 if fmt == INT8 else 2
    head = HEAD_BYTES[fmt]

    def tile(simd, count, weights, x, x_stride, groups, out, out_stride):
        builder = simd.builder
        vectors = BLOCK // simd.lanes
        sums = simd.variables(count, vectors, simd.floats)
        simd.fill(sums, simd.zeros())
        group_sums = simd.variables(count, 1, simd.floats)
        with cgutils.for_range(builder, groups) as loop:
            place = simd.at(weights, builder.mul(loop.index, I64(GROUP_BYTES[fmt])))
            for v in range(vectors):
                simd.fill(group_sums, simd.zeros())
                with cgutils.for_range(builder, I64(GROUP // 4 // per_byte)) as steps:
                    lane = simd.at(place, head + 4 * simd.lanes * v)
                    bytes_ = simd.load(
                        simd.at(lane, builder.mul(steps.index, I64(4 * BLOCK))), simd.ints
                    )
                    inputs = builder.mul(loop.index, I64(4 * GROUP))
                    inputs = simd.at(inputs, builder.mul(steps.index, I64(16 * per_byte)))
                    lines = [simd.at(simd.row(x, x_stride, row), inputs) for row in range(count)]
                    _dequant_step(simd, fmt, bytes_, lines, group_sums)
                for row in range(count):
                    group_sum = builder.load(group_sums[row][0])
                    if fmt == INT4:
                        scale = simd.load_bfloats(simd.at(place, 2 * simd.lanes * v))
                        group_sum = builder.fmul(group_sum, scale)
                    total = builder.fadd(builder.load(sums[row][v]), group_sum)
                    builder.store(total, sums[row][v])
        if fmt == INT8:
            _scale_rows(simd, sums, weights, groups)
        simd.add_to_memory(sums, out, out_stride)

    def generate(context, builder, _signature, arguments):
        _, weights, x, x_stride, groups, rows, out, out_stride = arguments
        simd = SimdBuilder(builder)
        for count, x_tile, out_tile in tiles_of_rows(simd, rows, (x, x_stride), (out, out_stride)):
            tile(simd, count, weights, x_tile, x_stride, groups, out_tile, out_stride)
        return context.get_dummy_value()

    return types.void(format, *[types.int64] * 7), generate


def _dequant_step(simd: SimdBuilder, format: int, bytes_, lines, sums) -> None:
    """Add the products of the four inputs (INT4: eight) of one vector of bytes."""
    builder = simd.builder
    bits = 8 if format == INT8 else 4
    mask, zero_point = simd.int_constant((1 << bits) - 1), simd.int_constant(ZERO_POINT[format])
    for nibble in range(8 // bits):
        for byte in range(4):
            shifted = builder.lshr(bytes_, simd.int_constant(8 * byte + bits * nibble))
            weight = simd.to_floats(builder.sub(builder.and_(shifted, mask), zero_point))
            for row, line in enumerate(lines):
                x = simd.broadcast(simd.at(line, 4 * (4 * nibble + byte)), F32)
                total = simd.fma(weight, x, builder.load(sums[row][0]))
                builder.store(total, sums[row][0])


@intrinsic(prefer_literal=True)
def quantize(context, x, groups, out, scales, sums):
    """int8 of float32 x [GROUP * groups]: the largest of a group becomes 127, nearest even.

    scales float32 [groups]: the value of 1; sums int32 [groups]: of the int8 numbers.
    """

    def generate(context, builder, _signature, arguments):
        x, groups, out, scales, sums = arguments
        simd = SimdBuilder(builder)
        vectors = GROUP // simd.lanes
        ints = f"v{simd.lanes}i32"
        with cgutils.for_range(builder, groups) as loop:
            group = simd.at(x, builder.mul(loop.index, I64(4 * GROUP)))
            values = [simd.load_floats(simd.at(group, 4 * simd.lanes * v)) for v in range(vectors)]
            # Absolute values compare like the integers of their bits, and NaN is above all: then
            # the scale is NaN, and so is the sum.
            largest = simd.abs_bits(values[0])
            for value in values[1:]:
                bits = simd.abs_bits(value)
                largest = simd.call(f"llvm.umax.{ints}", simd.ints, largest, bits)
            peak = builder.bitcast(simd.call(f"llvm.vector.reduce.umax.{ints}", I32, largest), F32)
            is_silent = builder.fcmp_ordered("<", peak, F32(1e-30))
            inverse = builder.select(is_silent, F32(0.0), builder.fdiv(F32(127.0), peak))
            total = simd.int_constant(0)
            for v, value in enumerate(values):
                integers = simd.round_to_int(builder.fmul(value, simd.splat(inverse)))
                total = builder.add(total, integers)
                as_bytes = builder.trunc(integers, ir.VectorType(BYTE, simd.lanes))
                place = simd.at(out, builder.mul(loop.index, I64(GROUP)))
                simd.store(as_bytes, simd.at(place, simd.lanes * v), align=1)
            offset = builder.mul(loop.index, I64(4))
            simd.store(builder.fdiv(peak, F32(127.0)), simd.at(scales, offset))
            added = simd.call(f"llvm.vector.reduce.add.{ints}", I32, total)
            simd.store(added, simd.at(sums, offset))
        return context.get_dummy_value()

    return types.void(*[types.int64] * 5), generate
