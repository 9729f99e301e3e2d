"""The command `bench`: speed and memory on this machine, and its limits."""

from __future__ import annotations

import argparse
import json
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import TextIO

from dia_demo.cli.common import follow
from dia_demo.config import PRECISIONS
from dia_demo.errors import InputError, RunError
from dia_demo.families.resolve import random_sizes
from dia_demo.services.bench.plan import MEASURED, BenchPlan
from dia_demo.services.bench.report import (
    BenchReport,
    FailedRun,
    FinishedRun,
    is_memory_bound,
    pair_ratios,
    summary,
)
from dia_demo.services.bench.runner import Measuring, measure
from dia_demo.services.bench.split import as_sentence
from dia_demo.services.measurements.types import (
    CodecResult,
    HardwareResult,
    QualityResult,
    SerialProxy,
)
from dia_demo.services.settings import Settings
from dia_demo.services.worker.worker import JobStopped

# Title and format of a run's figures, in the order of the table.
COLUMNS: Sequence[tuple[str, str, Callable[[FinishedRun], str]]] = (
    ("precision", "<", lambda run: run.precision),
    ("rows", ">", lambda run: str(run.rows)),
    ("ms/step", ">", lambda run: f"{run.ms_per_step:.1f}"),
    ("fastest 1/4", ">", lambda run: f"{run.ms_per_step_fast_quartile:.1f}"),
    ("GB/step", ">", lambda run: f"{run.gb_per_step:.3f}"),
    ("limit ms", ">", lambda run: _format_or_dash(run.limit_ms, ".1f")),
    ("achieved", ">", lambda run: _format_or_dash(run.achieved, ".0%")),
    ("then", ">", lambda run: _format_or_dash(run.achieved_then, ".0%")),
    ("tokens", ">", lambda run: f"{run.realtime_tokens:.3g}x"),
    ("codec", ">", lambda run: _format_or_dash(run.realtime_codec, ".3g", "x")),
    ("whole", ">", lambda run: f"{run.realtime_whole:.3g}x"),
    ("1st audio", ">", lambda run: f"{run.first_audio_seconds:.1f} s"),
    ("load", ">", lambda run: f"{run.load_seconds:.1f} s"),
    ("memory", ">", lambda run: f"{run.peak_rss_bytes / 1e9:.2f} GB"),
    ("kernels", "<", lambda run: run.kernels),
)


def register(commands) -> None:
    """Add `bench` to the command line's commands."""
    bench = commands.add_parser("bench", help="measure speed and memory on this machine")
    bench.set_defaults(run=_bench)
    add = bench.add_argument
    add(
        "--model",
        metavar="nano | OWNER/NAME | PATH",
        help="the model to measure; nothing is downloaded",
    )
    sizes = random_sizes()
    size = f"measure random weights of a size: {', '.join(sizes)}"
    add("--random-weights", choices=sizes, metavar="SIZE", help=size)
    add("--precision", nargs="+", metavar="P", help=f"one or more of {', '.join(PRECISIONS)}")
    add("--rows", nargs="+", metavar="N", help="utterances decoded together, one or more numbers")
    add("--steps", type=int, default=BenchPlan.steps, metavar="N", help="decoder steps to time")
    add(
        "--text-bytes",
        type=int,
        default=BenchPlan.text_bytes,
        metavar="N",
        help="length of the text",
    )
    add("--threads", type=int, metavar="N")
    add("--quality", action="store_true", help="also compare each precision with float32")
    add("--json", action="store_true", help="print one JSON object instead of the tables")


def plan_of(options: argparse.Namespace, settings: Settings) -> BenchPlan:
    """The plan from the options. Raises InputError for invalid numbers."""
    if options.model is not None and options.random_weights is not None:
        raise InputError("Give --model or --random-weights, not both.")
    return BenchPlan(
        model=options.model or settings.runtime.model,
        random=options.random_weights,
        precisions=tuple(_words(options.precision)) or MEASURED,
        rows=tuple(_parse_count(word) for word in _words(options.rows)) or (1,),
        steps=options.steps,
        text_bytes=options.text_bytes,
        threads=settings.runtime.threads if options.threads is None else options.threads,
        quality=options.quality,
    )


def _words(arguments: Sequence[str] | None) -> list[str]:
    """Arguments separated by spaces or commas."""
    return [word for argument in arguments or () for word in argument.replace(",", " ").split()]


def _parse_count(word: str) -> int:
    try:
        return int(word)
    except ValueError:
        raise InputError(f"rows must be whole numbers from 1, not {word!r}.") from None


def _bench(options: argparse.Namespace) -> int:
    plan = plan_of(options, Settings.from_env())
    # With --json, stdout contains only the JSON object.
    announcer = _Announcer(sys.stderr if options.json else sys.stdout)
    report, stopped = _run(plan, announcer)
    if options.json:
        print(json.dumps(report.to_json() | {"stopped": stopped}))
    else:
        print("\n".join(as_text(report)))
    if stopped:
        print("error: stopped; what was measured until then is reported.", file=sys.stderr)
    return 1 if stopped or report.failures or not report.finished_runs() else 0


def _run(plan: BenchPlan, announcer: _Announcer) -> tuple[BenchReport, bool]:
    """The report, and whether the benchmark was stopped before it was complete."""
    cancel = threading.Event()
    try:
        return follow(measure(plan, cancel), cancel, announcer), False
    except JobStopped:
        if announcer.report is None:
            raise RunError("The benchmark was stopped before anything was measured.") from None
        return announcer.report, True


