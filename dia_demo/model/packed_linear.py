"""Linears as blocks of weights in five precisions, in the order that the compiled step reads.

The order (see kernels/packing.py) is the same on every processor, so that packed weights can be
stored. int8 has one scale per output; int4 and int5 have one per HALF inputs of an output as well,
the one of a few candidates with the smallest error.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from dia_demo.kernels.packing import (
    BFLOAT16,
    BLOCK,
    FLOAT32,
    GROUP,
    HALF,
    INT4,
    INT4_GROUP,
    INT4_VALUES,
    INT5,
    INT5_GROUP,
    INT5_PARTS,
    INT5_ZERO,
    INT8,
    block_bytes,
    padded_size,
)

FORMATS = {"float32": FLOAT32, "bfloat16": BFLOAT16, "int8": INT8, "int4": INT4, "int5": INT5}
# Candidate scales of HALF int4 weights, relative to the one that represents the largest of them.
CANDIDATES = (1.1, 1.05, 1.0, 0.96, 0.92, 0.88, 0.84, 0.8, 0.76, 0.72)
_VALUES = torch.tensor(INT4_VALUES, dtype=torch.float32)
# The nearest code, and its value, in each interval of one half from -32 on: a look-up by number is
# twenty times as fast as torch.bucketize.
_HALVES = torch.arange(-64, 64) / 2 + 0.25
_NEAREST_CODE = (_HALVES.unsqueeze(1) - _VALUES).abs().argmin(1).to(torch.uint8)
_NEAREST_VALUE = _VALUES[_NEAREST_CODE.int()]
# Outputs that are packed, and unpacked, at once, which bounds the temporary memory.
PACKED_AT_ONCE, UNPACKED_AT_ONCE = 256, 1024


class PackedLinear(nn.Module):
    """A linear without bias whose weights are stored in blocks.

    blocks: uint8 [blocks of outputs, bytes of a block]. `forward` is for many positions at once, as
    in a prefill. It multiplies with `many_rows` if that is set (CompiledStep.multiply_prefills),
    else by torch in the precision of its input. Single steps read `blocks` directly.
    """

    def __init__(self, blocks: Tensor, precision: str, outputs: int, inputs: int) -> None:
        super().__init__()
        self.blocks: Tensor
        self.register_buffer("blocks", blocks, persistent=False)
        self.precision, self.outputs, self.inputs = precision, outputs, inputs
        self.many_rows: Callable[[PackedLinear, Tensor], Tensor] | None = None

    @classmethod
    def from_weight(cls, weight_NK: Tensor, precision: str) -> PackedLinear:
        """Pack a weight [outputs, inputs] of any floating-point type."""
        outputs, inputs = weight_NK.shape
        whole, size = padded_size(outputs), block_bytes(FORMATS[precision], inputs)
        blocks = torch.empty((whole // BLOCK, size), dtype=torch.uint8)
        for first in range(0, whole, PACKED_AT_ONCE):
            part = weight_NK[first : first + PACKED_AT_ONCE]
            missing = padded_size(len(part)) - len(part)
            part = nn.functional.pad(part, (0, 0, 0, missing)).contiguous()
            packed = _PACK[precision](part)
            blocks[first // BLOCK : first // BLOCK + len(packed)] = packed
        return cls(blocks, precision, outputs, inputs)

    @property
    def format(self) -> int:
        """The format's number in kernels/packing.py."""
        return FORMATS[self.precision]

    @property
    def nbytes(self) -> int:
        return self.blocks.nbytes

    def weights(self, dtype: torch.dtype, first: int = 0, last: int | None = None) -> Tensor:
        """Blocks first..last as [blocks, inputs, BLOCK] of a floating-point type."""
        return _UNPACK[self.precision](self.blocks[first:last], self.inputs, dtype)

    def dense(self, dtype: torch.dtype) -> Tensor:
        """The weights as stored, as [outputs, inputs] of a floating-point type."""
        flat = self.weights(dtype).transpose(1, 2).flatten(0, 1)
        return flat[: self.outputs, : self.inputs]

    def forward(self, x: Tensor) -> Tensor:
        flat = x.reshape(-1, self.inputs)
        out = (
            self._multiply_unpacked(flat) if self.many_rows is None else self.many_rows(self, flat)
        )
        return out.to(x.dtype).reshape(*x.shape[:-1], self.outputs)

    def _multiply_unpacked(self, x: Tensor) -> Tensor:
        """The product with x [rows, inputs] by torch, which unpacks the weights of some blocks."""
        out = x.new_empty(len(self.blocks), len(x), BLOCK)
        step = UNPACKED_AT_ONCE // BLOCK
        for first in range(0, len(self.blocks), step):
            weights = self.weights(x.dtype, first, first + step)
            torch.matmul(x, weights, out=out[first : first + step])
        return out.transpose(0, 1).reshape(len(x), -1)[:, : self.outputs]


