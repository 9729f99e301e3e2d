"""Products with weights of five bits (INT5): eight of them share five bytes of a lane.

As in INT4, half a group shares a scale, and products of bytes add up to exact integers. Weights
are multiplied as unsigned bytes of 0 to 31, so the products of four bytes each with four weights
still fit an int16: 8 * 31 * 127 = 31,496. No table is looked up: five weights are the low bits of a
byte each, and the other three are put together from the high ones.
"""

from __future__ import annotations

from collections.abc import Iterable

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from dia_demo.kernels.llvm_simd import F32, I32, I64, SimdBuilder, dot_lanes
from dia_demo.kernels.matmul.microkernels import tiles_of_rows
from dia_demo.kernels.packing import (
    BLOCK,
    GROUP,
    INT5,
    INT5_GROUP,
    INT5_HALF,
    INT5_PARTS,
    INT5_ZERO,
)
from dia_demo.machine.processor import adds_byte_products_at_once

HEADER = 2 * BLOCK  # The scales of both halves.
LINE = 64  # Bytes of the same five-bit words of 16 outputs.
# Weights are prefetched in the order of memory, although they are read in another one: the caches
# keep a set of 27 MB only then.
PREFETCH = 8192
QUARTER = INT5_GROUP // (BLOCK // 16)  # Bytes that are prefetched with each line of outputs.


@intrinsic(prefer_literal=True)
def gemm_int5_block(
    context, use_dot, weights, x, x_stride, scales, x_sums, groups, rows, out, out_stride
):  # fmt: skip
    """out [rows, BLOCK] += x @ a block of INT5.

    use_dot is a constant. With it, x is int8 [rows, GROUP * groups] with its scales and sums from
    `quantize`; without, float32, and these are not read. Strides are in bytes.
    """
    is_dot = use_dot.literal_value

    def generate(context, builder, _signature, arguments):
        _, weights, x, x_stride, scales, x_sums, groups, rows, out, out_stride = arguments
        simd = SimdBuilder(builder, dot_lanes(INT5) if is_dot else 16)
        stride = builder.mul(groups, I64(4))
        sums_stride = builder.mul(groups, I64(8))
        arrays = (x, x_stride), (out, out_stride), (scales, stride), (x_sums, sums_stride)
        for count, x_tile, out_tile, *tiles in tiles_of_rows(simd, rows, *arrays):
            rows_of_tile = [
                [simd.row(tile, row_bytes, row) for row in range(count)]
                for tile, row_bytes in (
                    (x_tile, x_stride), (tiles[0], stride), (tiles[1], sums_stride)
                )
            ]  # fmt: skip
            _tile(simd, is_dot, weights, *rows_of_tile, groups, out_tile, out_stride)
        return context.get_dummy_value()

    if is_dot and not dot_lanes(INT5):
        return None
    return types.void(use_dot, *[types.int64] * 9), generate


