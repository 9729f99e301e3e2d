"""The HTML of the Machine tab: a bar for each run, achieved against the limit, and the figures.

Every text is escaped here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from dia_demo.services.bench.report import (
    EXAMPLE_SECONDS,
    BenchReport,
    FailedRun,
    FinishedRun,
    bound_by_memory,
    meaning,
)
from dia_demo.services.bench.types import HardwareResult
from dia_demo.services.wording import duration
from dia_demo.ui import html
from dia_demo.ui.status import factor

INTRO = (
    "Each step of speech reads all of the model’s weights from memory once. Memory bandwidth is "
    "therefore the limit, and fewer bits per weight raise it. This benchmark measures the limit "
    "of this machine and how close the program comes to it."
)
NOTHING_YET = "No measurements yet."
NO_INSTRUCTIONS = "not measured: this processor does not support it"


def intro() -> str:
    """The title of the tab and what it measures."""
    return f'<h2 class="machine-title">What this machine can do</h2><p>{escape(INTRO)}</p>'


def nothing_yet() -> str:
    """In place of a report."""
    return f'<p class="machine-empty">{escape(NOTHING_YET)}</p>'


def report_html(report: BenchReport, finished: bool) -> str:
    """The results so far: their meaning in a sentence, the chart, the figures of the machine."""
    runs = report.all_runs()
    if not runs and report.hardware is None:
        return nothing_yet()
    parts = [f'<p class="machine-meaning">{escape(meaning(report))}</p>'] if finished else []
    if runs:
        parts.append(picture(runs, loaded=report.plan.random is None))
    parts.append(html.figures_table(machine_rows(report)))
    failed = (f"{what}: not measured completely. {why}" for what, why in report.failures.items())
    parts += [f'<p class="machine-failed">{escape(sentence)}</p>' for sentence in failed]
    return f'<div class="machine-report">{"".join(parts)}</div>'


def picture(runs: Sequence[FinishedRun | FailedRun], loaded: bool = True) -> str:
    """Bars of realtime factors on one scale: the limit set by the memory, the speed achieved."""
    done = [run for run in runs if isinstance(run, FinishedRun)]
    limited = any(map(bound_by_memory, done))
    # For weights that fit into the cache the limit is so high that it would dwarf the bars.
    ends = [run.realtime_limit for run in done if limited and run.realtime_limit]
    scale = max([1.0, *ends, *(run.realtime_tokens for run in done)])
    rows = "".join(_row(run, scale, limited, loaded) for run in runs)
    key = '<span class="key reached"></span> achieved'
    if limited:
        key += ' <span class="key possible"></span> limit set by the memory'
    else:
        key += " (this model fits into the processor’s cache, so memory sets no limit)"
    return (
        f'<figure class="machine-picture"><figcaption>Decoding speed as a realtime factor; at the '
        f'line (1x) it keeps up with playback. <span class="keys">{key}</span></figcaption>'
        f"<ul>{rows}</ul></figure>"
    )


def _row(run: FinishedRun | FailedRun, scale: float, limited: bool, loaded: bool) -> str:
    together = "" if run.rows == 1 else f", {run.rows} takes at once"
    name = escape(f"{run.precision}{together}")
    if isinstance(run, FailedRun):
        failure = f'<p class="machine-failed">Not measured: {escape(run.error)}</p>'
        return f'<li><div class="run-name">{name}</div>{failure}</li>'
    reached, limit = run.realtime_tokens, run.realtime_limit
    speed = f"{factor(reached)} realtime"
    possible = ""
    if limited and limit:
        speed += f", {run.achieved:.0%} of the limit of {factor(limit)}"
        possible = f'<span class="possible" style="width: {_percent(limit, scale)}"></span>'
    return (
        f'<li><div class="run-name">{name}</div>'
        f'<div class="run-bar" role="img" aria-label="{name}: {escape(speed)}">{possible}'
        f'<span class="reached" style="width: {_percent(reached, scale)}"></span>'
        f'<span class="realtime" style="left: {_percent(1.0, scale)}"></span></div>'
        f'<div class="run-told">{escape(speed)}</div>'
        f'<div class="run-more">{escape(_more(run, loaded))}</div></li>'
    )


def _more(run: FinishedRun, loaded: bool) -> str:
    """More figures of a run, in one line. loaded: the model was loaded from a checkpoint."""
    parts = [
        f"{EXAMPLE_SECONDS:.0f}-second take: about {duration(run.take_seconds, tenths=True)}",
        f"first audio after {run.first_audio_seconds:.1f} s",
        f"{run.ms_per_step:.1f} ms per step",
        f"memory {run.peak_rss_bytes / 1e9:.1f} GB",
    ]
    if loaded:
        parts.append(f"loads in {run.load_seconds:.1f} s")
    return " · ".join(parts)


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
