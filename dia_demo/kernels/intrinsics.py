"""Scalar functions that LLVM can vectorize (exp, bfloat16), sums, pointers, atomics, a barrier."""

from __future__ import annotations

import math

import llvmlite.binding as llvm
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, overload

from dia_demo.kernels.jit import ANY_ORDER, compiled
from dia_demo.kernels.llvm_simd import F32, I16, I32, I64, ROUNDER, ROUNDER_AS_INT
from dia_demo.kernels.thread_pool import BROKEN

# exp(x) = 2^n * exp(r), |r| <= ln(2) / 2: the Taylor series to r^6 / 6! has an error of 1e-7.
EXP_TERMS = [1 / math.factorial(power) for power in range(6, -1, -1)]
# Checks of a waiting thread before it yields its core.
SPINS = 2000


def _round_to_int(builder, number):
    """int32 of a whole float32 within 2^22. NaN and infinity give any number.

    They are undefined in LLVM's own conversion, and its saturating one is slow.
    """
    lifted = builder.fadd(number, F32(ROUNDER))
    return builder.sub(builder.bitcast(lifted, I32), I32(ROUNDER_AS_INT))


@intrinsic
def exp(context, x):
    """exp of the float32 x, clamped to -87.3..88, with a relative error of 2e-7; NaN gives NaN."""

    def generate(context, builder, _signature, arguments):
        def call(name, *values):
            kind = ir.FunctionType(F32, [F32] * len(values))
            function = cgutils.get_or_insert_function(builder.module, kind, f"llvm.{name}.f32")
            return builder.call(function, values)

        x = call("minimum", call("maximum", arguments[0], F32(-87.3)), F32(88.0))
        power = call("floor", call("fmuladd", x, F32(1 / math.log(2)), F32(0.5)))
        # ln(2) in two parts, so that the remainder is exact.
        rest = call("fmuladd", power, F32(-0.693359375), x)
        rest = call("fmuladd", power, F32(2.12194440e-4), rest)
        result = F32(EXP_TERMS[0])
        for term in EXP_TERMS[1:]:
            result = call("fmuladd", result, rest, F32(term))
        exponent = builder.add(_round_to_int(builder, power), I32(127))
        scale = builder.bitcast(builder.shl(exponent, I32(23)), F32)
        # NaN passes through the polynomial; its exponent is any number.
        return builder.fmul(result, scale)

    return types.float32(types.float32), generate


@compiled(fastmath=ANY_ORDER, forceinline=True)
def sum_of_squares(x, middle):
    """The sum of (x - middle)^2."""
    total = np.float32(0)
    for i in range(len(x)):
        total += (x[i] - middle) * (x[i] - middle)
    return total


@intrinsic
def _widen(context, bits):
    def generate(context, builder, _signature, arguments):
        wide = builder.shl(builder.zext(arguments[0], I32), I32(16))
        return builder.bitcast(wide, F32)

    return types.float32(types.uint16), generate


@intrinsic
def _narrow(context, number):
    """Round to the nearest bfloat16, ties to even."""

    def generate(context, builder, _signature, arguments):
        bits = builder.bitcast(arguments[0], I32)
        odd = builder.and_(builder.lshr(bits, I32(16)), I32(1))
        rounded = builder.add(bits, builder.add(odd, I32(0x7FFF)))
        return builder.trunc(builder.lshr(rounded, I32(16)), I16)

    return types.uint16(types.float32), generate


def to_float32(number):
    """A float32, or the bits of a bfloat16 (uint16), as float32."""


@overload(to_float32, inline="always")
def _to_float32(number):
    if number == types.uint16:
        return lambda number: _widen(number)
    return lambda number: number


def cast_like(like, number):
    """A float32 as the type of `like`: float32, or the bits of a bfloat16 (uint16)."""


@overload(cast_like, inline="always")
def _cast_like(like, number):
    if like == types.uint16:
        return lambda like, number: _narrow(number)
    return lambda like, number: number


def _pointer(kind):
    @intrinsic
    def pointer(context, address):
        def generate(context, builder, signature, arguments):
            return builder.inttoptr(arguments[0], context.get_value_type(signature.return_type))

        return types.CPointer(kind)(types.int64), generate

    return pointer