def _tile(simd, is_dot, weights, x_rows, scale_rows, sum_rows, groups, out, out_stride) -> None:
    """A block's products with a few rows; their sums are in an array, in the order of outputs."""
    builder, count = simd.builder, len(x_rows)
    array = cgutils.alloca_once(builder, ir.ArrayType(F32, count * BLOCK))
    sums = builder.ptrtoint(array, I64)
    every_vector = [
        simd.at(sums, 4 * BLOCK * row + first)
        for row in range(count)
        for first in range(0, 4 * BLOCK, 4 * simd.lanes)
    ]
    for address in every_vector:
        simd.store(simd.zeros(), address)
    at_once = 16 // simd.lanes  # Vectors of a cache line.
    with cgutils.for_range(builder, groups) as group:
        group_weights = simd.at(weights, builder.mul(group.index, I64(INT5_GROUP)))
        x_group = I64(GROUP if is_dot else 4 * GROUP)
        xs = [simd.at(row, builder.mul(group.index, x_group)) for row in x_rows]
        x_scales = [simd.at(row, builder.mul(group.index, I64(4))) for row in scale_rows]
        x_sums = [simd.at(row, builder.mul(group.index, I64(8))) for row in sum_rows]
        with cgutils.for_range(builder, simd.opaque(I64(BLOCK // 16))) as lines:
            line = simd.at(group_weights, HEADER)
            line = simd.at(line, builder.mul(lines.index, I64(5 * LINE)))
            ahead = simd.at(group_weights, PREFETCH)
            ahead = simd.at(ahead, builder.mul(lines.index, I64(QUARTER)))
            lines_ahead = [simd.at(ahead, start) for start in range(0, QUARTER, LINE)]
            # In turns with the weights that are read: a load waits for prefetches before it.
            shares = iter(_in_parts(lines_ahead, 2 * at_once))
            for v in range(at_once):
                first = builder.add(builder.mul(lines.index, I64(16)), I64(simd.lanes * v))
                own = simd.at(line, 4 * simd.lanes * v)
                bytes_of = [
                    simd.load_bytes(simd.at(simd.at(group_weights, BLOCK * half), first))
                    for half in (0, 1)
                ]
                if not is_dot:
                    totals = _float_sums(simd, own, xs, bytes_of, shares)
                else:
                    totals = _dot_sums(simd, own, xs, x_sums, x_scales, bytes_of, shares)
                for row, total in enumerate(totals):
                    place = simd.at(simd.at(sums, 4 * BLOCK * row), builder.mul(first, I64(4)))
                    simd.store(builder.fadd(simd.load_floats(place), total), place)
    output_scales = simd.at(weights, builder.mul(groups, I64(INT5_GROUP)))
    for row in range(count):
        for first in range(0, 4 * BLOCK, 4 * simd.lanes):
            scale = simd.load_floats(simd.at(output_scales, first))
            total = simd.load_floats(simd.at(sums, 4 * BLOCK * row + first))
            place = simd.at(simd.row(out, out_stride, row), first)
            simd.store(simd.fma(total, scale, simd.load_floats(place)), place)


def _in_parts(items: list, count: int) -> list[list]:
    """The items in so many parts, as equal as possible."""
    return [items[len(items) * i // count : len(items) * (i + 1) // count] for i in range(count)]


def _decode(simd: SimdBuilder, address: ir.Value, ahead: Iterable[ir.Value]) -> list[ir.Value]:
    """The eight unsigned weights of half a group, four inputs in every lane, as ints.

    ahead: addresses to prefetch before.
    """
    builder = simd.builder
    simd.keep_order()
    for line in ahead:
        simd.prefetch(line)
    words = [simd.load(simd.at(address, LINE * number), simd.ints) for number in range(5)]

    def bits(word: int, shift: int, mask: int) -> ir.Value:
        value = words[word]
        value = builder.lshr(value, simd.int_constant(shift)) if shift else value
        return builder.and_(value, simd.int_constant(0x01010101 * mask))

    weights = [bits(number, 0, 0x1F) for number in range(5)]
    for parts in INT5_PARTS:
        first, *others = (bits(*part) for part in parts)
        for other in others:
            first = builder.or_(first, other)
        weights.append(first)
    return weights


def _dot_sums(simd, line, xs, x_sums, x_scales, scales, ahead) -> list[ir.Value]:
    """float32 sums of a group for each row, by products of bytes."""
    builder, at_once = simd.builder, adds_byte_products_at_once()
    totals = [simd.int_constant(0)] * len(xs)
    for half in (0, 1):
        weights = _decode(simd, simd.at(line, INT5_HALF * half), next(ahead))
        for row, x in enumerate(xs):
            inputs = [
                simd.broadcast(simd.at(x, GROUP // 2 * half + 4 * number), I32)
                for number in range(8)
            ]
            if at_once:
                x_sum = simd.load(simd.at(x_sums[row], 4 * half), I32)
                part = simd.splat(builder.mul(x_sum, I32(-INT5_ZERO)))
                for weight, four in zip(weights, inputs, strict=True):
                    part = simd.dot(part, weight, four)
                part = builder.mul(part, builder.sext(scales[half], simd.ints))
            else:
                part = _half_avx2(simd, weights, inputs, scales[half])
            totals[row] = builder.add(totals[row], part)
    if not at_once:
        totals = [
            builder.sub(total, _zero_point_correction(simd, x_sums[row], scales))
            for row, total in enumerate(totals)
        ]
    return [
        builder.fmul(simd.to_floats(total), simd.broadcast(x_scales[row], F32))
        for row, total in enumerate(totals)
    ]


def _half_avx2(simd: SimdBuilder, weights, inputs, scale) -> ir.Value:
    """int32 sums of half a group times its scale, by vpmaddubsw and vpmaddwd."""
    builder = simd.builder
    factor = simd.sext_pairs(scale, scale)
    parts = []
    for first in (0, 4):
        shorts = None
        for number in range(first, first + 4):
            products = simd.add_byte_pairs(
                simd.bitcast_bytes(weights[number]), simd.bitcast_bytes(inputs[number])
            )
            shorts = products if shorts is None else builder.add(shorts, products)
        parts.append(simd.add_short_pairs(shorts, factor))
    return builder.add(*parts)


def _zero_point_correction(simd: SimdBuilder, x_sums: ir.Value, scales) -> ir.Value:
    """What a group's sums are too large by, because its weights are INT5_ZERO above their value."""
    builder = simd.builder
    low, high = (simd.load(simd.at(x_sums, 4 * half), I32) for half in (0, 1))
    both = builder.or_(builder.and_(low, I32(0xFFFF)), builder.shl(high, I32(16)))
    pairs = builder.bitcast(simd.splat(both), simd.shorts)
    above = simd.add_short_pairs(pairs, simd.sext_pairs(*scales))
    return builder.shl(above, simd.int_constant(INT5_ZERO.bit_length() - 1))


def _float_sums(simd: SimdBuilder, line, xs, scales, ahead) -> list[ir.Value]:
    """float32 sums of a group for each row, with the weights converted to float32."""
    builder = simd.builder
    totals = [simd.zeros()] * len(xs)
    for half in (0, 1):
        part = [simd.zeros()] * len(xs)
        weights = _decode(simd, simd.at(line, INT5_HALF * half), next(ahead))
        for number, four in enumerate(weights):
            for byte in range(4):
                weight = builder.sub(simd.byte_of_lanes(four, byte), simd.int_constant(INT5_ZERO))
                weight = simd.to_floats(weight)
                for row, x in enumerate(xs):
                    place = 4 * (GROUP // 2 * half + 4 * number + byte)
                    part[row] = simd.fma(weight, simd.broadcast(simd.at(x, place), F32), part[row])
        scale = simd.to_floats(builder.sext(scales[half], simd.ints))
        totals = [simd.fma(own, scale, total) for own, total in zip(part, totals, strict=True)]
    return totals
