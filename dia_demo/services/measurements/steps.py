"""One run: loads, warms up and times a precision and a number of rows in this process."""

from __future__ import annotations

import statistics
from contextlib import closing
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from dia_demo.engine.engine import Engine
from dia_demo.engine.events import AudioChunk
from dia_demo.engine.scheduler import run
from dia_demo.errors import RunError
from dia_demo.machine import system
from dia_demo.model.linear import can_compile
from dia_demo.services.measurements import codec, hardware
from dia_demo.services.measurements.fixtures import frames_of, load_engine, make_rows, step_bytes
from dia_demo.services.measurements.sizes import warm_steps
from dia_demo.services.measurements.types import Job, RunResult
from dia_demo.services.worker.messages import ReportProgress

if TYPE_CHECKING:  # It needs numba.
    from dia_demo.services.measurements.parts import FrameWatch

# Enough frames for the codec's first block, including delays and context.
FIRST_AUDIO_TOKENS = 300
CODEC_SECONDS, DECODE_SECONDS = 5.0, 2.0
# Larger than most caches, but read in less than a step: the buffer that measures the bandwidth, and
# the number of steps between two measurements.
PROBE_BYTES, PROBE_EVERY = 2**27, 4


def run_job(job: Job, report_progress: ReportProgress) -> RunResult:
    """Load, warm up and time one precision and number of rows."""
    began = perf_counter()

    def report_loading(doing: str, fraction: float, /, **_: object) -> None:
        report_progress(doing, fraction / 2)

    engine = load_engine(job, report_loading)
    known = {"load_seconds": perf_counter() - began, "rows": job.rows} | _known_fields(engine)
    first_step(engine, job.text_bytes)
    known["start_seconds"] = system.seconds_since_start()
    report_progress("Loading the codec", 0.5, **known)
    known["load_codec_seconds"] = codec.measure_seconds(engine.load_codec)
    known["load_peak_rss_bytes"], generating = system.peak_rss_bytes(), system.watch_peak()
    report_progress("Warming up", 0.55, **known)
    known["warm_up_seconds"] = codec.measure_seconds(engine.warm_up)
    report_progress("First sound", 0.6, **known)
    known["first_audio_seconds"] = first_audio(engine, job.rows, job.text_bytes, report_progress)
    report_progress("Decoding", 0.7, **known)
    known["realtime_codec"] = codec.streamed_rate(
        engine.codec, job.codec_seconds or CODEC_SECONDS, DECODE_SECONDS
    )
    known["peak_rss_bytes"] = generating()
    report_progress("Timing steps", 0.8, **known)
    watch = _watch_of(engine)
    seconds, known["read_gb_s_then"] = time_steps(
        engine, job.rows, job.text_bytes, job.steps, report_progress, watch
    )
    position, loaded = warm_steps(engine.config) + job.steps // 2, engine.loaded
    assert loaded is not None, "a benchmark runs on the CPU"
    if watch is None:
        read = step_bytes(loaded.model.dia, job.rows, job.text_bytes, position)
    else:
        split = watch.split(seconds, job.rows, position, engine.placement.threads)
        known["split"], read = split, split.temporal_bytes + split.depth_bytes
    return RunResult(
        **known,
        ms_per_step=1000 * statistics.median(seconds),
        ms_per_step_fast_quartile=1000 * float(np.percentile(seconds, 25)),
        step_bytes=read,
    )


def _watch_of(engine: Engine) -> FrameWatch | None:
    """The model with a look at the parts of its frames, if it has parts."""
    if not can_compile():
        return None
    from dia_demo.model.dia2.compiled_frames.model import CompiledDia2
    from dia_demo.services.measurements.parts import FrameWatch

    return FrameWatch(engine.model) if isinstance(engine.model, CompiledDia2) else None


def _known_fields(engine: Engine) -> dict[str, Any]:
    """The fields of a result that are known before the measurement."""
    return {
        "precision": engine.placement.precision,
        "frames_per_second": engine.info.frames_per_second,
        "kernels": kernels_of(engine),
        "threads": engine.placement.threads,
        "reason": engine.placement.reason,
        "max_delay": engine.config.max_delay,
        "frames_per_step": engine.config.frames_per_step,
    }


def kernels_of(engine: Engine) -> str:
    """The name of the kernels that a step uses."""
    return engine.loaded.choice.kernel.name if engine.loaded else "plain"


def first_step(engine: Engine, text_bytes: int) -> None:
    """Encode a text and run one step, so that everything is loaded and compiled."""
    rows = make_rows(engine.config, 1, text_bytes, 64, engine.info.family.row)
    with closing(run(engine.model, rows)) as stepping:
        next(stepping)


def first_audio(
    engine: Engine, rows: int, text_bytes: int, report_progress: ReportProgress
) -> float:
    """Seconds from the start of a streamed take to its first audio: text, delays, first block."""
    tokens, row = FIRST_AUDIO_TOKENS, engine.info.family.row
    waiting = make_rows(engine.config, rows, text_bytes, tokens, row)
    began = perf_counter()
    with closing(engine.stream(waiting, [60.0] * rows)) as events:
        for number, event in enumerate(events):
            if isinstance(event, AudioChunk):
                return perf_counter() - began
            # The number of steps is unknown, so the fraction approaches 0.7.
            report_progress("First audio", 0.7 - 0.1 * 0.9**number)
    raise RunError("The take ended before its first audio.")


def time_steps(
    engine: Engine,
    rows: int,
    text_bytes: int,
    steps: int,
    report_progress: ReportProgress,
    watch: FrameWatch | None = None,
) -> tuple[list[float], float]:
    """Seconds of each of `steps` decoder steps of all rows together, including sampling, and the
    median bandwidth between them in GB/s. watch: the model, with a look at its parts."""
    warm = warm_steps(engine.config)
    tokens = frames_of(engine.config, steps + warm)
    together = make_rows(engine.config, rows, text_bytes, tokens, engine.info.family.row)
    seconds: list[float] = []
    bandwidths: list[float] = []
    probing = hardware.bandwidth_probe(engine.placement.threads, PROBE_BYTES)
    with probing as probe, closing(run(watch or engine.model, together)) as stepping:
        began = perf_counter()
        for row in stepping:
            if row is not together[0]:
                continue
            seconds.append(perf_counter() - began)
            if len(seconds) == warm + steps + 1:
                break
            if len(seconds) % PROBE_EVERY == 0:
                bandwidths.append(probe())
                report_progress("Timing steps", 0.8 + 0.2 * len(seconds) / (warm + steps))
            began = perf_counter()
    return seconds[warm + 1 :], statistics.median(bandwidths)
