"""A benchmark's figures: raw measurements joined to the machine's limit, and what they mean.

Units: GB is 1e9 bytes; realtime factors are seconds of audio over seconds of work.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field

from dia_demo.services.bench.plan import BenchPlan
from dia_demo.services.system_info import Machine, describe_machine

RUN_KEYS = (
    "precision rows ms_per_step gb_per_step limit_ms achieved realtime_tokens realtime_codec "
    "realtime_whole first_audio_seconds load_seconds peak_rss_bytes kernels"
).split()
EXAMPLE_SECONDS = 10.0
# Fewer bytes than this stay in the caches of any processor: memory is not what a step waits for.
CACHED_GB = 0.1


@dataclass(frozen=True)
class BenchReport:
    """What is known so far. hardware and codec are None where they were not measured, and lack the
    figures that were not reached.

    automatic: the precision that "auto" takes here. runs: one dict each, as a child or `failed_run`
    gave it; failures: the parts that failed, with their reasons; quality: by precision, None where
    it was not asked for.
    """

    plan: BenchPlan
    threads: int
    automatic: str | None = None
    machine: Machine = field(default_factory=describe_machine)
    hardware: dict | None = None
    codec: dict | None = None
    runs: tuple[dict, ...] = ()
    quality: dict | None = None
    failures: dict[str, str] = field(default_factory=dict)

    @property
    def read_gb_s(self) -> float | None:
        """The best bandwidth seen during the whole benchmark, so that no limit flatters."""
        seen = [run["read_gb_s_then"] for run in self.runs if run.get("read_gb_s_then")]
        if self.hardware is not None:
            seen.append(self.hardware["read_gb_s"])
        return max(seen, default=None)

    def finished_runs(self) -> list[dict]:
        """Every run with all its figures, RUN_KEYS first; None where a figure is unknown."""
        return [finish_run(run, self.read_gb_s) for run in self.runs]

    def to_dict(self) -> dict:
        """The whole as JSON has it."""
        hardware = self.hardware or {}
        runs = self.finished_runs()
        return {
            "read_gb_s": self.read_gb_s,
            "gflops": hardware.get("gflops"),
            "serial_proxy": hardware.get("serial_proxy"),
            "codec": self.codec,
            "runs": runs,
            "pair_ratio": pair_ratios(runs),
            "quality": self.quality,
            "model": self.plan.title,
            "random_weights": self.plan.random is not None,
            "steps": self.plan.steps,
            "text_bytes": self.plan.text_bytes,
            "threads": self.threads,
            "automatic": self.automatic,
            "machine": asdict(self.machine),
            "failures": self.failures,
        }


def finish_run(run: dict, read_gb_s: float | None) -> dict:
    """A raw run with the figures that follow: limit, share of it, realtime factors, a take.

    achieved is the share of the limit by `read_gb_s`, achieved_then by the bandwidth measured
    between the run's own steps: neighbours may share the machine's memory.
    """
    done = dict.fromkeys(RUN_KEYS) | run
    if "error" in run:
        return done
    gb, seconds = run["step_bytes"] / 1e9, run["ms_per_step"] / 1000
    tokens = run["rows"] / (run["frames_per_second"] * seconds)
    codec = run["realtime_codec"]
    whole = tokens if codec is None else 1 / (1 / tokens + 1 / codec)
    done |= {
        "gb_per_step": gb,
        "achieved_gb_s": gb / seconds,
        "realtime_tokens": tokens,
        "realtime_whole": whole,
        "take_seconds": take_seconds(run, EXAMPLE_SECONDS),
    }
    if read_gb_s:
        limit = gb / read_gb_s
        done |= {"limit_ms": 1000 * limit, "achieved": limit / seconds}
        done["realtime_limit"] = run["rows"] / (run["frames_per_second"] * limit)
    if then := run.get("read_gb_s_then"):
        done["achieved_then"] = gb / then / seconds
    return done


def failed_run(precision: str, rows: int, error: str) -> dict:
    """What stands for a run that could not be made."""
    return {"precision": precision, "rows": rows, "error": error}


def take_seconds(run: dict, audio: float) -> float:
    """Seconds that a take of so much audio takes, estimated from what was measured: its frames
    and the delays behind them step by step, and decoding."""
    frames = audio * run["frames_per_second"] + run["max_delay"]
    decoding = run["rows"] * audio / run["realtime_codec"] if run["realtime_codec"] else 0.0
    return frames * run["ms_per_step"] / 1000 + decoding


def pair_ratios(runs: Sequence[dict]) -> dict[str, dict[str, float]]:
    """By precision: how many times one utterance's step the step of several together takes."""
    steps = {(run["precision"], run["rows"]): run["ms_per_step"] for run in runs}
    ratios: dict[str, dict[str, float]] = {}
    for (precision, rows), ms in steps.items():
        if rows > 1 and ms and steps.get((precision, 1)):
            ratios.setdefault(precision, {})[str(rows)] = ms / steps[precision, 1]
    return ratios


def bound_by_memory(run: dict) -> bool:
    """Whether the step's bytes can come from nowhere but memory."""
    return run["gb_per_step"] is not None and run["gb_per_step"] >= CACHED_GB


def meaning(report: BenchReport) -> str:
    """One sentence or two for the person at this machine: what auto takes, then the others."""
    runs = [run for run in report.finished_runs() if "error" not in run and run["rows"] == 1]
    if not runs:
        return "No run of one utterance was finished, so nothing can be said of a take."
    runs.sort(key=lambda run: run["take_seconds"])
    first = next((run for run in runs if run["precision"] == report.automatic), runs[0])
    chosen = ", which auto chooses" if first["precision"] == report.automatic else ""
    others = [
        f"{spoken(run['take_seconds'])} with {run['precision']}"
        for run in runs
        if run["precision"] != first["precision"]
    ]
    told = f"; {', '.join(others)}" if others else ""
    said = (
        f"On this machine a {EXAMPLE_SECONDS:.0f}-second take of {report.plan.name} takes about "
        f"{spoken(first['take_seconds'])} with {first['precision']}{chosen}{told}."
    )
    pace = " It is made faster than it plays." if first["realtime_whole"] >= 1 else ""
    return f"{said} Its first sound comes after {first['first_audio_seconds']:.1f} s.{pace}"


def spoken(seconds: float) -> str:
    """A length of time as one says it: "4 s", "1 min 20 s"."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
