"""The codec's activation in one pass over memory: x + sin²(alpha x) / alpha, channels last.

bfloat16 is passed as uint16 and computed in float32. sin² has the period pi and no sign, so a
reduction to [-pi/2, pi/2] and an odd polynomial are enough. Up to |alpha x| = 1e5 the sine is as
exact as alpha x is in float32; far beyond, the phase is lost, as it is in x itself, but sin² stays
within 0..1. NaN and infinity stay non-finite.
"""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from dia_demo.kernels.jit import compiled

# Only fused multiply-add: reassociation would undo the reduction and the rounding.
OPTIONS = {"fastmath": {"contract"}}

ONE = np.float32(1)
PER_PI = np.float32(1 / np.pi)
# pi in three parts, the first two short enough for exact products.
PI_HIGH, PI_MIDDLE = np.float32(3.140625), np.float32(0.0009670257568359375)
PI_LOW = np.float32(np.pi - 3.140625 - 0.0009670257568359375)
HALF_PI = np.float32(np.pi / 2)
# Adding and subtracting 1.5 * 2^23 rounds a float32 to a whole number.
ROUNDER = np.float32(1.5 * 2**23)
S3, S5, S7 = np.float32(-1 / 6), np.float32(1 / 120), np.float32(-1 / 5040)
S9, S11 = np.float32(1 / 362880), np.float32(-1 / 39916800)
HALF_AN_ULP, ODD, UPPER = np.uint32(0x7FFF), np.uint32(1), np.uint32(16)


@intrinsic
def _as_float(_context, bits):
    def build(_target, builder, _signature, arguments):
        return builder.bitcast(arguments[0], ir.FloatType())

    return types.float32(types.uint32), build


@intrinsic
def _as_bits(_context, number):
    def build(_target, builder, _signature, arguments):
        return builder.bitcast(arguments[0], ir.IntType(32))

    return types.uint32(types.float32), build


@compiled(inline="always", **OPTIONS)
def _snake(x, alpha, per_alpha):
    angle = alpha * x
    turns = (angle * PER_PI + ROUNDER) - ROUNDER
    reduced = ((angle - turns * PI_HIGH) - turns * PI_MIDDLE) - turns * PI_LOW
    reduced = min(max(reduced, -HALF_PI), HALF_PI)
    square = reduced * reduced
    odd = square * (S3 + square * (S5 + square * (S7 + square * (S9 + square * S11))))
    sine = reduced + reduced * odd
    return x + per_alpha * (sine * sine)


@compiled(inline="always", **OPTIONS)
def _snake_bits(bits, alpha, per_alpha):
    x = _as_float(np.uint32(bits) << UPPER)
    result = _as_bits(_snake(x, alpha, per_alpha))
    return np.uint16((result + HALF_AN_ULP + ((result >> UPPER) & ODD)) >> UPPER)


@compiled(**OPTIONS)
def snake_float32(x_TC, alpha_C, per_alpha_C, out_TC):
    """out = snake(x), both float32 and not overlapping."""
    for t in range(x_TC.shape[0]):
        for c in range(x_TC.shape[1]):
            out_TC[t, c] = _snake(x_TC[t, c], alpha_C[c], per_alpha_C[c])


@compiled(**OPTIONS)
def snake_float32_inplace(x_TC, alpha_C, per_alpha_C):
    """`snake_float32` in place: LLVM vectorizes the other only for arrays that do not overlap."""
    for t in range(x_TC.shape[0]):
        for c in range(x_TC.shape[1]):
            x_TC[t, c] = _snake(x_TC[t, c], alpha_C[c], per_alpha_C[c])


@compiled(**OPTIONS)
def snake_bfloat16(x_TC, alpha_C, per_alpha_C, out_TC):
    """`snake_float32` for the bits of bfloat16 in uint16."""
    for t in range(x_TC.shape[0]):
        for c in range(x_TC.shape[1]):
            out_TC[t, c] = _snake_bits(x_TC[t, c], alpha_C[c], per_alpha_C[c])


@compiled(**OPTIONS)
def snake_bfloat16_inplace(x_TC, alpha_C, per_alpha_C):
    """`snake_bfloat16` in place."""
    for t in range(x_TC.shape[0]):
        for c in range(x_TC.shape[1]):
            x_TC[t, c] = _snake_bits(x_TC[t, c], alpha_C[c], per_alpha_C[c])
