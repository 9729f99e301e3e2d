"""SIMD operations in LLVM IR: what the microkernels are written with."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from llvmlite import ir
from numba.core import cgutils

from dia_demo.kernels.packing import BFLOAT16, FLOAT32
from dia_demo.machine import processor

BYTE, I16, I32, I64, F32 = (*(ir.IntType(bits) for bits in (8, 16, 32, 64)), ir.FloatType())
# 1.5 * 2^23: adding it to a float32 within 2^22 leaves the nearest integer, ties to even, in the
# lowest bits.
ROUNDER, ROUNDER_AS_INT = 12582912.0, 0x4B400000
NEAREST_CACHE, NEXT_CACHE = 3, 2  # LLVM's localities of a prefetch


class BFloat(ir.Type):
    """LLVM's bfloat, which llvmlite does not define: the type of a dot product's operands."""

    def _to_string(self) -> str:
        return "bfloat"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BFloat)

    def __hash__(self) -> int:
        return hash(BFloat)


def dot_lanes(format: int) -> int:
    """32-bit lanes of this processor's dot product for a format: 16, 8 or, without one, 0.

    A lane has four bytes (vpdpbusd, or vpmaddubsw with vpmaddwd) or two bfloat16 (vdpbf16ps).
    """
    if format == FLOAT32:
        return 0
    if format == BFLOAT16:
        return 16 if "avx512bf16" in processor.features() else 0
    return processor.byte_product_lanes()


def look_up_instruction(count: int) -> tuple[str, int]:
    """The processor's look-up in a table of 16 bytes, and for how many of `count` bytes at once.

    ("", 16) without an instruction.

    The table is the first operand, once for every 16 bytes.
    """
    features = processor.features()
    if "avx512bw" in features and count >= 64:
        return "llvm.x86.avx512.pshuf.b.512", 64
    if "avx2" in features:
        return "llvm.x86.avx2.pshuf.b", 32
    if "ssse3" in features:
        return "llvm.x86.ssse3.pshuf.b.128", 16
    return ("llvm.aarch64.neon.tbl1.v16i8" if processor.is_arm64() else "", 16)


class SimdBuilder:
    """Operations on vectors of `lanes` numbers. Addresses are int64, offsets in bytes.

    LLVM splits vectors that are wider than the processor's. Only the dot products of bytes and of
    bfloat16 are tied to instructions.
    """

    def __init__(self, builder: ir.IRBuilder, lanes: int = 16) -> None:
        self.builder, self.lanes = builder, lanes
        self.floats = ir.VectorType(F32, lanes)
        self.ints = ir.VectorType(I32, lanes)
        self.shorts = ir.VectorType(I16, 2 * lanes)
        self._align_stack()

    def _align_stack(self) -> None:
        """Align the function's stack to whole vectors: a vector that LLVM moves from a register to
        the stack would otherwise lie in two cache lines. A variable makes it do so that needs the
        alignment and that it cannot remove.
        """
        with self.builder.goto_entry_block():
            variable = self.builder.alloca(self.floats)
            variable.align = 4 * self.lanes
            kind = ir.FunctionType(ir.VoidType(), [variable.type])
            self.builder.asm(kind, "", "r", [variable], side_effect=True)

    def call(self, name: str, result: ir.Type, *arguments: ir.Value) -> ir.Value:
        kind = ir.FunctionType(result, [argument.type for argument in arguments])
        return self.builder.call(
            cgutils.get_or_insert_function(self.builder.module, kind, name), arguments
        )

    def at(self, address: ir.Value, offset: ir.Value | int) -> ir.Value:
        offset = I64(offset) if isinstance(offset, int) else offset
        return self.builder.add(address, offset)

    def row(self, address: ir.Value, stride: ir.Value, row: int) -> ir.Value:
        return self.at(address, self.builder.mul(stride, I64(row)))

    def load(self, address: ir.Value, kind: ir.Type, align: int = 4) -> ir.Value:
        pointer = self.builder.inttoptr(address, kind.as_pointer())
        return self.builder.load(pointer, align=align)

    def store(self, value: ir.Value, address: ir.Value, align: int = 4) -> None:
        pointer = self.builder.inttoptr(address, value.type.as_pointer())
        self.builder.store(value, pointer, align=align)

    def prefetch(self, address: ir.Value, cache: int = NEAREST_CACHE) -> None:
        """Prefetch the cache line of an address, which need not be valid."""
        pointer = self.builder.inttoptr(address, BYTE.as_pointer())
        self.call("llvm.prefetch.p0", ir.VoidType(), pointer, I32(0), I32(cache), I32(1))

    def keep_order(self) -> None:
        """Keep loads and prefetches on their side of this place.

        LLVM would put all prefetches of a loop before its first load, which then waits for them.
        """
        kind = ir.FunctionType(ir.VoidType(), [])
        self.builder.asm(kind, "", "~{memory}", [], side_effect=True)

    def opaque(self, value: ir.Value) -> ir.Value:
        """The same value, unknown to LLVM: a loop of so many iterations is not unrolled."""
        kind = ir.FunctionType(value.type, [value.type])
        return self.builder.asm(kind, "", "=r,0", [value], side_effect=False)

    def splat(self, scalar: ir.Value) -> ir.Value:
        kind = ir.VectorType(scalar.type, self.lanes)
        undefined = ir.Constant(kind, ir.Undefined)
        first = self.builder.insert_element(undefined, scalar, I32(0))
        mask = ir.Constant(ir.VectorType(I32, self.lanes), [0] * self.lanes)
        return self.builder.shuffle_vector(first, undefined, mask)

    def broadcast(self, address: ir.Value, kind: ir.Type) -> ir.Value:
        """Load one number into every lane."""
        return self.splat(self.load(address, kind))

    def int_constant(self, value: int) -> ir.Value:
        return ir.Constant(self.ints, [value] * self.lanes)

    def zeros(self) -> ir.Value:
        return ir.Constant(self.floats, [0.0] * self.lanes)

    def fma(self, a: ir.Value, b: ir.Value, c: ir.Value) -> ir.Value:
        return self.call(f"llvm.fmuladd.v{self.lanes}f32", self.floats, a, b, c)

    def load_floats(self, address: ir.Value) -> ir.Value:
        return self.load(address, self.floats)

    def as_floats(self, ints: ir.Value) -> ir.Value:
        return self.builder.bitcast(ints, self.floats)

    def unpack_bfloats(self, pairs: ir.Value) -> tuple[ir.Value, ir.Value]:
        """The lower and the upper bfloat16 of every 32-bit lane, as float32."""
        lower = self.builder.shl(pairs, self.int_constant(16))
        upper = self.builder.and_(pairs, self.int_constant(-0x10000))
        return self.as_floats(lower), self.as_floats(upper)

    def load_bfloats(self, address: ir.Value) -> ir.Value:
        """Load bfloat16, which is the upper 16 bits of a float32, as float32."""
        bits = self.load(address, ir.VectorType(I16, self.lanes), align=2)
        wide = self.builder.shl(self.builder.zext(bits, self.ints), self.int_constant(16))
        return self.as_floats(wide)

    def load_bytes(self, address: ir.Value) -> ir.Value:
        """Load a signed byte for each lane."""
        return self.load(address, ir.VectorType(BYTE, self.lanes), align=1)

    def byte_of_lanes(self, ints: ir.Value, byte: int) -> ir.Value:
        """A signed byte of every lane, as int32."""
        top = self.builder.shl(ints, self.int_constant(24 - 8 * byte))
        return self.builder.ashr(top, self.int_constant(24))

    def sum_lanes(self, vectors: Sequence[ir.Value]) -> ir.Value:
        """A vector of the sums of all lanes of each of 1, 2, 4, 8... vectors.

        The halves of a vector are added, then the halves of that, as LLVM adds the lanes of one
        vector. Two vectors share each addition, in the halves of its result.
        """
        parts, width = list(vectors), self.lanes  # Lanes of a part that belong to one vector.
        while len(parts) > 1 or width > 1:
            others = parts[1::2] or [None]  # The last part is added to itself.
            pairs = list(zip(parts[::2], others, strict=True))
            lanes = range(parts[0].type.count * min(len(parts), 2))
            if width > 1:
                width //= 2
                lower = [lane for lane in lanes if lane // width % 2 == 0]
                upper = [lane + width for lane in lower]
                parts = [
                    self.builder.fadd(self.shuffle(a, lower, b), self.shuffle(a, upper, b))
                    for a, b in pairs
                ]
            else:
                parts = [self.shuffle(a, lanes, b) for a, b in pairs]
        return parts[0]

    def to_floats(self, ints: ir.Value) -> ir.Value:
        return self.builder.sitofp(ints, self.floats)

    def abs_bits(self, floats: ir.Value) -> ir.Value:
        """The bits of the absolute values."""
        return self.builder.and_(
            self.builder.bitcast(floats, self.ints), self.int_constant(0x7FFFFFFF)
        )

    def round_to_int(self, floats: ir.Value) -> ir.Value:
        """Round floats within 2^22 to int32, ties to even. NaN and infinity give any number."""
        lifted = self.builder.fadd(floats, self.splat(F32(ROUNDER)))
        bits = self.builder.bitcast(lifted, self.ints)
        return self.builder.sub(bits, self.int_constant(ROUNDER_AS_INT))

    def dot(self, sums: ir.Value, unsigned: ir.Value, signed: ir.Value) -> ir.Value:
        """sums + the products of four unsigned and four signed bytes, in every int32 lane."""
        name = f"llvm.x86.avx512.vpdpbusd.{32 * self.lanes}"
        return self.call(name, self.ints, sums, unsigned, signed)

    def look_up(self, codes: ir.Value, table: Sequence[int]) -> ir.Value:
        """The bytes of a table of 16 at the codes in all bytes of ints, as ints."""
        builder, count = self.builder, 4 * self.lanes
        codes, (name, width) = self.bitcast_bytes(codes), look_up_instruction(count)
        values = ir.Constant(ir.VectorType(BYTE, width), [*table] * (width // len(table)))
        found = ir.Constant(codes.type, ir.Undefined)
        if not name:
            for i in range(count):
                value = builder.extract_element(values, builder.extract_element(codes, I32(i)))
                found = builder.insert_element(found, value, I32(i))
            return builder.bitcast(found, self.ints)
        parts = []
        for first in range(0, count, width):
            part = self.shuffle(codes, range(first, first + width))
            parts.append(self.call(name, values.type, values, part))
        while len(parts) > 1:
            pairs = zip(parts[::2], parts[1::2], strict=True)
            parts = [self.shuffle(a, range(2 * a.type.count), b) for a, b in pairs]
        return builder.bitcast(parts[0], self.ints)

    def nibbles(self, bytes_: ir.Value) -> tuple[ir.Value, ir.Value]:
        """The low and the high nibble of every byte of ints, as bytes."""
        builder, mask = self.builder, self.int_constant(0x0F0F0F0F)
        upper = builder.lshr(bytes_, self.int_constant(4))
        return builder.and_(bytes_, mask), builder.and_(upper, mask)

    def look_up_nibbles(self, bytes_: ir.Value, table: Sequence[int]) -> list[ir.Value]:
        """The bytes of a table of 16 at the low and at the high nibbles of ints, as ints."""
        if self.lanes < 16 or "avx512vbmi" not in processor.features():
            return [self.look_up(codes, table) for codes in self.nibbles(bytes_)]
        # vpermb looks up in 64 bytes with six bits of an index: four copies of the table make the
        # two bits above a nibble irrelevant.
        values = ir.Constant(ir.VectorType(BYTE, 64), [*table] * 4)
        upper = self.builder.lshr(bytes_, self.int_constant(4))
        found = [
            self.call(
                "llvm.x86.avx512.permvar.qi.512", values.type, values, self.bitcast_bytes(codes)
            )
            for codes in (bytes_, upper)
        ]
        return [self.builder.bitcast(weights, self.ints) for weights in found]

    def shuffle(
        self, vector: ir.Value, lanes: Iterable[int], second: ir.Value | None = None
    ) -> ir.Value:
        """Lanes of a vector, or of a vector with a second one after it."""
        lanes = list(lanes)
        mask = ir.Constant(ir.VectorType(I32, len(lanes)), lanes)
        return self.builder.shuffle_vector(vector, vector if second is None else second, mask)

    def bitcast_bytes(self, ints: ir.Value) -> ir.Value:
        return self.builder.bitcast(ints, ir.VectorType(BYTE, 4 * self.lanes))

    def abs_bytes(self, signed: ir.Value) -> ir.Value:
        """Absolute values of signed bytes."""
        return self.call(f"llvm.abs.v{4 * self.lanes}i8", signed.type, signed, ir.IntType(1)(0))

    def multiply_by_sign(self, values: ir.Value, signs: ir.Value) -> ir.Value:
        """Signed bytes (not -128), negated where `signs` is negative, 0 where it is 0 (vpsignb)."""
        return self.call("llvm.x86.avx2.psign.b", values.type, values, signs)

    def add_byte_pairs(self, unsigned: ir.Value, signed: ir.Value) -> ir.Value:
        """int16 sums of two products of bytes each; they saturate (vpmaddubsw)."""
        return self.call("llvm.x86.avx2.pmadd.ub.sw", self.shorts, unsigned, signed)

    def add_short_pairs(self, shorts: ir.Value, factors: ir.Value | None = None) -> ir.Value:
        """int32 sums of two int16 each, times int16 factors (vpmaddwd)."""
        if factors is None:
            factors = ir.Constant(self.shorts, [1] * (2 * self.lanes))
        return self.call("llvm.x86.avx2.pmadd.wd", self.ints, shorts, factors)

    def sext_pairs(self, first: ir.Value, second: ir.Value) -> ir.Value:
        """Two signed bytes for each lane as the lane's two int16."""
        order = [i // 2 + self.lanes * (i % 2) for i in range(2 * self.lanes)]
        return self.builder.sext(self.shuffle(first, order, second), self.shorts)

    def dot_pairs(self, sums: ir.Value, pairs: ir.Value, others: ir.Value) -> ir.Value:
        """float32 sums + the products of the two bfloat16 in every 32-bit lane."""
        name = f"llvm.x86.avx512bf16.dpbf16ps.{32 * self.lanes}"
        bfloats = ir.VectorType(BFloat(), 2 * self.lanes)
        operands = [self.builder.bitcast(operand, bfloats) for operand in (pairs, others)]
        return self.call(name, self.floats, sums, *operands)

    def variables(self, rows: int, vectors: int, kind: ir.Type) -> list[list[ir.Value]]:
        """[rows][vectors] variables; LLVM keeps as many in registers as fit."""
        return [
            [cgutils.alloca_once(self.builder, kind) for _ in range(vectors)] for _ in range(rows)
        ]

    def fill(self, variables: list[list[ir.Value]], value: ir.Value) -> None:
        for variable in sum(variables, []):
            self.builder.store(value, variable)

    def add_to_memory(self, sums: list[list[ir.Value]], out: ir.Value, stride: ir.Value) -> None:
        """out[row][lane] += sums[row][lane], contiguous in memory."""
        for row, row_sums in enumerate(sums):
            out_row = self.row(out, stride, row)
            for v, variable in enumerate(row_sums):
                address = self.at(out_row, 4 * self.lanes * v)
                total = self.builder.fadd(self.load_floats(address), self.builder.load(variable))
                self.store(total, address)
