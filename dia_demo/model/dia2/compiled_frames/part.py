"""One of the two compiled parts of a frame (kernels/frames), ready to run."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor, nn

from dia_demo.kernels.decoder_step import CACHE, NONE
from dia_demo.kernels.frames.drawing import DRAWING
from dia_demo.kernels.frames.frame_step import FRAME_ARGS, FRAME_OP, frame_function
from dia_demo.kernels.llvm_simd import dot_lanes
from dia_demo.kernels.packing import padded_size
from dia_demo.kernels.thread_pool import thread_pool, yield_core
from dia_demo.model.compiled_step import BYTES_OF_INPUT, ROWS, linear_op
from dia_demo.model.layers import RMSNorm
from dia_demo.model.packed_linear import PackedLinear

PAGE = 4096


class FramePart:
    """One part of a frame: its arguments, operations and buffers for the rows that are bound.

    like: one of its linears, which have its format. buffers: float32 [slots, stride] by name.
    """

    def __init__(self, like: nn.Module, threads: int, use_dot: bool, eps: float) -> None:
        assert isinstance(like, PackedLinear)
        if use_dot and not dot_lanes(like.format):
            raise NotImplementedError(f"this processor has no dot product for {like.precision}")
        self.like, self.use_dot = like, use_dot
        self._function = frame_function(like.format, use_dot)
        self._pool = thread_pool(threads)
        self._args = np.zeros(1, FRAME_ARGS)
        self._ops = np.zeros(0, FRAME_OP)
        self._counters = np.zeros(0, np.int64)
        self._scratch = torch.empty(0)
        self._arrays: dict[str, np.ndarray] = {}
        self.buffers: dict[str, Tensor] = {}
        self.set(threads=threads, barrier=self._pool.barrier, yield_core=yield_core(), eps=eps)

    def set(self, **fields: float) -> None:
        """Set arguments."""
        for name, value in fields.items():
            self._args[name] = value

    def set_arrays(self, **arrays: np.ndarray) -> None:
        """Let arguments point to arrays, which are kept."""
        self._arrays |= arrays
        self.set(**{name: array.ctypes.data for name, array in arrays.items()})

    def make_buffers(self, slots: int, widths: dict[str, int], scratch: int) -> None:
        """Allocate a buffer of every width, and `scratch` bytes for each thread."""
        self.buffers = {
            name: torch.zeros(slots, padded_size(width)) for name, width in widths.items()
        }
        for name, buffer in self.buffers.items():
            if name in (FRAME_ARGS.names or ()):
                self.set(**{name: buffer.data_ptr(), f"{name}_stride": 4 * buffer.shape[1]})
        scratch = (scratch + PAGE - 1) // PAGE * PAGE
        self._scratch = torch.zeros(self._pool.size, scratch, dtype=torch.uint8)
        self.set(slots=slots, scratch=self._scratch.data_ptr(), scratch_size=scratch)

    def set_program(self, ops: Iterator[np.ndarray]) -> None:
        """The operations, in order."""
        self._ops = np.concatenate(list(ops))
        self._counters = np.zeros(len(self._ops), np.int64)
        self.set(block_counters=self._counters.ctypes.data)

    def run(self, caches: np.ndarray, drawings: np.ndarray) -> None:
        """All operations, by all threads."""
        self._counters.fill(0)
        self._pool.run(self._function, self._args, self._ops, caches, drawings)


def frame_op(kind: int, **fields: int) -> np.ndarray:
    """A FRAME_OP [1]."""
    op = np.zeros(1, FRAME_OP)
    op["kind"], op["position"] = kind, -1
    for name, value in fields.items():
        op[name] = value
    return op


def linear(
    module: nn.Module,
    source: Tensor,
    out: Tensor,
    prologue: int = NONE,
    norm: RMSNorm | None = None,
    add: bool = False,
) -> np.ndarray:
    """The FRAME_OP [1] of a PackedLinear, as `linear_op`."""
    op = frame_op(0)
    fields = linear_op(module, source, out, prologue, norm, add)
    op[0] = (*fields, -1, 0, 0)
    return op


class FrameRows:
    """Products of many rows at once, as in a voice prompt, by the function of a part.

    like: a linear of the part. Every row is computed as in a step, so it does not depend on the
    rows beside it.
    """

    def __init__(self, like: nn.Module, threads: int, use_dot: bool) -> None:
        self._like, self._threads, self._use_dot = like, threads, use_dot

    def __call__(self, module: PackedLinear, x: Tensor) -> Tensor:
        """A linear of x [rows, inputs]; float32 [rows, outputs]."""
        return torch.cat([self._multiply(module, part) for part in x.split(ROWS)])

    def _multiply(self, module: PackedLinear, x: Tensor) -> Tensor:
        part = FramePart(self._like, self._threads, self._use_dot, eps=1.0)
        scratch = len(x) * BYTES_OF_INPUT * padded_size(module.inputs)
        part.make_buffers(len(x), {"source": module.inputs, "out": module.outputs}, scratch)
        source, out = part.buffers["source"], part.buffers["out"]
        source[:, : module.inputs] = x
        part.set_program(iter([linear(module, source, out)]))
        part.run(np.zeros((1, len(x)), CACHE), np.zeros(0, DRAWING))
        return out[:, : module.outputs]
