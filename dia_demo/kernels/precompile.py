"""Compiles what a first take needs, in processes of their own, while the program still starts.

    python -m dia_demo.kernels.precompile PRECISION

compiles into the cache folder. It needs no torch. A second process compiles what is called beside
the step and by it at the same time. The program finds the kernels in the cache; what is missing
there it compiles itself. Prints the number of kernels, then a line for each that is done.
"""

from __future__ import annotations

import gc
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

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
BESIDE = "--beside-the-step"


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
        count = int(next(self._process.stdout, 0))
        for done in range(count):
            yield done, count
            if not next(self._process.stdout, ""):
                return

    def close(self) -> None:
        """End the process, and the second one at its next report, which nobody reads."""
        if self._process is not None and self._process.stdout is not None:
            self._process.kill()
            self._process.stdout.close()
            self._process.wait()


def _marker(precision: str) -> Path:
    """A file that exists once everything for this precision is compiled."""
    return cache_folder() / "kernels" / digest() / f"{precision}.compiled"


def kernels(precision: str) -> list[Callable[[], object]]:
    """What compiles each of the kernels of a take, the step's first."""
    import numpy as np

    from dia_demo.kernels import snake
    from dia_demo.kernels.attention import attend_function
    from dia_demo.kernels.decoder_step import CACHE, OP, STEP_ARGS, run_ops
    from dia_demo.kernels.llvm_simd import dot_lanes
    from dia_demo.kernels.matmul.linear import block_function
    from dia_demo.kernels.sampling import sample
    from dia_demo.kernels.turns import add_evidence, count_same

    form = FORMATS[precision]
    forms = (form, packing.INT8) if form == packing.INT4 else (form,)  # The logits have 8 bits.
    ints, floats = np.zeros(1, np.int64), np.zeros(1, np.float32)
    rows_of_floats, rows_of_bits = np.zeros((1, 1), np.float32), np.zeros((1, 1), np.uint16)
    codes, rows_of_voices = np.zeros((1, 1), np.int64), np.zeros((1, 1, 1), np.float32)
    step = (0, np.zeros(1, STEP_ARGS), np.zeros(0, OP), np.zeros((1, 1), CACHE))
    sampled = (0, 0, ints, ints, rows_of_floats, floats, floats, floats, ints, 0, 0, 0, codes)
    return [
        partial(_compile, run_ops, step),
        partial(attend_function, form != packing.FLOAT32),
        *(partial(block_function, form, bool(dot_lanes(form))) for form in forms),
        partial(_compile, sample, sampled),
        partial(_compile, count_same, (codes, 0, ints, codes)),
        partial(_compile, add_evidence, (floats, np.float32(0), rows_of_voices, ints, 0)),
        partial(_compile, snake.snake_float32, (rows_of_floats, floats, floats, rows_of_floats)),
        partial(_compile, snake.snake_float32_inplace, (rows_of_floats, floats, floats)),
        partial(_compile, snake.snake_bfloat16, (rows_of_bits, floats, floats, rows_of_bits)),
        partial(_compile, snake.snake_bfloat16_inplace, (rows_of_bits, floats, floats)),
    ]


def main(precision: str, part: str | None = None) -> None:
    """Compile, and report on stdout. part: BESIDE for all but the step."""
    gc.disable()  # Its passes over all that the compiler keeps take time and free little.
    wanted = kernels(precision)
    if part == BESIDE:
        for compile_kernel in wanted[1:]:
            compile_kernel()
            _report("done")
        return
    _report(str(len(wanted)))
    command = [sys.executable, "-m", "dia_demo.kernels.precompile", precision, BESIDE]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL) as beside:
        wanted[0]()
        _report("done")
    if beside.returncode == 0:
        _marker(precision).touch()


def _compile(kernel: Any, arguments: tuple) -> None:
    """Compile a kernel for arguments of these types."""
    from numba import typeof

    kernel.compile(tuple(map(typeof, arguments)))


def _report(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
