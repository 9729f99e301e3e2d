"""A benchmark's figures: measurements compared with the machine's limits, and their meaning.

Units: GB is 1e9 bytes; realtime factors are seconds of audio over seconds of work.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from dia_demo.services.bench.plan import BenchPlan
from dia_demo.services.bench.split import SplitReport, split_report
from dia_demo.services.measurements.types import (
    CodecResult,
    HardwareResult,
    QualityResult,
    RunResult,
)
from dia_demo.services.system_info import Machine, describe_machine
from dia_demo.services.wording import duration

RUN_KEYS = (
    "precision rows ms_per_step gb_per_step limit_ms achieved realtime_tokens realtime_codec "
    "realtime_whole first_audio_seconds load_seconds peak_rss_bytes kernels"
).split()
EXAMPLE_SECONDS = 10.0
# Fewer bytes than this stay in a processor's caches, so steps are not limited by memory.
CACHED_GB = 0.1


@dataclass(frozen=True)
class FinishedRun(RunResult):
    """A run with derived figures; those that need an unknown bandwidth are None.

    achieved: share of the limit that the best measured bandwidth sets. achieved_then: share of the
    limit by the bandwidth between the run's own steps, since other programs may share the memory.
    parts: of a model that has parts.
    """

    gb_per_step: float
    achieved_gb_s: float
    realtime_tokens: float
    realtime_whole: float
    take_seconds: float
    limit_ms: float | None
    achieved: float | None
    realtime_limit: float | None
    achieved_then: float | None
    parts: SplitReport | None

    def to_json(self) -> dict[str, Any]:
        """RUN_KEYS first, then the other figures that are known."""
        known = {name: value for name, value in asdict(self).items() if value is not None}
        return dict.fromkeys(RUN_KEYS) | known


@dataclass(frozen=True)
class FailedRun:
    """A run that could not be started or finished, with the figures measured until then."""

    precision: str
    rows: int
    error: str
    known: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        own = {"precision": self.precision, "rows": self.rows, "error": self.error}
        return dict.fromkeys(RUN_KEYS) | dict(self.known) | own


@dataclass(frozen=True)
class BenchReport:
    """The results so far. hardware and codec are None before their first result.

    automatic: the precision that "auto" chooses here. failures: the parts that failed, with their
    reasons. quality is None if it was not requested.
    """

    plan: BenchPlan
    threads: int | None
    automatic: str | None = None
    machine: Machine = field(default_factory=describe_machine)
    hardware: HardwareResult | None = None
    codec: CodecResult | None = None
    runs: tuple[RunResult | FailedRun, ...] = ()
    quality: QualityResult | None = None
    failures: dict[str, str] = field(default_factory=dict)

    @property
    def read_gb_s(self) -> float | None:
        """The best bandwidth measured during the whole benchmark in GB/s: the strictest limit."""
        seen = [run.read_gb_s_then for run in self.runs if isinstance(run, RunResult)]
        if self.hardware is not None:
            seen.append(self.hardware.read_gb_s)
        return max(seen, default=None)

    def all_runs(self) -> list[FinishedRun | FailedRun]:
        """Every run; finished ones with their derived figures."""
        return [
            run if isinstance(run, FailedRun) else finish_run(run, self.read_gb_s)
            for run in self.runs
        ]

    def finished_runs(self) -> list[FinishedRun]:
        """The finished runs."""
        return [run for run in self.all_runs() if isinstance(run, FinishedRun)]

    def to_json(self) -> dict[str, Any]:
        """The report as `bench --json` prints it."""
        hardware = self.hardware
        proxy = hardware and hardware.serial_proxy
        return {
            "read_gb_s": self.read_gb_s,
            "gflops": hardware and hardware.gflops,
            "serial_proxy": proxy and asdict(proxy),
            "codec": self.codec and self.codec.to_json(),
            "runs": [run.to_json() for run in self.all_runs()],
            "pair_ratio": pair_ratios(self.finished_runs()),
            "quality": self.quality and self.quality.to_json(),
            "model": self.plan.title,
            "random_weights": self.plan.random is not None,
            "steps": self.plan.steps,
            "text_bytes": self.plan.text_bytes,
            "threads": self.threads,
            "automatic": self.automatic,
            "machine": asdict(self.machine),
            "failures": self.failures,
        }


def finish_run(run: RunResult, read_gb_s: float | None) -> FinishedRun:
    """A run with its derived figures: limit by `read_gb_s`, realtime factors, time of a take."""
    gb, seconds = run.step_bytes / 1e9, run.ms_per_step / 1000
    audio = run.rows * run.frames_per_step / run.frames_per_second  # Seconds, of one step.
    tokens = audio / seconds
    limit = gb / read_gb_s if read_gb_s else None
    return FinishedRun(
        **vars(run),
        gb_per_step=gb,
        achieved_gb_s=gb / seconds,
        realtime_tokens=tokens,
        realtime_whole=1 / (1 / tokens + 1 / run.realtime_codec),
        take_seconds=take_seconds(run, EXAMPLE_SECONDS),
        limit_ms=1000 * limit if limit else None,
        achieved=limit / seconds if limit else None,
        realtime_limit=audio / limit if limit else None,
        achieved_then=gb / run.read_gb_s_then / seconds if run.read_gb_s_then else None,
        parts=split_report(run, run.split, read_gb_s) if run.split else None,
    )


def take_seconds(run: RunResult, audio: float, ms_per_step: float | None = None) -> float:
    """Estimated seconds for a take with `audio` seconds: the steps of its frames and of the delays
    after them, and decoding. ms_per_step: replaces the run's own.
    """
    steps = (audio * run.frames_per_second + run.max_delay) / run.frames_per_step
    step = run.ms_per_step if ms_per_step is None else ms_per_step
    return steps * step / 1000 + run.rows * audio / run.realtime_codec


def pair_ratios(runs: Sequence[RunResult]) -> dict[str, dict[str, float]]:
    """By precision: the time of a step of several utterances over that of one."""
    steps = {(run.precision, run.rows): run.ms_per_step for run in runs}
    ratios: dict[str, dict[str, float]] = {}
    for (precision, rows), ms in steps.items():
        if rows > 1 and (precision, 1) in steps:
            ratios.setdefault(precision, {})[str(rows)] = ms / steps[precision, 1]
    return ratios


def is_memory_bound(run: FinishedRun) -> bool:
    """Whether a step's bytes exceed the caches, so that memory bandwidth limits it."""
    return run.gb_per_step >= CACHED_GB


def summary(report: BenchReport) -> str:
    """One or two sentences for people: the time with the automatic choice, then the others."""
    runs = [run for run in report.finished_runs() if run.rows == 1]
    if not runs:
        return "No run of one utterance was finished, so the time of a take is unknown."
    runs.sort(key=lambda run: run.take_seconds)
    first = next((run for run in runs if run.precision == report.automatic), runs[0])
    chosen = ", which auto chooses" if first.precision == report.automatic else ""
    others = [
        f"{duration(run.take_seconds, tenths=True)} with {run.precision}"
        for run in runs
        if run.precision != first.precision
    ]
    rest = f"; {', '.join(others)}" if others else ""
    sentence = (
        f"On this machine a {EXAMPLE_SECONDS:.0f}-second take of {report.plan.name} takes about "
        f"{duration(first.take_seconds, tenths=True)} with {first.precision}{chosen}{rest}."
    )
    pace = " Generation is faster than playback." if first.realtime_whole >= 1 else ""
    return f"{sentence} The first audio is ready after {first.first_audio_seconds:.1f} s.{pace}"
