"""Compiles what a first take needs, in processes of their own, while the program still starts.

    python -m dia_demo.kernels.precompile PRECISION

compiles into the cache folder and prints how many kernels are done, of how many. It needs no torch.
A second process compiles those beside the decoder's at the same time. The program finds the kernels
in the cache; what is missing there it compiles itself.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from dia_demo.files import cache_folder
from dia_demo.kernels import packing
from dia_demo.kernels.jit import digest, use_cache_folder
from dia_demo.machine import processor

FORMATS = {
    "float32": packing.FLOAT32,
    "bfloat16": packing.BFLOAT16,
    "int8": packing.INT8,
    "int4": packing.INT4,
}
# Of the kernels, the decoder's, which take most of the time.
DECODER = 2
BESIDE = "--beside-the-decoder"


class Precompilation:
    """The process, seen from the program. precision: of the decoder; "auto" for the likely one.

    Nothing is started where everything was compiled before, or the cache folder is not writable.
    """

    def __init__(self, precision: str) -> None:
        if precision == "auto":  # As engine/loading/placement.py chooses without a benchmark.
            precision = "int8" if processor.byte_product_lanes() else "bfloat16"
        self._process: subprocess.Popen | None = None
        if precision in FORMATS and use_cache_folder() and not _marker(precision).exists():
            command = [sys.executable, "-m", "dia_demo.kernels.precompile", precision]
            with suppress(OSError):
                self._process = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    text=True,
                )

    @property
    def is_needed(self) -> bool:
        """Whether something has to be compiled."""
        return self._process is not None

    def progress(self) -> Iterator[tuple[int, int]]:
        """The kernels done, and of how many, until all are."""
        if self._process is None or self._process.stdout is None:
            return
        for line in self._process.stdout:
            done, count = map(int, line.split())
            if done < count:
                yield done, count

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()


def _marker(precision: str) -> Path:
    """A file that exists once everything for this precision is compiled."""
    return cache_folder() / "kernels" / digest() / f"{precision}.compiled"


def kernels(precision: str) -> list[tuple[Callable, tuple]]:
    """The compiled functions of a take and arguments of the types that they are called with, the
    decoder's first."""
    import numpy as np

    from dia_demo.kernels import attention, snake
    from dia_demo.kernels.decoder_step import CACHE, OP, STEP_ARGS, step_function
    from dia_demo.kernels.llvm_simd import dot_lanes
    from dia_demo.kernels.sampling import sample

    form = FORMATS[precision]
    attend = attention.attend_float32 if form == packing.FLOAT32 else attention.attend_bfloat16
    step = step_function(form, bool(dot_lanes(form)))
    ints, floats = np.zeros(1, np.int64), np.zeros(1, np.float32)
    rows_of_floats, rows_of_bits = np.zeros((1, 1), np.float32), np.zeros((1, 1), np.uint16)
    codes = np.zeros((1, 1), np.int64)
    sampled = (0, 0, ints, ints, rows_of_floats, floats, floats, floats, ints, 0, 0, codes)
    return [
        (attend, (0,) * 8),
        (step, (0, np.zeros(1, STEP_ARGS), np.zeros(0, OP), np.zeros((1, 1), CACHE))),
        (sample, sampled),
        (snake.snake_float32, (rows_of_floats, floats, floats, rows_of_floats)),
        (snake.snake_float32_inplace, (rows_of_floats, floats, floats)),
        (snake.snake_bfloat16, (rows_of_bits, floats, floats, rows_of_bits)),
        (snake.snake_bfloat16_inplace, (rows_of_bits, floats, floats)),
    ]


def main(precision: str, part: str | None = None) -> None:
    """Compile, and report on stdout. part: BESIDE for what is not the decoder's."""
    wanted = kernels(precision)
    if part == BESIDE:
        for kernel, arguments in wanted[DECODER:]:
            _compile(kernel, arguments)
        return
    command = [sys.executable, "-m", "dia_demo.kernels.precompile", precision, BESIDE]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as beside:
        for number, (kernel, arguments) in enumerate(wanted[:DECODER]):
            _report(number, len(wanted))
            _compile(kernel, arguments)
        _report(DECODER, len(wanted))
    if beside.returncode == 0:
        _marker(precision).touch()
    _report(len(wanted), len(wanted))


def _compile(kernel: Callable, arguments: tuple) -> None:
    from numba import typeof

    kernel.compile(tuple(map(typeof, arguments)))  # type: ignore[attr-defined]


def _report(done: int, count: int) -> None:
    sys.stdout.write(f"{done} {count}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
