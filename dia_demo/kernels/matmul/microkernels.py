"""Products of one block of weights (packing.py) with a few rows of activations.

All formats but FLOAT32 have two routes. The dot-product route adds the products of two bfloat16
with one instruction, or of four bytes with one or three (int_microkernels.py), if the processor
has them (llvm_simd.dot_lanes). For bytes, `quantize` converts the activations to int8, with one
scale for every GROUP of them, so that an outlier affects only its own group. The dequantizing route
multiplies in float32 and runs everywhere. README.md in this folder shows the registers and the
layout of a block.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from dia_demo.kernels.llvm_simd import F32, I32, I64, SimdBuilder, dot_lanes
from dia_demo.kernels.packing import (
    BFLOAT16,
    BLOCK,
    FLOAT32,
    GROUP,
    INT4,
    INT4_GROUP,
    INT4_VALUES,
    INT8,
    INT8_GROUP,
)
from dia_demo.machine.processor import has_avx512

ZERO_POINT = {INT8: 128, INT4: -min(INT4_VALUES)}  # What is added for unsigned bytes.
GROUP_BYTES = {INT8: INT8_GROUP, INT4: INT4_GROUP}
HEADER_BYTES = {INT8: 0, INT4: 2 * BLOCK}  # Of a group: its scales, before its weights.
# How far ahead weights are prefetched: the hardware prefetcher is too late when every cache line is
# multiplied with several rows. Found by measuring (Zen 5).
PREFETCH_BYTES = {FLOAT32: 3072, BFLOAT16: 8192, INT8: 4096, INT4: 3072}
# AVX2 has 16 registers: this many vectors of sums fit beside their operands. They stay in registers
# for STEPS_AVX2 steps of inputs, whose weights stay in the L1 cache.
SUMS_AVX2, STEPS_AVX2 = 8, 64


def tiles_of_rows(
    simd: SimdBuilder,
    rows: ir.Value,
    *arrays: tuple[ir.Value, ir.Value],
    counts: tuple[int, ...] = (4, 2, 1),
) -> Iterator[tuple]:
    """Emit loops over tiles of four rows, then two, then one.

    Yields once for each loop, and the caller emits its body: (rows of a tile, address of the tile's
    first row in each of `arrays`). arrays: (address, bytes per row). The registers have space for
    the sums of four rows.
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
    bfloat16; if the inputs are odd, a zero follows each row. out is float32; strides are in bytes.
    """
    fmt, is_dot = format.literal_value, use_dot.literal_value
    per_lane = 2 if fmt == BFLOAT16 else 1

    def generate(context, builder, _signature, arguments):
        _, _, weights, x, x_stride, inputs, rows, out, out_stride = arguments
        simd = SimdBuilder(builder, 16 if has_avx512() or is_dot else 8)
        steps = builder.udiv(builder.add(inputs, I64(per_lane - 1)), I64(per_lane))
        for count, x_tile, out_tile in tiles_of_rows(simd, rows, (x, x_stride), (out, out_stride)):
            sums = simd.variables(count, BLOCK // simd.lanes, simd.floats)
            simd.fill(sums, simd.zeros())
            x_rows = [simd.row(x_tile, x_stride, row) for row in range(count)]
            if simd.lanes == 16:
                _dense_steps(simd, fmt, is_dot, weights, x_rows, I64(0), steps, sums)
            else:
                _dense_chunks(simd, fmt, weights, x_rows, steps, sums)
            simd.add_to_memory(sums, out_tile, out_stride)
        return context.get_dummy_value()

    if is_dot and not dot_lanes(fmt):
        return None
    return types.void(format, use_dot, *[types.int64] * 7), generate


def _dense_chunks(simd, fmt, weights, x_rows, steps, sums) -> None:
    """`_dense_steps` for 16 registers: the same sums in the same order, a few of them at a time.

    The inputs are cut into short chunks, so that their weights, read once for each few sums, stay
    in the L1 cache.
    """
    builder = simd.builder
    at_once = SUMS_AVX2 // len(x_rows)
    chunks = builder.udiv(builder.add(steps, I64(STEPS_AVX2 - 1)), I64(STEPS_AVX2))
    with cgutils.for_range(builder, chunks) as loop:
        begin = builder.mul(loop.index, I64(STEPS_AVX2))
        end = builder.add(begin, I64(STEPS_AVX2))
        end = builder.select(builder.icmp_unsigned("<", end, steps), end, steps)
        for first in range(0, len(sums[0]), at_once):
            registers = simd.variables(len(x_rows), at_once, simd.floats)
            for row_registers, row_sums in zip(registers, sums, strict=True):
                for v, register in enumerate(row_registers):
                    builder.store(builder.load(row_sums[first + v]), register)
            _dense_steps(simd, fmt, False, weights, x_rows, begin, end, registers, first)
            for row_registers, row_sums in zip(registers, sums, strict=True):
                for v, register in enumerate(row_registers):
                    builder.store(builder.load(register), row_sums[first + v])


def _dense_steps(simd, fmt, is_dot, weights, x_rows, begin, end, sums, first=0) -> None:
    """Add the products of steps begin..end of the inputs to `sums` [rows][vectors], which belong to
    the block's vectors from `first` on. A step is one input, or two of BFLOAT16.
    """
    builder = simd.builder
    per_lane = 2 if fmt == BFLOAT16 else 1
    with cgutils.for_range(builder, builder.sub(end, begin)) as loop:
        step = builder.add(begin, loop.index)
        step_weights = simd.at(weights, builder.mul(step, I64(4 * BLOCK)))
        offset = builder.mul(step, I64(4 if is_dot else 4 * per_lane))
        inputs = [_activations(simd, is_dot, per_lane, simd.at(row, offset)) for row in x_rows]
        if first == 0:
            for cache_line in range(0, 4 * BLOCK, 64):
                simd.prefetch(simd.at(step_weights, PREFETCH_BYTES[fmt] + cache_line))
        for v in range(len(sums[0])):
            weight = simd.load(simd.at(step_weights, 4 * simd.lanes * (first + v)), simd.ints)
            for row_inputs, row_sums in zip(inputs, sums, strict=True):
                total = builder.load(row_sums[v])
                total = _multiply_add(simd, is_dot, weight, row_inputs, total)
                builder.store(total, row_sums[v])


def _activations(
    simd: SimdBuilder, is_dot: bool, per_lane: int, address: ir.Value
) -> list[ir.Value]:
    """A row's inputs for one step, broadcast to all lanes."""
    if is_dot:
        return [simd.broadcast(address, I32)]
    return [simd.broadcast(simd.at(address, 4 * i), F32) for i in range(per_lane)]


