"""The HTML of the Machine tab: a bar for each run, achieved against the limit, and the figures.

Every text is escaped here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date
from html import escape

from dia_demo.services.bench.report import (
    EXAMPLE_SECONDS,
    BenchReport,
    FailedRun,
    FinishedRun,
    is_memory_bound,
    summary,
    take_seconds,
)
from dia_demo.services.bench.split import as_sentence
from dia_demo.services.measurements.types import HardwareResult
from dia_demo.services.wording import duration
from dia_demo.ui import html
from dia_demo.ui.status import factor

INTRO = "How fast this machine generates speech, with each precision."
LIMIT = (
    "Each step of speech reads all of the model’s weights from memory once. Memory bandwidth is "
    "therefore the limit, and fewer bits per weight raise it."
)
NOTHING_YET = "No measurements yet."
NO_INSTRUCTIONS = "not measured: this processor does not support it"


def intro(torch_remark: str = "") -> str:
    """The title of the tab, what it measures, and a remark on torch's build if there is one."""
    remark = f'<p class="machine-remark">torch {escape(torch_remark)}.</p>' if torch_remark else ""
    return f'<h2 class="machine-title">What this machine can do</h2><p>{escape(INTRO)}</p>{remark}'


def nothing_yet() -> str:
    """In place of a report."""
    return f'<p class="machine-empty">{escape(NOTHING_YET)}</p>'


def report_html(
    report: BenchReport | None, finished: bool, others: str = "", day: date | None = None
) -> str:
    """The results so far: what is known of other models, what they mean in a sentence, the chart;
    the figures are folded.

    others: sentences about models that the report is not about. day: when a kept report was
    measured.
    """
    sentences = [others] if others else []
    if report is not None and finished:
        sentences.append(summary(report))
    parts = [f'<p class="machine-meaning">{escape(sentence)}</p>' for sentence in sentences]
    runs = report.all_runs() if report else []
    if report is None or (not runs and report.hardware is None):
        parts.append(nothing_yet())
    else:
        if day is not None:
            title = f"{report.plan.title}, measured on {day.day} {day:%B %Y}."
            parts.append(f'<p class="machine-empty">{escape(title)}</p>')
        if runs:
            parts.append(picture(runs))
        for what, why in report.failures.items():
            failure = f"{what}: not measured completely. {why}"
            parts.append(f'<p class="machine-failed">{escape(failure)}</p>')
        parts.append(_details(report, runs))
    return f'<div class="machine-report">{"".join(parts)}</div>'


def picture(runs: Sequence[FinishedRun | FailedRun]) -> str:
    """Bars of whole takes on one scale, as realtime factors: what was measured, and the limit set
    by the memory behind it."""
    done = [run for run in runs if isinstance(run, FinishedRun)]
    limited = any(map(is_memory_bound, done))
    # For weights that fit into the cache the limit is so high that it would dwarf the bars.
    scale = max(
        [1.0, *map(take_rate, done), *(rate for run in done if limited and (rate := limit(run)))]
    )
    rows = "".join(_row(run, scale, limited) for run in runs)
    key = (
        ' <span class="keys"><span class="key reached"></span> measured '
        '<span class="key possible"></span> possible with this memory</span>'
    )
    return (
        f'<figure class="machine-picture"><figcaption>How fast {EXAMPLE_SECONDS:.0f} seconds of '
        f"speech are generated; a bar that reaches the line keeps up with playback."
        f"{key if limited else ''}</figcaption><ul>{rows}</ul></figure>"
    )


def take_rate(run: FinishedRun) -> float:
    """Seconds of audio per second of a whole take: the figure that the sentence gives as a time."""
    return run.rows * EXAMPLE_SECONDS / run.take_seconds


def limit(run: FinishedRun) -> float | None:
    """The same if each step took as long as reading its bytes; None if that is not known."""
    if run.limit_ms is None:
        return None
    return run.rows * EXAMPLE_SECONDS / take_seconds(run, EXAMPLE_SECONDS, run.limit_ms)


