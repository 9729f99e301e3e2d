"""Parts of a benchmark that answer at once: figures as a machine gives them, without a machine."""

from __future__ import annotations

from dia_demo.services.bench import hardware
from dia_demo.services.bench.plan import BenchPlan
from dia_demo.services.bench.worker import JobProgress

TINY = BenchPlan(random="tiny", precisions=("float32",), steps=4, text_bytes=9, threads=1)
HARDWARE = {
    "read_gb_s": 50.0,
    "gflops": {"float32": 100.0, "bfloat16": 400.0, "float32_one_core": 50.0},
    "serial_proxy": hardware.serial_proxy(50.0, samples=2),
}
CODEC = {"realtime_whole": 4.0, "realtime_streamed": 3.8, "precision": "float32", "form": "plain"}
CODEC |= {"realtime_float32": None}
RAW = {
    "precision": "float32",
    "rows": 2,
    "ms_per_step": 100.0,
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
}


def fake_child(**answers):
    """Children that answer at once: by kind a result, or an error to raise, or some figures and
    then an error."""

    def start(job, cancel):
        yield JobProgress("working", 0.5)
        answer = answers[job["kind"]]
        if isinstance(answer, list):  # Figures before the error.
            yield JobProgress("working", 0.6, answer[0])
            answer = answer[1]
        if isinstance(answer, Exception):
            raise answer
        return answer | {k: job[k] for k in ("precision", "rows") if k in job}

    return start
