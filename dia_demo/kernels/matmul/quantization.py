"""Activations as bytes, with a scale for every group of them."""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from dia_demo.kernels.llvm_simd import BYTE, F32, I32, I64, SimdBuilder
from dia_demo.kernels.packing import GROUP, HALF


@intrinsic(prefer_literal=True)
def quantize(context, x, groups, out, scales, sums):
    """Round float32 x [GROUP * groups] to int8, ties to even; a group's largest becomes 127.

    scales: float32 [groups], the value of 1. sums: int32 [groups, 2], of the int8 numbers of each
    half of a group.
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
            totals = [simd.int_constant(0)] * 2
            for v, value in enumerate(values):
                integers = simd.round_to_int(builder.fmul(value, simd.splat(inverse)))
                half = simd.lanes * v // HALF
                totals[half] = builder.add(totals[half], integers)
                as_bytes = builder.trunc(integers, ir.VectorType(BYTE, simd.lanes))
                out_group = simd.at(out, builder.mul(loop.index, I64(GROUP)))
                simd.store(as_bytes, simd.at(out_group, simd.lanes * v), align=1)
            offset = builder.mul(loop.index, I64(4))
            simd.store(builder.fdiv(peak, F32(127.0)), simd.at(scales, offset))
            for half, total in enumerate(totals):
                half_sum = simd.call(f"llvm.vector.reduce.add.{ints}", I32, total)
                simd.store(half_sum, simd.at(simd.at(sums, builder.add(offset, offset)), 4 * half))
        return context.get_dummy_value()

    return types.void(*[types.int64] * 5), generate