def _pack_dense(dtype: torch.dtype, together: int):
    """together: how many inputs of an output are adjacent."""

    def pack(weight_NK: Tensor) -> Tensor:
        weight_NK = nn.functional.pad(weight_NK.to(dtype), (0, -weight_NK.shape[1] % together))
        ordered = weight_NK.view(len(weight_NK) // BLOCK, BLOCK, -1, together).transpose(1, 2)
        return ordered.reshape(len(ordered), -1).view(torch.uint8)

    return pack


def _unpack_dense(stored: torch.dtype, together: int):
    def unpack(blocks: Tensor, inputs: int, dtype: torch.dtype) -> Tensor:
        ordered = blocks.view(stored).view(len(blocks), -1, BLOCK, together).transpose(2, 3)
        return ordered.reshape(len(blocks), -1, BLOCK)[:, :inputs].to(dtype)

    return unpack


def _group_inputs(weight_NK: Tensor) -> Tensor:
    """float32 [N, groups, GROUP], the inputs padded with zeros."""
    N, K = weight_NK.shape
    return nn.functional.pad(weight_NK.float(), (0, -K % GROUP)).view(N, -1, GROUP)


def _pack_int8(weight_NK: Tensor) -> Tensor:
    """Round to the nearest of 255 steps; the largest weight of an output becomes 127."""
    grouped = _group_inputs(weight_NK)
    N, groups, _ = grouped.shape
    scale = grouped.abs().amax((1, 2)).div_(127).clamp_(min=1e-30)
    numbers = grouped.div_(scale.view(N, 1, 1)).round_().add_(128).to(torch.uint8)
    ordered = numbers.view(N // BLOCK, BLOCK, groups * GROUP // 4, 4).transpose(1, 2)
    bytes_ = ordered.reshape(N // BLOCK, -1)
    return torch.cat((bytes_, scale.view(N // BLOCK, BLOCK).view(torch.uint8)), dim=1)


def _unpack_int8(blocks: Tensor, inputs: int, dtype: torch.dtype) -> Tensor:
    count = len(blocks)
    numbers, scale = blocks[:, : -4 * BLOCK], blocks[:, -4 * BLOCK :]
    weights = numbers.reshape(count, -1, BLOCK, 4).transpose(2, 3).reshape(count, -1, BLOCK)
    weights = weights[:, :inputs].to(dtype).sub_(128)
    return weights.mul_(scale.contiguous().view(torch.float32).unsqueeze(1).to(dtype))


@dataclass(frozen=True)
class Grid:
    """The values of a format with a scale for every HALF inputs.

    least: the value of the largest magnitude. nearest: the nearest value to each weight over its
    scales, float32. blocks: see `int4_blocks`.
    """

    precision: str
    least: float
    nearest: Callable[[Tensor], Tensor]
    blocks: Callable[[Tensor, Tensor, Tensor], Tensor]

    def pack(self, weight_NK: Tensor) -> Tensor:
        """Round to the nearest value, each weight by itself (GPTQ: calibration/gptq.py)."""
        halves = _group_inputs(weight_NK).view(len(weight_NK), -1, HALF)
        output_scale = self.output_scales(halves)
        scale = self.scales(halves, output_scale)
        values = self.nearest(halves / (scale * output_scale))
        return self.blocks(values, scale, output_scale)

    def output_scales(self, halves: Tensor) -> Tensor:
        """The scales [N, 1, 1] of outputs with weights [N, halves, HALF]: every candidate fits
        int8."""
        largest = halves.abs().amax((1, 2), keepdim=True)
        return largest.mul_(CANDIDATES[0] / (127 * abs(self.least))).clamp_(min=1e-30)

    def scales(
        self, halves: Tensor, output_scale: Tensor, importance: Tensor | None = None
    ) -> Tensor:
        """The scales [N, halves, 1] of weights [N, halves, HALF] with the least squared errors.

        They are whole numbers that fit int8, as float32. One may be negative, so that the side of
        the largest weight has the larger values. importance: how much the error of each of the HALF
        weights counts, the same if left out.
        """
        largest = halves.gather(2, halves.abs().argmax(2, keepdim=True))
        scale, least_error = None, None
        for candidate in CANDIDATES:
            tried = rounded_scale(largest * (candidate / self.least) / output_scale)
            step = tried * output_scale
            error = self.nearest(halves / step).mul_(step).sub_(halves).square_()
            if importance is not None:
                error.mul_(importance)
            error = error.sum(2, keepdim=True)
            if scale is None or least_error is None:
                scale, least_error = tried, error
                continue
            is_better = error < least_error
            scale = torch.where(is_better, tried, scale)
            least_error = torch.where(is_better, error, least_error)
        assert scale is not None
        return scale


def rounded_scale(scale: Tensor) -> Tensor:
    """The nearest scale that can be stored, float32; never 0."""
    rounded = scale.round().clamp_(-127, 127)
    return torch.where(rounded == 0, 1.0, rounded)


def int4_values(weights: Tensor) -> Tensor:
    """The nearest of INT4_VALUES to each weight over its scales, float32."""
    return _look_up_nearest(_NEAREST_VALUE, weights)


def _look_up_nearest(table: Tensor, weights: Tensor) -> Tensor:
    places = weights.mul(2).add_(64).clamp_(0, 127).to(torch.int32)
    return table.index_select(0, places.flatten()).view(weights.shape)


def int4_blocks(values: Tensor, scale: Tensor, output_scale: Tensor) -> Tensor:
    """Blocks of values [N, halves, HALF] with their scales [N, halves, 1] and [N, 1, 1]; N in whole
    blocks."""
    count, groups = len(values) // BLOCK, values.shape[1] // 2
    codes = _look_up_nearest(_NEAREST_CODE, values).view(count, BLOCK, groups, GROUP // 8, 2, 4)
    joined = codes[..., 0, :] | (codes[..., 1, :] << 4)
    bytes_ = joined.permute(0, 2, 3, 1, 4).reshape(count, groups, -1)
    return _with_scales(bytes_, scale, output_scale)


def _with_scales(bytes_: Tensor, scale: Tensor, output_scale: Tensor) -> Tensor:
    """Blocks of the bytes of groups [blocks, groups, bytes] with the scales of their halves."""
    count, groups, _ = bytes_.shape
    scales = scale.view(count, BLOCK, groups, 2).permute(0, 2, 3, 1).to(torch.int8)
    scales = scales.reshape(count, groups, -1).view(torch.uint8)
    by_group = torch.cat((scales, bytes_), dim=2).view(count, -1)
    return torch.cat((by_group, output_scale.view(count, BLOCK).view(torch.uint8)), dim=1)


def _split_scales(blocks: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """The bytes of groups of `size` bytes, and the scales [blocks, groups, 2, 1, BLOCK]."""
    count = len(blocks)
    by_group = blocks[:, : -4 * BLOCK].reshape(count, -1, size)
    output_scale = blocks[:, -4 * BLOCK :].contiguous().view(torch.float32)
    scale = by_group[:, :, : 2 * BLOCK].contiguous().view(torch.int8).view(count, -1, 2, 1, BLOCK)
    return by_group[:, :, 2 * BLOCK :], scale * output_scale.view(count, 1, 1, 1, BLOCK)


def _unpack_int4(blocks: Tensor, inputs: int, dtype: torch.dtype) -> Tensor:
    count = len(blocks)
    bytes_, scale = _split_scales(blocks, INT4_GROUP)
    bytes_ = bytes_.reshape(count, -1, GROUP // 8, BLOCK, 4)
    codes = torch.stack((bytes_ & 15, bytes_ >> 4), dim=3)  # [.., 8 inputs, 2, BLOCK, 4]
    codes = codes.transpose(4, 5).reshape(count, -1, 2, HALF, BLOCK)
    values = _VALUES.to(dtype).index_select(0, codes.flatten().int()).view(codes.shape)
    return values.mul_(scale.to(dtype)).view(count, -1, BLOCK)[:, :inputs]


def int5_values(weights: Tensor) -> Tensor:
    """The nearest whole number of five bits to each weight over its scales, float32."""
    return weights.round().clamp_(-INT5_ZERO, INT5_ZERO - 1)


def int5_blocks(values: Tensor, scale: Tensor, output_scale: Tensor) -> Tensor:
    """As `int4_blocks`."""
    count, groups = len(values) // BLOCK, values.shape[1] // 2
    codes = values.add(INT5_ZERO).to(torch.uint8)
    # [blocks, 16 outputs, groups, halves, numbers of four inputs, 4] to the order of the bytes
    codes = codes.view(count, BLOCK // 16, 16, groups, 2, HALF // 4, 4).permute(5, 0, 3, 4, 1, 2, 6)
    words = list(codes[:5].clone())
    for code, parts in zip(codes[5:], INT5_PARTS, strict=True):
        for word, shift, mask in parts:
            words[word] |= (code & mask) << shift
    bytes_ = torch.stack(words, dim=4)  # [blocks, groups, halves, 4, 5, 16, 4]
    return _with_scales(bytes_.reshape(count, groups, -1), scale, output_scale)


def _unpack_int5(blocks: Tensor, inputs: int, dtype: torch.dtype) -> Tensor:
    count = len(blocks)
    bytes_, scale = _split_scales(blocks, INT5_GROUP)
    words = bytes_.reshape(count, -1, 2, BLOCK // 16, 5, 16, 4).unbind(4)
    codes = [word & 31 for word in words]
    for parts in INT5_PARTS:
        shifted = [(words[word] >> shift) & mask for word, shift, mask in parts]
        codes.append(functools.reduce(torch.bitwise_or, shifted))
    # [blocks, groups, halves, 4, 16, numbers, 4 inputs] to [.., inputs, BLOCK]
    ordered = torch.stack(codes, dim=5).permute(0, 1, 2, 5, 6, 3, 4)
    values = ordered.reshape(count, -1, 2, HALF, BLOCK).to(dtype).sub_(INT5_ZERO)
    return values.mul_(scale.to(dtype)).reshape(count, -1, BLOCK)[:, :inputs]


GRIDS = {
    "int4": Grid("int4", _VALUES[0].item(), int4_values, int4_blocks),
    "int5": Grid("int5", -INT5_ZERO, int5_values, int5_blocks),
}
_PACK = {
    "float32": _pack_dense(torch.float32, 1),
    "bfloat16": _pack_dense(torch.bfloat16, 2),
    "int8": _pack_int8,
    "int4": GRIDS["int4"].pack,
    "int5": GRIDS["int5"].pack,
}
_UNPACK = {
    "float32": _unpack_dense(torch.float32, 1),
    "bfloat16": _unpack_dense(torch.bfloat16, 2),
    "int8": _unpack_int8,
    "int4": _unpack_int4,
    "int5": _unpack_int5,
}
