"""The values of four-bit codes: looked up the same way with and without an instruction for it."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("numba")

import llvmlite.binding as llvm
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

from dia_demo.kernels import llvm_simd
from dia_demo.kernels.packing import INT4_VALUES
from dia_demo.machine import processor

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


@pytest.mark.parametrize("lanes", [8, 16])
@pytest.mark.parametrize("has_vbmi", [True, False])
def test_both_nibbles_of_every_byte_have_their_values(lanes, has_vbmi, monkeypatch):
    """vpermb also sees the two bits above a nibble."""
    features = processor.features()
    if has_vbmi and "avx512vbmi" not in features:
        pytest.skip("this processor has no AVX-512 VBMI")
    if not has_vbmi:
        monkeypatch.setattr(processor, "features", lambda: features - {"avx512vbmi"})

    @intrinsic
    def look_up(context, bytes_, out):
        def generate(context, builder, _signature, arguments):
            simd = llvm_simd.SimdBuilder(builder, lanes)
            codes = simd.load(arguments[0], simd.ints, align=1)
            for part, values in enumerate(simd.look_up_nibbles(codes, INT4_VALUES)):
                simd.store(values, simd.at(arguments[1], 4 * lanes * part), align=1)
            return context.get_dummy_value()

        return types.void(bytes_, out), generate

    @njit("void(int64, int64)")
    def run(bytes_, out):
        look_up(bytes_, out)

    bytes_ = np.random.default_rng(0).permutation(256).astype(np.uint8).reshape(-1, 4 * lanes)
    for row in bytes_:
        out = np.zeros((2, 4 * lanes), np.int8)
        run(row.ctypes.data, out.ctypes.data)
        assert out.tolist() == [
            [INT4_VALUES[code] for code in part] for part in (row & 15, row >> 4)
        ]


def test_arm64_looks_up_with_one_instruction_for_16_bytes(monkeypatch):
    """Compiled for it, not run: four registers for 64 bytes."""
    monkeypatch.setattr(processor, "features", lambda: frozenset({"neon"}))
    monkeypatch.setattr(processor, "is_arm64", lambda: True)
    module = ir.Module()
    module.triple = "aarch64-unknown-linux-gnu"
    kind = ir.FunctionType(ir.VoidType(), [ir.IntType(64)] * 2)
    function = ir.Function(module, kind, "look_up")
    builder = ir.IRBuilder(function.append_basic_block())
    simd = llvm_simd.SimdBuilder(builder, 16)
    codes, out = function.args
    simd.store(simd.look_up(simd.load(codes, simd.ints), INT4_VALUES), out)
    builder.ret_void()
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    try:
        target = llvm.Target.from_triple(module.triple)
    except RuntimeError as reason:
        pytest.skip(f"this LLVM cannot compile for it: {reason}")
    machine = target.create_target_machine(cpu="cortex-a76", opt=3)
    assembly = machine.emit_assembly(llvm.parse_assembly(str(module)))
    assert assembly.count("tbl\t") == 4