def _multiply_add(simd: SimdBuilder, is_dot: bool, weight: ir.Value, x: list, total: ir.Value):
    """total + x times the weights in each 32-bit lane: one float32 or two bfloat16."""
    if is_dot:
        return simd.dot_pairs(total, weight, x[0])
    if len(x) == 1:
        return simd.fma(simd.as_floats(weight), x[0], total)
    first, second = simd.unpack_bfloats(weight)
    return simd.fma(second, x[1], simd.fma(first, x[0], total))


def scale_rows(simd: SimdBuilder, fmt: int, sums, weights, groups) -> None:
    """Multiply sums with the scales of the outputs, which follow the block's weights."""
    builder = simd.builder
    scales = simd.at(weights, builder.mul(groups, I64(GROUP_BYTES[fmt])))
    for v in range(len(sums[0])):
        scale = simd.load_floats(simd.at(scales, 4 * simd.lanes * v))
        for row_sums in sums:
            builder.store(builder.fmul(builder.load(row_sums[v]), scale), row_sums[v])


def half_scales(simd: SimdBuilder, group_weights: ir.Value, half: int, v: int) -> ir.Value:
    """INT4's scales of half a group and the block's vector v, as int32."""
    address = simd.at(group_weights, BLOCK * half + simd.lanes * v)
    return simd.builder.sext(simd.load_bytes(address), simd.ints)


