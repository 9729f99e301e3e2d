"""The limits of the hardware: memory bandwidth, rates of matrix products and of serial products.

Measured with numba's kernels if it is installed, otherwise with torch's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from time import perf_counter

import numpy as np
import torch

from dia_demo.machine.processor import multiplies_bfloat16
from dia_demo.machine.system import granted_cores
from dia_demo.services.measurements.types import HardwareResult, Job, SerialProxy
from dia_demo.services.worker.messages import ReportProgress

# Far larger than the cache of a few cores, so a sum reads it from memory. Filling it takes longer
# than all sums.
BUFFER_BYTES = 2**29
REPEATS = 6
# The size of square matrices doubles while a product is expected to take at most this many seconds,
# which is enough for a rate. On a slow processor the largest size would take minutes.
SMALLEST_MATRIX, LARGEST_MATRIX, MATRIX_SECONDS = 128, 2048, 0.5
# The sizes of WaveNet: 80 layers of 128 channels, 16,000 samples a second.
LAYERS, CHANNELS, SAMPLES_PER_SECOND, STREAM_GB_S = 80, 128, 16_000, 80.0
PROXY_SAMPLES = 1500


def run_job(job: Job, report_progress: ReportProgress) -> HardwareResult:
    """The rates that the job's threads reach, within the free memory.

    bfloat16 products are measured only if the processor has instructions for them.
    """
    threads = job.threads or granted_cores()
    torch.set_num_threads(threads)
    report_progress("Reading memory", 0.05)
    read, reader = read_bandwidth(threads, job.available_bytes)
    report_progress("Multiplying matrices", 0.4, read_gb_s=read, read_by=reader)
    gflops: dict[str, float | None] = {"float32": matrix_rate(torch.float32, threads)}
    report_progress("Multiplying matrices", 0.5, gflops=dict(gflops))
    gflops["bfloat16"] = matrix_rate(torch.bfloat16, threads) if multiplies_bfloat16() else None
    report_progress("Multiplying matrices", 0.6, gflops=dict(gflops))
    gflops["float32_one_core"] = one_core = matrix_rate(torch.float32, 1)
    report_progress("Multiplying serially", 0.7, gflops=gflops)
    proxy = serial_proxy(one_core)
    torch.set_num_threads(threads)
    return HardwareResult(read, reader, gflops, proxy)


def buffer_bytes(available: int | None) -> int:
    """The size of the buffer to read: 512 MiB, or less if little memory is free."""
    if available is None or available >= 2 * BUFFER_BYTES:
        return BUFFER_BYTES
    return max(2**26, available // 4)


def read_bandwidth(
    threads: int, available: int | None, size: int | None = None
) -> tuple[float, str]:
    """GB/s (1e9 bytes) of the best of several sums over a buffer, and the library that computed it.

    size: bytes of the buffer; by default chosen from the available memory.
    """
    with _sums(threads, size or buffer_bytes(available)) as (nbytes, sums):
        rates = {name: nbytes / _best_seconds(run) / 1e9 for name, run in sums.items()}
    fastest = max(rates, key=rates.__getitem__)
    return rates[fastest], fastest


@contextmanager
def bandwidth_probe(threads: int, size: int) -> Iterator[Callable[[], float]]:
    """A function that reads a buffer of `size` bytes and returns GB/s.

    Called between steps, so that they are compared with the bandwidth at the time: other programs
    share the memory. It reads twice, because the first time threads and addresses are cold, and
    with numba if possible, because torch's threads keep spinning on the cores of the next step.
    """
    with _sums(threads, size) as (nbytes, sums):
        run = sums.get("numba", sums["torch"])
        yield lambda: nbytes / min(_seconds(run), _seconds(run)) / 1e9


@contextmanager
def _sums(threads: int, size: int) -> Iterator[tuple[int, dict[str, Callable[[], object]]]]:
    """The bytes of a buffer, and the functions that sum it, each warmed up."""
    torch.set_num_threads(threads)
    # numpy requests large pages, which are read faster, as weights from a file do.
    buffer = torch.from_numpy(np.ones(size // 4, np.float32))
    sums: dict[str, Callable[[], object]] = {"torch": buffer.sum}
    total = _numba_sum()
    with ThreadPoolExecutor(threads) as pool:
        if total is not None:
            parts = np.array_split(buffer.numpy(), threads)
            total(parts[0][:16])
            sums["numba"] = lambda: list(pool.map(total, parts))
        for run in sums.values():
            run()
        yield buffer.nbytes, sums


@torch.inference_mode()
def matrix_rate(dtype: torch.dtype, threads: int) -> float:
    """GFLOP/s of a product of square matrices, as large as the time limit allows."""
    torch.set_num_threads(threads)
    size = SMALLEST_MATRIX
    while True:
        left, right = (torch.randn(size, size).to(dtype) for _ in range(2))
        left @ right  # Without the set-up of the first call.
        seconds = _seconds(lambda: left @ right)  # noqa: B023  Called at once.
        if size == LARGEST_MATRIX or 8 * seconds > MATRIX_SECONDS:
            break
        size *= 2
    return 2 * size**3 / min(seconds, _best_seconds(lambda: left @ right)) / 1e9


def serial_proxy(peak_gflops: float, samples: int = PROXY_SAMPLES) -> SerialProxy:
    """A 128-vector through eighty 128x128 matrices, each sample from the one before; one core.

    peak_gflops: that core's rate in a large matrix product, of which `efficiency` is the share.
    """
    seed = np.random.default_rng(0)
    # Rotations, which keep the length of the vector.
    matrices = np.stack(
        [np.linalg.qr(seed.standard_normal((CHANNELS, CHANNELS)))[0] for _ in range(LAYERS)]
    ).astype(np.float32)
    vector = seed.standard_normal(CHANNELS).astype(np.float32)
    run = _numba_chain()
    how = "numba, one core"
    if run is None:
        run, how, samples = _torch_chain, "torch, one core", max(1, samples // 8)
    run(matrices, vector, 1)
    rate = samples / _best_seconds(lambda: run(matrices, vector, samples))
    gflops = rate * 2 * matrices.size / 1e9
    gb_s = rate * matrices.nbytes / 1e9
    return SerialProxy(
        samples_per_second=rate,
        of_16khz=rate / SAMPLES_PER_SECOND,
        gb_s=gb_s,
        of_80_gb_s=gb_s / STREAM_GB_S,
        gflops=gflops,
        peak_gflops=peak_gflops,
        efficiency=gflops / peak_gflops,
        how=how,
    )


def _best_seconds(run: Callable[[], object]) -> float:
    return min(_seconds(run) for _ in range(REPEATS))


def _seconds(run: Callable[[], object]) -> float:
    began = perf_counter()
    run()
    return perf_counter() - began


def _numba_sum() -> Callable[[np.ndarray], float] | None:
    try:
        from dia_demo.kernels.jit import compiled
    except ImportError:
        return None

    def total(values):
        subtotal = np.float32(0)
        for i in range(values.size):
            subtotal += values[i]
        return subtotal

    return _compile(compiled, total)


def _numba_chain() -> Callable[[np.ndarray, np.ndarray, int], None] | None:
    try:
        from dia_demo.kernels.jit import compiled
    except ImportError:
        return None

    def chain(matrices, x, samples):
        # Sizes that are known at compile time: a third faster than with matrices.shape.
        y = np.empty(CHANNELS, np.float32)
        for _ in range(samples):
            for layer in range(LAYERS):
                m = matrices[layer]
                y[:] = np.float32(0)
                # Eight rows at a time: y stays in registers, and products overlap.
                for k in range(0, CHANNELS, 8):
                    a, b, c, d = x[k], x[k + 1], x[k + 2], x[k + 3]
                    e, f, g, h = x[k + 4], x[k + 5], x[k + 6], x[k + 7]
                    for j in range(CHANNELS):
                        y[j] += (
                            m[k, j] * a + m[k + 1, j] * b + m[k + 2, j] * c + m[k + 3, j] * d
                        ) + (m[k + 4, j] * e + m[k + 5, j] * f + m[k + 6, j] * g + m[k + 7, j] * h)
                x[:] = y

    return _compile(compiled, chain)


def _compile(compiled: Callable, function: Callable) -> Callable | None:
    try:
        return compiled(fastmath=True)(function)
    except ImportError:
        return None


@torch.inference_mode()
def _torch_chain(matrices: np.ndarray, x: np.ndarray, samples: int) -> None:
    torch.set_num_threads(1)
    layers = torch.from_numpy(matrices).unbind(0)
    vector = torch.from_numpy(x.copy())
    for _ in range(samples):
        for layer in layers:
            vector = torch.mv(layer, vector)
