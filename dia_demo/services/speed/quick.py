"""The quick measurement: a few rates from which estimate.py derives the time of a take.

It takes a few seconds and little memory, in a process with low priority. Each rate is timed in
short bursts, of which the faster ones count. The result says whether other programs kept the cores
busy.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing

import numpy as np
import torch

from dia_demo.codec.codec import random_dac
from dia_demo.codec.decoder import expected_realtime, macs_per_frame
from dia_demo.engine.engine import Engine
from dia_demo.engine.scheduler import run
from dia_demo.machine.system import granted_cores
from dia_demo.model.cpu_model import torch_threads
from dia_demo.services.measurements import codec, hardware
from dia_demo.services.measurements.fixtures import load_engine, make_rows
from dia_demo.services.measurements.sizes import TEXT_BYTES
from dia_demo.services.measurements.types import Job, QuickResult
from dia_demo.services.worker.messages import ReportProgress

# Larger than most caches, but read in a few milliseconds.
PROBE_BYTES, PROBES = 2**27, 12
# Rows of a text of usual length, and inputs and outputs of a linear like Dia-1.6B's encoder's.
PRODUCT, PRODUCTS = (128, 1024, 2048), 12
NANO_STEPS, NANO_SECONDS, NANO_DECODINGS = 60, 1.0, 6
# The share of the cores' time that an undisturbed measurement gets while it reads memory.
UNDISTURBED = 0.7
DIA_SAMPLE_RATE = 44_100


def run_job(job: Job, report_progress: ReportProgress) -> QuickResult:
    """Memory, matrix products, the embedded voice, and the convolutions of Dia-1.6B's codec."""
    threads = job.threads or granted_cores()
    report_progress("Reading memory", 0.0)
    read, share = read_rate(threads)
    report_progress("Multiplying matrices", 0.3)
    gflops = product_rate(threads)
    report_progress("The codec of Dia-1.6B", 0.4)
    dia_codec = convolution_rate(threads)
    report_progress("The nano voice", 0.6)
    engine = load_engine(job, lambda *_, **results: None)
    nano = ms_per_step(engine), codec_rate(engine)
    return QuickResult(read, gflops, *nano, dia_codec, share >= UNDISTURBED)


def read_rate(threads: int) -> tuple[float, float]:
    """GB/s, and the share of the cores' time that the reading threads got."""
    with hardware.bandwidth_probe(threads, PROBE_BYTES) as probe:
        computed, began = time.process_time(), time.perf_counter()
        rates = [probe() for _ in range(PROBES)]
        share = (time.process_time() - computed) / (time.perf_counter() - began) / threads
    return float(np.percentile(rates, 75)), share


@torch.inference_mode()
def product_rate(threads: int) -> float:
    """GFLOP/s of the text encoder's matrix products in float32."""
    torch.set_num_threads(threads)
    rows, inputs, outputs = PRODUCT
    text, weights = torch.randn(rows, inputs), torch.randn(inputs, outputs)
    seconds = _quartile_seconds(lambda: text @ weights, PRODUCTS)
    return 2e-9 * rows * inputs * outputs / seconds


def convolution_rate(threads: int) -> float:
    """Seconds of audio per second that Descript's decoder would reach if all its convolutions ran
    at the rate of the largest."""
    torch.set_num_threads(threads)
    dac = random_dac(sample_rate=DIA_SAMPLE_RATE)
    macs = macs_per_frame(dac.shapes, list(dac.net.decoder_rates))
    return expected_realtime(dac.read, macs, DIA_SAMPLE_RATE / dac.net.hop_length)


def ms_per_step(engine: Engine) -> float:
    """Milliseconds of a decoder step of one utterance."""
    rows = make_rows(engine.config, 1, TEXT_BYTES, NANO_STEPS + 20)
    with closing(run(engine.model, rows)) as stepping:
        next(stepping)
        return 1000 * _quartile_seconds(lambda: next(stepping), NANO_STEPS)


def codec_rate(engine: Engine) -> float:
    """Seconds of audio per second that the engine's codec decodes, streamed."""
    loaded = engine.load_codec()
    codes = codec.random_codes(loaded, NANO_SECONDS)
    with torch_threads(engine.placement.threads):
        seconds = _quartile_seconds(lambda: codec.stream(loaded, codes), NANO_DECODINGS)
    return len(codes) / loaded.frames_per_second / seconds


def _quartile_seconds(run: Callable[[], object], times: int) -> float:
    """Seconds of a call: the lower quartile of several."""
    return float(np.percentile([codec.measure_seconds(run) for _ in range(times)], 25))
