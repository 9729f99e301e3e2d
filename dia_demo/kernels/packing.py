"""The five formats of a linear's blocks, shared by model/packed_linear.py and the kernels.

A linear [N, K] is cut into blocks of BLOCK outputs, each read from front to back once a step. The
outputs are side by side, so that a vector's lanes are outputs and nothing is added across lanes.
The order in memory is the same on every processor:

    FLOAT32             [K][BLOCK]
    BFLOAT16            [K / 2][BLOCK][2]; if K is odd, the last pairs end with a zero
    INT8                [K / 4][BLOCK][4] bytes: the weight + 128; then BLOCK float32 scales
    INT4                for every GROUP inputs: [2][BLOCK] int8 scales, one for each half of the
                        group; then [GROUP / 8][BLOCK][4] bytes: the low nibble is the code of the
                        first four of eight inputs, the high nibble that of the last four; after
                        all groups BLOCK float32 scales
    INT5                as INT4, but each half of a group is [BLOCK / 16][5][16][4] bytes: the low
                        five bits of byte 0 to 4 are the inputs 0 to 19, four each, and the high
                        three bits of all of them the inputs 20 to 31 (matmul/five_bits.py)

A weight of INT4 is INT4_VALUES[code] * the scale of its half of a group * the scale of its output.
A weight of INT5 is its code - INT5_ZERO, times the same scales. In the integer formats K is padded
to a multiple of GROUP with weights of zero. Needs no numba.
"""

from __future__ import annotations

BLOCK, GROUP = 64, 64
FLOAT32, BFLOAT16, INT8, INT4, INT5 = range(5)
# The weights of INT4's codes: closer together near zero, where most weights are. They span no more
# than 64, so that AVX2 can add four products with them in an int16.
INT4_VALUES = (-32, -26, -21, -17, -13, -9, -6, -3, 0, 3, 6, 9, 13, 17, 22, 28)
HALF = GROUP // 2  # The inputs that share a scale of INT4.
# Bytes of one group of inputs of a block.
INT8_GROUP = GROUP * BLOCK
INT4_GROUP = 2 * BLOCK + GROUP * BLOCK // 2
INT5_ZERO, INT5_HALF = 16, BLOCK * HALF * 5 // 8
INT5_GROUP = 2 * BLOCK + 2 * INT5_HALF
# The parts of the last three of eight INT5 codes: in which of five words, how far to the left of
# their place, and which bits of the code.
INT5_PARTS = (
    ((0, 3, 0x1C), (3, 5, 0x03)),
    ((1, 3, 0x1C), (3, 7, 0x01), (4, 6, 0x02)),
    ((2, 3, 0x1C), (4, 5, 0x03)),
)


def padded_size(count: int) -> int:
    """`count` rounded up to whole blocks or groups, which have the same length."""
    return (count + GROUP - 1) // GROUP * GROUP


def block_bytes(format: int, inputs: int) -> int:
    """Bytes of one block of a linear."""
    if format == FLOAT32:
        return 4 * BLOCK * inputs
    if format == BFLOAT16:
        return 2 * BLOCK * (inputs + inputs % 2)
    groups = (inputs + GROUP - 1) // GROUP
    size = INT8_GROUP if format == INT8 else INT4_GROUP if format == INT4 else INT5_GROUP
    return groups * size + 4 * BLOCK
