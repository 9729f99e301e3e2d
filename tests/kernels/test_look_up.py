"""The values of four-bit codes: looked up the same way with and without an instruction for it."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("numba")

from numba import njit, types
from numba.extending import intrinsic

from dia_demo import processor
from dia_demo.kernels import llvm_simd
from dia_demo.kernels.packing import INT4_VALUES

pytestmark = pytest.mark.processor

# own: what the kernels choose on this processor.
INSTRUCTIONS = {
    "own": None,
    "avx2": ("llvm.x86.avx2.pshuf.b", 32),
    "ssse3": ("llvm.x86.ssse3.pshuf.b.128", 16),
    "none": ("", 16),
}


@pytest.mark.parametrize("lanes", [8, 16])
@pytest.mark.parametrize("name", INSTRUCTIONS)
def test_every_code_has_its_value(name, lanes, monkeypatch):
    # Every x86-64 processor with AVX2 has SSSE3, which the override does not list.
    features = processor.features()
    present = {*features, "ssse3" if "avx2" in features else "", "none", "own"}
    if name not in present:
        pytest.skip(f"this processor has no {name}")
    if name != "own":
        monkeypatch.setattr(llvm_simd, "look_up_instruction", lambda _: INSTRUCTIONS[name])

    @intrinsic
    def look_up(context, codes, out):
        def generate(context, builder, _signature, arguments):
            simd = llvm_simd.SimdBuilder(builder, lanes)
            values = simd.look_up(simd.load(arguments[0], simd.ints, align=1), INT4_VALUES)
            simd.store(values, arguments[1], align=1)
            return context.get_dummy_value()

        return types.void(codes, out), generate

    @njit("void(int64, int64)")
    def run(codes, out):
        look_up(codes, out)

    codes = np.random.default_rng(0).permutation(np.arange(4 * lanes) % 16).astype(np.uint8)
    out = np.zeros(4 * lanes, np.int8)
    run(codes.ctypes.data, out.ctypes.data)
    assert out.tolist() == [INT4_VALUES[code] for code in codes]