@intrinsic(prefer_literal=True)
def gemm_int_dequant_block(context, format, weights, x, x_stride, groups, rows, out, out_stride):
    """out [rows, BLOCK] += x @ weights, with the weights converted to float32.

    format (INT8, INT4) is a constant; x float32 [rows, GROUP * groups]; strides in bytes.
    """
    fmt = format.literal_value
    # Parts of a group with a scale of their own, and their steps of a vector of weights.
    parts, steps_of_part = (1, GROUP // 4) if fmt == INT8 else (2, GROUP // 16)
    step_inputs = 4 if fmt == INT8 else 8

    def tile(simd, count, weights, x, x_stride, groups, out, out_stride):
        builder = simd.builder
        vectors = BLOCK // simd.lanes
        sums = simd.variables(count, vectors, simd.floats)
        simd.fill(sums, simd.zeros())
        group_sums = simd.variables(count, 1, simd.floats)
        with cgutils.for_range(builder, groups) as loop:
            group_weights = simd.at(weights, builder.mul(loop.index, I64(GROUP_BYTES[fmt])))
            for v, part in itertools.product(range(vectors), range(parts)):
                simd.fill(group_sums, simd.zeros())
                first_step = HEADER_BYTES[fmt] + 4 * (BLOCK * steps_of_part * part + simd.lanes * v)
                with cgutils.for_range(builder, I64(steps_of_part)) as steps:
                    step = builder.mul(steps.index, I64(4 * BLOCK))
                    step_weights = simd.at(simd.at(group_weights, first_step), step)
                    offset = builder.mul(loop.index, I64(4 * GROUP))
                    offset = simd.at(offset, 4 * step_inputs * steps_of_part * part)
                    offset = simd.at(offset, builder.mul(steps.index, I64(4 * step_inputs)))
                    x_rows = [simd.at(simd.row(x, x_stride, row), offset) for row in range(count)]
                    _dequant_step(simd, fmt, simd.load(step_weights, simd.ints), x_rows, group_sums)
                for row in range(count):
                    group_sum = builder.load(group_sums[row][0])
                    if fmt == INT4:
                        scale = half_scales(simd, group_weights, part, v)
                        group_sum = builder.fmul(group_sum, simd.to_floats(scale))
                    total = builder.fadd(builder.load(sums[row][v]), group_sum)
                    builder.store(total, sums[row][v])
        scale_rows(simd, fmt, sums, weights, groups)
        simd.add_to_memory(sums, out, out_stride)

    def generate(context, builder, _signature, arguments):
        _, weights, x, x_stride, groups, rows, out, out_stride = arguments
        simd = SimdBuilder(builder)
        for count, x_tile, out_tile in tiles_of_rows(simd, rows, (x, x_stride), (out, out_stride)):
            tile(simd, count, weights, x_tile, x_stride, groups, out_tile, out_stride)
        return context.get_dummy_value()

    return types.void(format, *[types.int64] * 7), generate


def _dequant_step(simd: SimdBuilder, format: int, bytes_, x_rows, sums) -> None:
    """Add the products of one vector of bytes with its four inputs (INT4: eight) to `sums`."""
    builder = simd.builder
    if format == INT8:  # From the weight + 128 to the weight.
        signed = [builder.xor(bytes_, simd.int_constant(-0x7F7F7F80))]
    else:
        signed = simd.look_up_nibbles(bytes_, INT4_VALUES)
    for number, four_weights in enumerate(signed):
        for byte in range(4):
            weight = simd.to_floats(simd.byte_of_lanes(four_weights, byte))
            for x_row, (row_sum,) in zip(x_rows, sums, strict=True):
                x = simd.broadcast(simd.at(x_row, 4 * (4 * number + byte)), F32)
                total = simd.fma(weight, x, builder.load(row_sum))
                builder.store(total, row_sum)
