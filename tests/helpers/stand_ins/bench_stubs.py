"""Parts of a benchmark that answer at once: results as a machine gives them, as JSON has them."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

from dia_demo.services.bench.plan import BenchPlan
from dia_demo.services.measurements.types import (
    HardwareResult,
    QuickResult,
    RunResult,
    SerialProxy,
)
from dia_demo.services.speed.machine_speed import VERSION
from dia_demo.services.speed.rates import machine_identity
from dia_demo.services.worker.messages import JobProgress
from dia_demo.untrusted import parse_as

QUICK = QuickResult(
    read_gb_s=45.0,
    gflops=180.0,
    nano_ms_per_step=0.3,
    nano_codec=80.0,
    dia_codec=5.0,
    undisturbed=True,
)


def write_speed(cache: Path, quick: QuickResult) -> None:
    """Write into a cache folder that this machine was measured."""
    raw = {"version": VERSION, "machine": machine_identity(), "takes": {}, "stretches": []}
    (cache / "speed.json").write_text(json.dumps(raw | {"quick": asdict(quick)}))


# 5,000 samples a second through 80 matrices of 64 KiB.
PROXY = SerialProxy(
    samples_per_second=5000.0,
    of_16khz=0.3125,
    gb_s=26.2,
    of_80_gb_s=0.328,
    gflops=13.1,
    peak_gflops=50.0,
    efficiency=0.262,
    how="numba, one core",
)
TINY = BenchPlan(random="tiny", precisions=("float32",), steps=4, text_bytes=9, threads=1)
HARDWARE = {
    "read_gb_s": 50.0,
    "read_by": "numba",
    "gflops": {"float32": 100.0, "bfloat16": 400.0, "float32_one_core": 50.0},
    "serial_proxy": asdict(PROXY),
}
CODEC = {"realtime_whole": 4.0, "realtime_streamed": 3.8, "precision": "float32", "form": "plain"}
CODEC |= {"load_seconds": 0.5, "reason": "the fastest", "source": "small", "complete": True}
RAW = {
    "precision": "float32",
    "rows": 2,
    "ms_per_step": 100.0,
    "frames_per_step": 1,
    "ms_per_step_fast_quartile": 90.0,
    "step_bytes": 4_000_000_000,
    "frames_per_second": 50.0,
    "realtime_codec": 4.0,
    "first_audio_seconds": 2.0,
    "load_seconds": 5.0,
    "peak_rss_bytes": 7_000_000_000,
    "kernels": "plain",
    "max_delay": 15,
    "read_gb_s_then": 48.0,
    "threads": 1,
    "reason": "asked for",
    "start_seconds": 6.0,
    "load_codec_seconds": 0.5,
    "load_peak_rss_bytes": 8_000_000_000,
    "warm_up_seconds": 1.0,
}


def hardware_result(**changes) -> HardwareResult:
    return parse_as(HardwareResult, HARDWARE | changes)


def run_result(**changes) -> RunResult:
    return RunResult(**RAW | changes)


def fake_child(**answers):
    """Children that answer at once: by kind a result, or an error to raise, or some figures and
    then an error."""

    def start(job, cancel):
        yield JobProgress("working", 0.5)
        answer = answers[job.kind]
        if isinstance(answer, list):  # Figures before the error.
            yield JobProgress("working", 0.6, answer[0])
            answer = answer[1]
        if isinstance(answer, Exception):
            raise answer
        own = {"precision": job.precision, "rows": job.rows} if job.kind == "run" else {}
        return answer | own

    return start
