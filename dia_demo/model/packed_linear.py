"""Linears as blocks of weights in four precisions, in the order that the compiled step reads.

The order (see kernels/packing.py) is the same on every processor, so that packed weights can be
stored. int8 has one scale per output; int4 has one per GROUP inputs of an output, the one of a few
candidates with the smallest error.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from dia_demo.kernels.packing import (
    BFLOAT16,
    BLOCK,
    FLOAT32,
    GROUP,
    INT4,
    INT8,
    block_bytes,
    padded,
)

FORMATS = {"float32": FLOAT32, "bfloat16": BFLOAT16, "int8": INT8, "int4": INT4}
# Candidate scales of a group of int4 weights, relative to the one that represents its largest.
SHRINKS = (1.0, 0.95, 0.9, 0.85, 0.8, 0.75, 0.7, 0.65)
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
    def of(cls, weight_NK: Tensor, precision: str) -> PackedLinear:
        """Pack a weight [outputs, inputs] of any floating-point type."""
        outputs, inputs = weight_NK.shape
        whole, size = padded(outputs), block_bytes(FORMATS[precision], inputs)
        blocks = torch.empty((whole // BLOCK, size), dtype=torch.uint8)
        for first in range(0, whole, PACKED_AT_ONCE):
            part = weight_NK[first : first + PACKED_AT_ONCE]
            missing = padded(len(part)) - len(part)
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
        out = self._unpacked(flat) if self.many_rows is None else self.many_rows(self, flat)
        return out.to(x.dtype).reshape(*x.shape[:-1], self.outputs)

    def _unpacked(self, x: Tensor) -> Tensor:
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


def _grouped(weight_NK: Tensor) -> Tensor:
    """float32 [N, groups, GROUP], the inputs padded with zeros."""
    N, K = weight_NK.shape
    return nn.functional.pad(weight_NK.float(), (0, -K % GROUP)).view(N, -1, GROUP)


def _pack_int8(weight_NK: Tensor) -> Tensor:
    """Round to the nearest of 255 steps; the largest weight of an output becomes 127."""
    grouped = _grouped(weight_NK)
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


def _pack_int4(weight_NK: Tensor) -> Tensor:
    """Round to the nearest of 16 steps, each weight by itself (GPTQ: model/calibration/gptq.py)."""
    grouped = _grouped(weight_NK)
    scale = int4_scales(grouped)
    return int4_blocks(int4_codes(grouped, scale), scale)


def int4_scales(grouped: Tensor, importance: Tensor | None = None) -> Tensor:
    """The scales [N, groups, 1] of weights [N, groups, GROUP] with the least squared errors.

    importance: how much the error of each weight of a group counts, the same if left out. A scale
    may be negative, so that the side of the largest weight has the additional step.
    """
    largest = grouped.gather(2, grouped.abs().argmax(2, keepdim=True))
    scale, least_error = _scale_with_error(grouped, largest, SHRINKS[0], importance)
    for shrink in SHRINKS[1:]:
        candidate, error = _scale_with_error(grouped, largest, shrink, importance)
        is_better = error < least_error
        scale = torch.where(is_better, candidate, scale)
        least_error = torch.where(is_better, error, least_error)
    return scale


def int4_codes(weights: Tensor, scale: Tensor) -> Tensor:
    """The nearest of the 16 codes of each weight, float32 from 0 to 15."""
    return (weights / scale).round_().clamp_(-8, 7).add_(8)


def int4_values(codes: Tensor, scale: Tensor) -> Tensor:
    """The weights that float32 codes stand for."""
    return (codes - 8).mul_(scale)


def int4_blocks(codes: Tensor, scale: Tensor) -> Tensor:
    """Blocks of codes [N, groups, GROUP] with scales [N, groups, 1]; N in whole blocks."""
    N, groups, _ = codes.shape
    nibbles = codes.to(torch.uint8).view(N // BLOCK, BLOCK, groups, GROUP // 8, 2, 4)
    joined = nibbles[..., 0, :] | (nibbles[..., 1, :] << 4)
    bytes_ = joined.permute(0, 2, 3, 1, 4).reshape(N // BLOCK, groups, -1)
    scales = scale.view(N // BLOCK, BLOCK, groups).transpose(1, 2).bfloat16().contiguous()
    return torch.cat((scales.view(torch.uint8), bytes_), dim=2).view(N // BLOCK, -1)


def _scale_with_error(
    grouped: Tensor, largest: Tensor, shrink: float, importance: Tensor | None
) -> tuple[Tensor, Tensor]:
    """Candidate scales [N, groups, 1] of int4 weights, and their squared errors."""
    scale = (largest * (-shrink / 8)).bfloat16().float()
    scale = torch.where(scale == 0, 1e-30, scale)
    error = int4_values(int4_codes(grouped, scale), scale).sub_(grouped)
    error.square_()
    if importance is not None:
        error.mul_(importance)
    return scale, error.sum(2, keepdim=True)


def _unpack_int4(blocks: Tensor, inputs: int, dtype: torch.dtype) -> Tensor:
    count = len(blocks)
    by_group = blocks.view(count, -1, BLOCK * (GROUP // 2 + 2))
    scale = by_group[:, :, : 2 * BLOCK].contiguous().view(torch.bfloat16).unsqueeze(2)
    bytes_ = by_group[:, :, 2 * BLOCK :].reshape(count, -1, GROUP // 8, BLOCK, 4)
    nibbles = torch.stack((bytes_ & 15, bytes_ >> 4), dim=3)  # [.., 8 inputs, 2, BLOCK, 4]
    numbers = nibbles.transpose(4, 5).reshape(count, -1, GROUP, BLOCK)
    weights = numbers.to(dtype).sub_(8).mul_(scale.to(dtype))
    return weights.view(count, -1, BLOCK)[:, :inputs]


_PACK = {
    "float32": _pack_dense(torch.float32, 1),
    "bfloat16": _pack_dense(torch.bfloat16, 2),
    "int8": _pack_int8,
    "int4": _pack_int4,
}
_UNPACK = {
    "float32": _unpack_dense(torch.float32, 1),
    "bfloat16": _unpack_dense(torch.bfloat16, 2),
    "int8": _unpack_int8,
    "int4": _unpack_int4,
}