class _Announcer:
    """Prints each result as it arrives; returns the text of the status line."""

    def __init__(self, stream: TextIO) -> None:
        self.report: BenchReport | None = None
        self._stream = stream
        self._announced: set[str] = set()

    def __call__(self, event: Measuring) -> str:
        self.report = event.report
        for line in announcements(event.report):
            if line not in self._announced:
                self._announced.add(line)
                print(line, file=self._stream, flush=True)
        return f"{event.fraction:4.0%}  {event.doing}"


def announcements(report: BenchReport) -> Iterator[str]:
    """A line for each part of the report that is complete or has failed."""
    yield (
        f"{report.plan.title} on {report.machine.cpu}, {report.threads} threads, "
        f"{report.machine.simd}"
    )
    if report.hardware is not None and report.hardware.serial_proxy is not None:
        yield from _hardware(report.hardware, report.hardware.serial_proxy)
    if report.codec is not None and report.codec.complete:
        yield from _codec(report.codec)
    for run in report.runs:
        together = "one utterance" if run.rows == 1 else f"{run.rows} utterances"
        name = f"{run.precision}, {together}"
        if isinstance(run, FailedRun):
            yield f"{name}: not measured: {run.error}"
        else:
            yield (
                f"{name}: {run.ms_per_step:.1f} ms a step, first sound after "
                f"{run.first_audio_seconds:.1f} s"
            )
    for what, why in report.failures.items():
        yield f"{what}: not measured completely: {why}"


def as_text(report: BenchReport) -> Iterator[str]:
    """The lines of the report that follow its announcements."""
    runs = report.finished_runs()
    yield ""
    yield from table(runs)
    yield ""
    yield from _ratios(pair_ratios(runs))
    yield from _splits(runs)
    yield from _quality(report.quality)
    yield from _explain_columns(runs)
    yield summary(report)


def _hardware(hardware: HardwareResult, proxy: SerialProxy) -> Iterator[str]:
    rates = hardware.gflops or {}
    rate = rates["bfloat16"]
    bfloat16 = "with no bfloat16 instructions" if rate is None else f"{rate:,.0f} in bfloat16"
    yield (
        f"The machine reads {hardware.read_gb_s:.1f} GB/s and multiplies "
        f"{rates['float32']:,.0f} GFLOP/s in float32, {bfloat16}."
    )
    yield (
        f"Serial proxy (80 products of a 128-vector, {proxy.how}): "
        f"{proxy.samples_per_second:,.0f} samples/s, {proxy.of_16khz:.2f} of 16 kHz; "
        f"{proxy.gb_s:.0f} GB/s, {proxy.of_80_gb_s:.2f} of 80; "
        f"{proxy.efficiency:.0%} of the core's {proxy.peak_gflops:,.0f} GFLOP/s."
    )


def _codec(codec: CodecResult) -> Iterator[str]:
    yield (
        f"The codec decodes at {codec.realtime_whole:.2f}x realtime whole, "
        f"{codec.realtime_streamed:.2f}x as it arrives ({codec.precision}, {codec.form})."
    )


def table(runs: Sequence[FinishedRun]) -> Iterator[str]:
    """A table with a line per run."""
    if not runs:
        return
    rows = [[title for title, _, _ in COLUMNS]]
    rows += [[show(run) for _, _, show in COLUMNS] for run in runs]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    sides = [side for _, side, _ in COLUMNS]
    for row in rows:
        cells = zip(row, sides, widths, strict=True)
        yield "  ".join(f"{cell:{side}{width}}" for cell, side, width in cells).rstrip()


def _ratios(ratios: dict[str, dict[str, float]]) -> Iterator[str]:
    for precision, by_rows in ratios.items():
        listing = ", ".join(f"{rows} together {ratio:.2f}" for rows, ratio in by_rows.items())
        yield f"A step of several over a step of one, {precision}: {listing}."


def _splits(runs: Sequence[FinishedRun]) -> Iterator[str]:
    for run in runs:
        if run.parts is not None:
            together = "one utterance" if run.rows == 1 else f"{run.rows} utterances"
            yield f"{run.precision}, {together}: {as_sentence(run.parts)}."


def _quality(quality: QualityResult | None) -> Iterator[str]:
    if quality is None:
        return
    yield f"Compared with float32, on {quality.steps} steps of {quality.takes} of its own takes:"
    for precision, result in quality.precisions.items():
        if result.error is not None:
            yield f"  {precision:<9} failed: {result.error}"
            continue
        wrong = "" if result.word_error is None else f", words wrong {result.word_error:.1%}"
        kl = ", ".join(f"{nats:.1e}" for nats in result.kl)
        yield (
            f"  {precision:<9} KL {result.kl_mean:.1e} nats ({kl}), "
            f"same top-1 code {result.top1_mean:.1%}{wrong}"
        )
    if quality.word_error_note:
        yield f"  Words were not counted: {quality.word_error_note}."


def _explain_columns(runs: Sequence[FinishedRun]) -> Iterator[str]:
    if not runs:
        return
    if any(map(is_memory_bound, runs)):
        yield (
            "A step must read its weights once: GB/step over the machine's best GB/s is the limit, "
            "and achieved is the share of it that was reached; then is the share of the bandwidth "
            "measured between the run's own steps."
        )
    else:
        yield (
            "This model fits in the processor's cache: its steps are not limited by memory, so the "
            "limit says little."
        )


def _format_or_dash(value: float | None, form: str, unit: str = "") -> str:
    return "-" if value is None else f"{value:{form}}{unit}"
