"""Convolutions in pieces, which several threads compute beside each other.

torch cuts an operation by the number of its threads, and rounds differently with another number.
Here a convolution is always cut into the same pieces, by its size alone, and every piece is
computed by one thread: the samples of a take do not depend on the number of threads.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache, partial
from typing import Protocol

import torch
from torch import Tensor

from dia_demo.model.cpu_model import torch_threads

# A convolution is cut into at most so many pieces, not into shorter or narrower ones than these,
# nor into ones with fewer multiplications. (In eight pieces, Descript's codec in bfloat16 took
# twice as long. Cut into pieces, the embedded voice's took 20% longer on one core, and as AVX2 2.4
# times as long.)
PIECES = 4
LEAST_ROWS, LEAST_OUTPUTS = 512, 256
LEAST_WORK = 2**24

_caller = threading.local()


class Convolution(Protocol):
    """A convolution of stride 1 without padding: [T, I] to [T - reach, O]."""

    def __call__(self, x_TI: Tensor) -> Tensor: ...

    def add(self, x_TI: Tensor, out_TO: Tensor) -> None:
        """out += the convolution of x."""


# A convolution of a weight [O, I, K], a bias [O], a dilation and its usual number of outputs.
Make = Callable[[Tensor, Tensor, int, int], Convolution]


@contextmanager
def piece_threads() -> Iterator[None]:
    """In the block, torch's threads compute pieces, and one of them everything else."""
    count, before = torch.get_num_threads(), getattr(_caller, "pool", None)
    _caller.pool = _pool(count) if count > 1 else None
    try:
        with torch_threads(1):
            yield
    finally:
        _caller.pool = before


@cache
def _pool(count: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(count, "codec")


def _run(jobs: Sequence[Callable[[], None]]) -> None:
    """Run all jobs, each by one thread."""
    pool = getattr(_caller, "pool", None)
    if pool is None or len(jobs) == 1:
        for job in jobs:
            job()
    else:
        list(pool.map(_run_on_one_thread, jobs))


def _run_on_one_thread(job: Callable[[], None]) -> None:
    with torch.inference_mode(), torch_threads(1):
        job()


def split_convolution(
    make: Make, weight_OIK: Tensor, bias_O: Tensor, dilation: int, rows: int
) -> Convolution:
    """A convolution in pieces: of its rows where they are many, else of its outputs."""
    most = min(PIECES, rows * weight_OIK.numel() // LEAST_WORK)
    if most > 1 and rows >= 2 * LEAST_ROWS:
        count = min(most, rows // LEAST_ROWS)
        return _RowPieces(make, weight_OIK, bias_O, dilation, -(-rows // count))
    count = min(most, len(weight_OIK) // LEAST_OUTPUTS)
    if count <= 1:
        return make(weight_OIK, bias_O, dilation, rows)
    return _OutputPieces(make, weight_OIK, bias_O, dilation, rows, count)


class _RowPieces:
    """Each piece has `rows` neighbouring outputs; the last may have fewer."""

    def __init__(
        self, make: Make, weight_OIK: Tensor, bias_O: Tensor, dilation: int, rows: int
    ) -> None:
        self.outputs, self.rows = len(weight_OIK), rows
        self.reach = dilation * (weight_OIK.shape[-1] - 1)
        self.convolution = make(weight_OIK, bias_O, dilation, rows)

    def __call__(self, x_TI: Tensor) -> Tensor:
        out_TO = x_TI.new_empty(len(x_TI) - self.reach, self.outputs)

        def compute(x_TI: Tensor, out_TO: Tensor) -> None:
            out_TO.copy_(self.convolution(x_TI))

        self._run(compute, x_TI, out_TO)
        return out_TO

    def add(self, x_TI: Tensor, out_TO: Tensor) -> None:
        self._run(self.convolution.add, x_TI, out_TO)

    def _run(self, compute: Callable[[Tensor, Tensor], None], x_TI: Tensor, out_TO: Tensor) -> None:
        jobs = []
        for first in range(0, len(out_TO), self.rows):
            piece_TO = out_TO[first : first + self.rows]
            jobs.append(partial(compute, x_TI[first:][: len(piece_TO) + self.reach], piece_TO))
        _run(jobs)


class _OutputPieces:
    """Each piece has some of the output channels."""

    def __init__(
        self,
        make: Make,
        weight_OIK: Tensor,
        bias_O: Tensor,
        dilation: int,
        rows: int,
        count: int,
    ) -> None:
        self.outputs, self.reach = len(weight_OIK), dilation * (weight_OIK.shape[-1] - 1)
        ends = [self.outputs * piece // count for piece in range(count + 1)]
        self.parts = [slice(*ends[piece : piece + 2]) for piece in range(count)]
        self.convolutions = [
            make(weight_OIK[part].contiguous(), bias_O[part].contiguous(), dilation, rows)
            for part in self.parts
        ]

    def __call__(self, x_TI: Tensor) -> Tensor:
        out_TO = x_TI.new_empty(len(x_TI) - self.reach, self.outputs)

        def compute(part: slice, convolution: Convolution) -> None:
            out_TO[:, part] = convolution(x_TI)

        self._run(compute)
        return out_TO

    def add(self, x_TI: Tensor, out_TO: Tensor) -> None:
        def compute(part: slice, convolution: Convolution) -> None:
            out_TO[:, part] += convolution(x_TI)

        self._run(compute)

    def _run(self, compute: Callable[[slice, Convolution], None]) -> None:
        _run([partial(compute, *each) for each in zip(self.parts, self.convolutions, strict=True)])
