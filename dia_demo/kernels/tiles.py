"""Products of one block of weights (formats.py) with a few rows of activations.

All but FLOAT32 have two routes. DOT adds the products of four bytes, or of two bfloat16, at a time,
where the processor can (emit.dot_lanes). For bytes it needs activations that `quantise` has turned
to int8, with one scale for every GROUP of them, so that an outlier spoils its own group alone.
FLOAT multiplies in float32 and runs everywhere.
"""

from __future__ import annotations

from collections.abc import Iterator

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from dia_demo.kernels.emit import BYTE, F32, I32, I64, NEXT_CACHE, Emitter, dot_lanes
from dia_demo.kernels.formats import (
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
# How far ahead weights are asked for: the processor's own guess comes too late where every line
# meets several rows. INT4, which computes longest on a line, asks for them once before, into the
# cache behind the nearest. Found by trial (Zen 5).
AHEAD = {FLOAT32: 3072, BFLOAT16: 8192, INT8: 4096, INT4: 3072}
FAR_AHEAD = {INT8: 0, INT4: 8192}
# Vectors of a block that byte products are summed for at once.
AT_ONCE = 4


def few_rows(
    emit: Emitter,
    rows: ir.Value,
    *lines: tuple[ir.Value, ir.Value],
    counts: tuple[int, ...] = (4, 2, 1),
) -> Iterator[tuple]:
    """(rows at once, address of the first in each of `lines`): the body of a loop over four rows,
    over two, over one. lines: (address, bytes a row). Four rows' sums are what the registers hold.
    """
    builder = emit.builder
    left = rows
    for count in counts:
        times, begun = builder.udiv(left, I64(count)), builder.sub(rows, left)
        with cgutils.for_range(builder, times) as loop:
            first = builder.add(begun, builder.mul(loop.index, I64(count)))
            places = [emit.at(address, builder.mul(first, stride)) for address, stride in lines]
            yield count, *places
        left = builder.urem(left, I64(count))


@intrinsic(prefer_literal=True)
def dense_block(context, kind, use_dot, weights, x, x_stride, inputs, rows, out, out_stride):
    """out [rows, BLOCK] += x [rows, inputs] @ weights [inputs, BLOCK], all summed in float32.

    kind (FLOAT32, BFLOAT16) and use_dot are constants. x is float32, and by the route DOT bfloat16;
    where inputs are odd, zero follows its BFLOAT16 rows. out float32; strides in bytes.
    """
    kind_is, is_dot = kind.literal_value, use_dot.literal_value
    per_lane = 2 if kind_is == BFLOAT16 else 1

    def tile(emit, count, weights, x, x_stride, inputs, out, out_stride):
        builder = emit.builder
        vectors = BLOCK // emit.lanes
        sums = emit.variables(count, vectors, emit.floats)
        emit.fill(sums, emit.zeros())
        lines = [emit.row(x, x_stride, row) for row in range(count)]
        steps = builder.udiv(builder.add(inputs, I64(per_lane - 1)), I64(per_lane))
        with cgutils.for_range(builder, steps) as loop:
            place = emit.at(weights, builder.mul(loop.index, I64(4 * BLOCK)))
            offset = builder.mul(loop.index, I64(4 if is_dot else 4 * per_lane))
            given = [_given(emit, is_dot, per_lane, emit.at(line, offset)) for line in lines]
            for line in range(0, 4 * BLOCK, 64):
                emit.prefetch(emit.at(place, AHEAD[kind_is] + line))
            for v in range(vectors):
                weight = emit.load(emit.at(place, 4 * emit.lanes * v), emit.ints)
                for row in range(count):
                    total = _add_lane(emit, is_dot, weight, given[row], builder.load(sums[row][v]))
                    builder.store(total, sums[row][v])
        emit.add_out(sums, out, out_stride)

    def generate(context, builder, _signature, arguments):
        _, _, weights, x, x_stride, inputs, rows, out, out_stride = arguments
        emit = Emitter(builder)
        for count, here, there in few_rows(emit, rows, (x, x_stride), (out, out_stride)):
            tile(emit, count, weights, here, x_stride, inputs, there, out_stride)
        return context.get_dummy_value()

    if is_dot and not dot_lanes(kind_is):
        return None
    return types.void(kind, use_dot, *[types.int64] * 7), generate


def _given(emit: Emitter, is_dot: bool, per_lane: int, address: ir.Value) -> list[ir.Value]:
    """What a row has for one lane of weights, in all lanes."""
    if is_dot:
        return [emit.broadcast(address, I32)]
    return [emit.broadcast(emit.at(address, 4 * i), F32) for i in range(per_lane)]


def _add_lane(emit: Emitter, is_dot: bool, weight: ir.Value, given: list, total: ir.Value):
    """total + the weights in each lane of 32 bits, one float32 or two bfloat16, times `given`."""
    if is_dot:
        return emit.dot_pairs(total, weight, given[0])
    if len(given) == 1:
        return emit.fma(emit.as_floats(weight), given[0], total)
    first, second = emit.both_halves(weight)
    return emit.fma(second, given[1], emit.fma(first, given[0], total))


@intrinsic(prefer_literal=True)
def dot_block(context, kind, weights, x, x_stride, scales, offsets, groups, rows, out, out_stride):
    """out [rows, BLOCK] += x @ weights by the route DOT.

    kind (INT8, INT4) is a constant; x int8 [rows, GROUP * groups] with its float32 scales and int32
    sums [rows, groups] as `quantise` leaves them; out float32; strides in bytes.
    """
    kind_is = kind.literal_value

    def tile(emit, count, weights, x, x_stride, scales, offsets, groups, out, out_stride):
        builder = emit.builder
        vectors, at_once = BLOCK // emit.lanes, min(AT_ONCE, BLOCK // emit.lanes)
        sums = emit.variables(count, vectors, emit.floats)
        emit.fill(sums, emit.zeros())
        whole = emit.variables(count, at_once, emit.ints)
        small_stride = builder.mul(groups, I64(4))
        with cgutils.for_range(builder, groups) as loop:
            place = emit.at(weights, builder.mul(loop.index, I64(GROUP_BYTES[kind_is])))
            lines = [
                emit.at(emit.row(x, x_stride, row), builder.mul(loop.index, I64(GROUP)))
                for row in range(count)
            ]
            small = builder.mul(loop.index, I64(4))
            for line in range(0, HEAD_BYTES[kind_is], 64):
                _ask_ahead(emit, kind_is, emit.at(place, line))
            for first in range(0, vectors, at_once):
                for row in range(count):
                    where = emit.at(emit.row(offsets, small_stride, row), small)
                    start = builder.mul(
                        emit.broadcast(where, I32), emit.number(-ZERO_POINT[kind_is])
                    )
                    for v in range(at_once):
                        builder.store(start, whole[row][v])
                _dot_group(emit, kind_is, place, first, lines, whole)
                for row in range(count):
                    where = emit.at(emit.row(scales, small_stride, row), small)
                    scale = emit.broadcast(where, F32)
                    for v in range(at_once):
                        factor = scale
                        if kind_is == INT4:
                            lane = 2 * emit.lanes * (first + v)
                            factor = builder.fmul(scale, emit.bfloats_at(emit.at(place, lane)))
                        kept = sums[row][first + v]
                        part = emit.to_floats(builder.load(whole[row][v]))
                        builder.store(emit.fma(part, factor, builder.load(kept)), kept)
        if kind_is == INT8:
            _scale_rows(emit, sums, weights, groups)
        emit.add_out(sums, out, out_stride)

    def generate(context, builder, _signature, arguments):
        _, weights, x, x_stride, scales, offsets, groups, rows, out, out_stride = arguments
        emit = Emitter(builder, dot_lanes(kind_is))
        small_stride = builder.mul(groups, I64(4))
        lines = (x, x_stride), (out, out_stride), (scales, small_stride), (offsets, small_stride)
        for count, here, there, *small in few_rows(emit, rows, *lines):
            tile(emit, count, weights, here, x_stride, *small, groups, there, out_stride)
        return context.get_dummy_value()

    if not dot_lanes(kind_is):
        return None
    return types.void(kind, *[types.int64] * 9), generate


def _ask_ahead(emit: Emitter, kind: int, place: ir.Value) -> None:
    emit.prefetch(emit.at(place, AHEAD[kind]))
    if FAR_AHEAD[kind]:
        emit.prefetch(emit.at(place, FAR_AHEAD[kind]), NEXT_CACHE)


def _dot_group(emit: Emitter, kind: int, place, first: int, lines, whole) -> None:
    """Sum one group of inputs into `whole`, for the vectors of the block from `first` on."""
    builder = emit.builder
    nibble, four = emit.number(0x0F0F0F0F), emit.number(4)
    for step in range(GROUP // 4):
        given = [emit.broadcast(emit.at(line, 4 * step), I32) for line in lines]
        for v in range(len(whole[0])):
            lane = 4 * emit.lanes * (first + v)
            row = step if kind == INT8 else step // 2
            where = emit.at(place, HEAD_BYTES[kind] + 4 * BLOCK * row + lane)
            if kind == INT8 or step % 2 == 0:
                _ask_ahead(emit, kind, where)
            weight = emit.load(where, emit.ints)
            if kind == INT4:
                weight = builder.lshr(weight, four) if step % 2 else weight
                weight = builder.and_(weight, nibble)
            for row, x in enumerate(given):
                kept = whole[row][v]
                builder.store(emit.dot(builder.load(kept), weight, x), kept)


def _scale_rows(emit: Emitter, sums, weights, groups) -> None:
    """Times the scales of INT8's outputs, which follow the block's weights."""
    builder = emit.builder
    scales = emit.at(weights, builder.mul(groups, I64(GROUP_BYTES[INT8])))
    for v in range(len(sums[0])):
        scale = emit.floats_at(emit.at(scales, 4 * emit.lanes * v))
        for line in sums:
            builder.store(builder.fmul(builder.load(line[v]), scale), line[v])


@intrinsic(prefer_literal=True)
def float_block(context, kind, weights, x, x_stride, groups, rows, out, out_stride):
    """out [rows, BLOCK] += x @ weights by the route FLOAT.

    kind (INT8, INT4) is a constant; x float32 [rows, GROUP * groups]; strides in bytes.
    """
    kind_is = kind.literal_value
    per_byte = 1 if kind_is == INT8 else 2
    head = HEAD_BYTES[kind_is]

    def tile(emit, count, weights, x, x_stride, groups, out, out_stride):
        builder = emit.builder
        vectors = BLOCK // emit.lanes
        sums = emit.variables(count, vectors, emit.floats)
        emit.fill(sums, emit.zeros())
        part = emit.variables(count, 1, emit.floats)
        with cgutils.for_range(builder, groups) as loop:
            place = emit.at(weights, builder.mul(loop.index, I64(GROUP_BYTES[kind_is])))
            for v in range(vectors):
                emit.fill(part, emit.zeros())
                with cgutils.for_range(builder, I64(GROUP // 4 // per_byte)) as steps:
                    lane = emit.at(place, head + 4 * emit.lanes * v)
                    bytes_ = emit.load(
                        emit.at(lane, builder.mul(steps.index, I64(4 * BLOCK))), emit.ints
                    )
                    inputs = builder.mul(loop.index, I64(4 * GROUP))
                    inputs = emit.at(inputs, builder.mul(steps.index, I64(16 * per_byte)))
                    lines = [emit.at(emit.row(x, x_stride, row), inputs) for row in range(count)]
                    _float_step(emit, kind_is, bytes_, lines, part)
                for row in range(count):
                    total = builder.load(part[row][0])
                    kept = sums[row][v]
                    if kind_is == INT4:
                        scale = emit.bfloats_at(emit.at(place, 2 * emit.lanes * v))
                        total = builder.fmul(total, scale)
                    builder.store(builder.fadd(builder.load(kept), total), kept)
        if kind_is == INT8:
            _scale_rows(emit, sums, weights, groups)
        emit.add_out(sums, out, out_stride)

    def generate(context, builder, _signature, arguments):
        _, weights, x, x_stride, groups, rows, out, out_stride = arguments
        emit = Emitter(builder)
        for count, here, there in few_rows(emit, rows, (x, x_stride), (out, out_stride)):
            tile(emit, count, weights, here, x_stride, groups, there, out_stride)
        return context.get_dummy_value()

    return types.void(kind, *[types.int64] * 7), generate


def _float_step(emit: Emitter, kind: int, bytes_, lines, part) -> None:
    """The four inputs (INT4: eight) of one vector of bytes."""
    builder = emit.builder
    bits = 8 if kind == INT8 else 4
    mask, zero_point = emit.number((1 << bits) - 1), emit.number(ZERO_POINT[kind])
    for half in range(8 // bits):
        for place in range(4):
            shifted = builder.lshr(bytes_, emit.number(8 * place + bits * half))
            weight = emit.to_floats(builder.sub(builder.and_(shifted, mask), zero_point))
            for row, line in enumerate(lines):
                x = emit.broadcast(emit.at(line, 4 * (4 * half + place)), F32)
                kept = part[row][0]
                builder.store(emit.fma(weight, x, builder.load(kept)), kept)


@intrinsic(prefer_literal=True)
def quantise(context, x, groups, out, scales, sums):
    """int8 of float32 x [GROUP * groups]: the largest of a group becomes 127, nearest even.

    scales float32 [groups]: what 1 stands for; sums int32 [groups]: of the int8 numbers.
    """

    def generate(context, builder, _signature, arguments):
        x, groups, out, scales, sums = arguments
        emit = Emitter(builder)
        vectors = GROUP // emit.lanes
        ints = f"v{emit.lanes}i32"
        with cgutils.for_range(builder, groups) as loop:
            here = emit.at(x, builder.mul(loop.index, I64(4 * GROUP)))
            values = [emit.floats_at(emit.at(here, 4 * emit.lanes * v)) for v in range(vectors)]
            # Sizes compare like the integers of their bits, and NaN is above all of them: then the
            # scale is NaN, and the sum.
            largest = emit.size_bits(values[0])
            for value in values[1:]:
                size = emit.size_bits(value)
                largest = emit.call(f"llvm.umax.{ints}", emit.ints, largest, size)
            peak = builder.bitcast(emit.call(f"llvm.vector.reduce.umax.{ints}", I32, largest), F32)
            silent = builder.fcmp_ordered("<", peak, F32(1e-30))
            inverse = builder.select(silent, F32(0.0), builder.fdiv(F32(127.0), peak))
            total = emit.number(0)
            for v, value in enumerate(values):
                whole = emit.nearest(builder.fmul(value, emit.splat(inverse)))
                total = builder.add(total, whole)
                small = builder.trunc(whole, ir.VectorType(BYTE, emit.lanes))
                place = emit.at(out, builder.mul(loop.index, I64(GROUP)))
                emit.store(small, emit.at(place, emit.lanes * v), align=1)
            offset = builder.mul(loop.index, I64(4))
            emit.store(builder.fdiv(peak, F32(127.0)), emit.at(scales, offset))
            added = emit.call(f"llvm.vector.reduce.add.{ints}", I32, total)
            emit.store(added, emit.at(sums, offset))
        return context.get_dummy_value()

    return types.void(*[types.int64] * 5), generate