float32_at = _pointer(types.float32)
bfloat16_at = _pointer(types.uint16)
int64_at = _pointer(types.int64)


@intrinsic
def call(context, address, arguments):
    """Call the function at an address (jit.address_of) with a tuple of int64."""

    def generate(context, builder, signature, values):
        parts = cgutils.unpack_tuple(builder, values[1], len(signature.args[1]))
        kind = ir.FunctionType(context.get_value_type(types.none), [I64] * len(parts))
        builder.call(builder.inttoptr(values[0], kind.as_pointer()), parts)
        return context.get_dummy_value()

    return types.void(address, arguments), generate


@intrinsic
def fetch_add(context, counter):
    """Atomically add 1 to the int64 at an address; returns its previous value."""

    def generate(context, builder, _signature, arguments):
        pointer = builder.inttoptr(arguments[0], I64.as_pointer())
        return builder.atomic_rmw("add", pointer, I64(1), "monotonic")

    return types.int64(types.int64), generate


@intrinsic
def barrier_wait(context, barrier, threads, yield_core):
    """Wait until all of `threads` threads have arrived, or the barrier is broken (thread_pool.py).

    barrier: address of three int64, zero at first: threads that have arrived, completed rounds, and
    whether the barrier is broken. yield_core: address of a function without arguments that gives
    the core to another thread.
    """

    def generate(context, builder, _signature, arguments):
        barrier, threads, yield_core = arguments
        arrived = builder.inttoptr(barrier, I64.as_pointer())
        rounds = builder.inttoptr(builder.add(barrier, I64(8)), I64.as_pointer())
        broken = builder.inttoptr(builder.add(barrier, I64(8 * BROKEN)), I64.as_pointer())
        with builder.if_then(builder.icmp_signed(">", threads, I64(1))):
            round_now = builder.load_atomic(rounds, "acquire", 8)
            before = builder.atomic_rmw("add", arrived, I64(1), "acq_rel")
            last = builder.icmp_signed("==", before, builder.sub(threads, I64(1)))
            with builder.if_else(last) as (is_last, must_wait):
                with is_last:
                    builder.store_atomic(I64(0), arrived, "monotonic", 8)
                    next_round = builder.add(round_now, I64(1))
                    builder.store_atomic(next_round, rounds, "release", 8)
                with must_wait:
                    _spin(builder, rounds, round_now, broken, yield_core)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), generate


def _spin(builder, rounds, round_now, broken, yield_core) -> None:
    """Check repeatedly; after SPINS checks, yield the core after each further one."""
    checks = cgutils.alloca_once_value(builder, I64(0))
    check, done = builder.append_basic_block("check"), builder.append_basic_block("done")
    wait, give_core = builder.append_basic_block("wait"), builder.append_basic_block("give_core")
    builder.branch(check)
    builder.position_at_end(check)
    same = builder.icmp_signed("==", builder.load_atomic(rounds, "acquire", 8), round_now)
    intact = builder.icmp_signed("==", builder.load_atomic(broken, "acquire", 8), I64(0))
    builder.cbranch(builder.and_(same, intact), wait, done)
    builder.position_at_end(wait)
    count = builder.add(builder.load(checks), I64(1))
    builder.store(count, checks)
    _pause(builder)
    builder.cbranch(builder.icmp_signed(">", count, I64(SPINS)), give_core, check)
    builder.position_at_end(give_core)
    function = builder.inttoptr(yield_core, ir.FunctionType(I32, []).as_pointer())
    builder.call(function, [])
    builder.branch(check)
    builder.position_at_end(done)


def _pause(builder) -> None:
    """Tell the processor that this is a spin loop."""
    machine = llvm.get_process_triple().split("-")[0]
    if machine in ("x86_64", "i686", "amd64"):
        kind = ir.FunctionType(ir.VoidType(), [])
        builder.call(
            cgutils.get_or_insert_function(builder.module, kind, "llvm.x86.sse2.pause"), []
        )
    elif machine.startswith(("aarch64", "arm64")):
        kind = ir.FunctionType(ir.VoidType(), [I32])
        name = "llvm.aarch64.hint"
        builder.call(cgutils.get_or_insert_function(builder.module, kind, name), [I32(1)])
