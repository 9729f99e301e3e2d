"""One of the two compiled parts of a frame (kernels/frames), ready to run."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor, nn

from dia_demo.kernels.attention import attend_function
from dia_demo.kernels.decoder_step import NONE, RMSNORM, SILU_MUL
from dia_demo.kernels.frames.frame_step import FRAME_ARGS, FRAME_OP, run_part
from dia_demo.kernels.packing import padded_size
from dia_demo.kernels.thread_pool import thread_pool, yield_core
from dia_demo.model.compiled_step import linear_op
from dia_demo.model.dia2.network import Mlp
from dia_demo.model.layers import RMSNorm

PAGE = 4096


class FramePart:
    """One part of a frame: its arguments, operations and buffers for the rows that are bound.

    use_dot: with the processor's dot products. number_size: bytes of a number of the embeddings,
    keys and values, 2 or 4. buffers: float32 [slots, stride] by name.
    """

    def __init__(self, threads: int, use_dot: bool, number_size: int, eps: float) -> None:
        self.use_dot = use_dot
        self._pool = thread_pool(threads)
        self._args = np.zeros(1, FRAME_ARGS)
        self._ops = np.zeros(0, FRAME_OP)
        self._counters = np.zeros(0, np.int64)
        self._scratch = torch.empty(0)
        self._arrays: dict[str, np.ndarray] = {}
        self.buffers: dict[str, Tensor] = {}
        self.set(
            threads=threads,
            barrier=self._pool.barrier,
            yield_core=yield_core(),
            number_size=number_size,
            attend=attend_function(number_size == 2),
            eps=eps,
        )

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

    def linear(
        self,
        module: nn.Module,
        source: Tensor,
        out: Tensor,
        prologue: int = NONE,
        norm: RMSNorm | None = None,
        add: bool = False,
    ) -> np.ndarray:
        """The FRAME_OP [1] of a PackedLinear, as `linear_op`."""
        op = frame_op(0)
        op[0] = (*linear_op(self.use_dot, module, source, out, prologue, norm, add), -1, 0, 0)
        return op

    def mlp(self, mlp: Mlp, x: Tensor, gate: Tensor, norm: RMSNorm) -> Iterator[np.ndarray]:
        """x += the MLP of x, normed; `gate` is a buffer of its inner width."""
        yield self.linear(mlp.wi, x, gate, RMSNORM, norm)
        yield self.linear(mlp.wo, gate, x, SILU_MUL, add=True)

    def set_program(self, ops: Iterator[np.ndarray]) -> None:
        """The operations, in order."""
        self._ops = np.concatenate(list(ops))
        self._counters = np.zeros(len(self._ops), np.int64)
        self.set(block_counters=self._counters.ctypes.data)

    def run(self, caches: np.ndarray, drawings: np.ndarray) -> None:
        """All operations, by all threads."""
        self._counters.fill(0)
        self._pool.run(run_part, self._args, self._ops, caches, drawings)


def frame_op(kind: int, **fields: int) -> np.ndarray:
    """A FRAME_OP [1]."""
    op = np.zeros(1, FRAME_OP)
    op["kind"], op["position"] = kind, -1
    for name, value in fields.items():
        op[name] = value
    return op