def _name(run: FinishedRun | FailedRun) -> str:
    return run.precision if run.rows == 1 else f"{run.precision}, {run.rows} takes at once"


def _row(run: FinishedRun | FailedRun, scale: float, limited: bool) -> str:
    name = escape(_name(run))
    if isinstance(run, FailedRun):
        failure = f'<p class="machine-failed">Not measured: {escape(run.error)}</p>'
        return f'<li><div class="run-name">{name}</div>{failure}</li>'
    reached, most = take_rate(run), limit(run)
    speed = f"{duration(run.take_seconds, tenths=True)}, {factor(reached)} realtime"
    possible = ""
    if limited and most:
        possible = f'<span class="possible" style="width: {_percent(most, scale)}"></span>'
    more = (
        f"first audio after {run.first_audio_seconds:.1f} s · "
        f"memory {run.peak_rss_bytes / 1e9:.1f} GB"
    )
    return (
        f'<li><div class="run-name">{name}</div>'
        f'<div class="run-bar" role="img" aria-label="{name}: {escape(speed)}">{possible}'
        f'<span class="reached" style="width: {_percent(reached, scale)}"></span>'
        f'<span class="realtime" style="left: {_percent(1.0, scale)}"></span></div>'
        f'<div class="run-told">{escape(speed)}</div>'
        f'<div class="run-more">{escape(more)}</div></li>'
    )


def _details(report: BenchReport, runs: Sequence[FinishedRun | FailedRun]) -> str:
    """The figures behind the chart, folded."""
    rows = [*_run_rows(report, runs), *machine_rows(report)]
    return (
        '<details class="machine-details"><summary>Details</summary>'
        f"<p>{escape(LIMIT)}</p>{html.figures_table(rows)}</details>"
    )


def _run_rows(
    report: BenchReport, runs: Sequence[FinishedRun | FailedRun]
) -> Iterator[tuple[str, str]]:
    """A step of each run beside the limit, as (name, value) pairs."""
    for run in runs:
        if isinstance(run, FinishedRun):
            parts = [f"{run.ms_per_step:.1f} ms"]
            if run.achieved and is_memory_bound(run):
                parts.append(f"{run.achieved:.0%} of the memory’s limit")
            yield f"Step, {_name(run)}", ", ".join(parts)
            if run.parts is not None:
                yield f"Parts, {_name(run)}", as_sentence(run.parts)
            if report.plan.random is None:
                yield f"Loading, {_name(run)}", f"{run.load_seconds:.1f} s"


def _percent(value: float, scale: float) -> str:
    return f"{min(100.0, 100 * value / scale):.2f}%"


def machine_rows(report: BenchReport) -> list[tuple[str, str]]:
    """The figures of the machine as (name, value) pairs."""
    rows: list[tuple[str, str]] = []
    if report.hardware is not None:
        rows += _hardware_rows(report.hardware, report.read_gb_s)
    if report.codec is not None:
        rows += [
            (title, f"{factor(rate)} realtime")
            for title, rate in (
                ("Codec, whole take", report.codec.realtime_whole),
                ("Codec, streamed", report.codec.realtime_streamed),
            )
            if rate is not None
        ]
    rows.append(("Threads", str(report.threads)))
    return rows


def _hardware_rows(hardware: HardwareResult, read_gb_s: float | None) -> Iterator[tuple[str, str]]:
    """The figures of the hardware so far."""
    rates = hardware.gflops or {}
    yield "Memory bandwidth", f"{read_gb_s:.0f} GB/s"
    for precision in ("float32", "bfloat16"):
        if precision in rates:
            rate = rates[precision]
            known = NO_INSTRUCTIONS if rate is None else f"{rate:,.0f} GFLOP/s"
            yield f"Matrix products, {precision}", known
