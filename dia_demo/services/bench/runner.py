"""Running a benchmark: part after part, each in a process of its own, figures as they come."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from dataclasses import dataclass, replace

from dia_demo.engine.events import Loading, Waiting
from dia_demo.engine.placement import place
from dia_demo.errors import InputError, RunError
from dia_demo.services.bench.plan import BenchPlan
from dia_demo.services.bench.report import BenchReport, failed_run
from dia_demo.services.bench.worker import BenchStopped, JobProgress, run_child
from dia_demo.services.synthesis import Synthesis
from dia_demo.system import available_bytes
from dia_demo.task import Task

Child = Callable[[dict, threading.Event], Generator[JobProgress, None, dict]]


@dataclass(frozen=True)
class Measuring:
    """What is being measured, how much of all is done, and the report so far."""

    doing: str
    fraction: float
    report: BenchReport


@dataclass(frozen=True)
class Part:
    """One child's work: `name` for the person, `weight` its share of the time."""

    name: str
    job: dict
    weight: float = 1.0


def bench(
    synthesis: Synthesis, plan: BenchPlan, cancel: threading.Event
) -> Generator[Waiting | Loading | Measuring, None, BenchReport]:
    """`measure` in the queue's order, with no model in memory and no take beside it."""
    plan = plan.checked()
    with synthesis.alone(cancel) as waiting:
        yield from waiting
        return (yield from measure(plan, cancel))


def measure(
    plan: BenchPlan, cancel: threading.Event, child: Child = run_child
) -> Generator[Measuring, None, BenchReport]:
    """Measure what the plan asks for; yields as it goes, returns the report.

    A part that fails is reported as failed, with the figures it had until then, and the others go
    on. Raises InputError, before anything is measured, where no run of the plan can be made here,
    and BenchStopped (worker.py) when `cancel` is set; the last Measuring has what is known by then.
    """
    plan = plan.checked()
    report, parts = prepare(plan)
    whole, done = sum(part.weight for part in parts), 0.0
    for part in parts:
        yield Measuring(part.name, done / whole, report)
        before, figures, work = report, {}, Task(child(part.job, cancel))
        try:
            for step in work:
                if step.figures:
                    figures |= step.figures
                    report = _with_figures(before, part, figures)
                fraction = (done + step.fraction * part.weight) / whole
                yield Measuring(f"{part.name}: {_activity(step)}", fraction, report)
            report = _with_result(before, part, work.result)
        except RunError as error:
            if cancel.is_set():  # Ctrl-C reaches the child first.
                raise BenchStopped from error
            report = _with_failure(before, part, figures, str(error))
        finally:
            work.close()
        done += part.weight
        yield Measuring(part.name, done / whole, report)
    return report


def _activity(step: JobProgress) -> str:
    """What a part does, and for how long, so that a long silence is seen to be work."""
    return f"{step.doing}, {step.seconds} s" if step.seconds else step.doing


def prepare(plan: BenchPlan) -> tuple[BenchReport, list[Part]]:
    """The parts to be done, and a report that already holds the runs that cannot be.

    Raises InputError where none of the runs can be.
    """
    shared = {"model": plan.model, "random": plan.random, "threads": plan.threads}
    shared["folder"] = str(plan.folder) if plan.folder else None
    config, runs, impossible, refused = plan.config, [], [], None
    for precision in plan.precisions:
        try:
            placed = place(plan.runtime(precision), config)
        except InputError as error:
            refused = refused or error
            impossible += [failed_run(precision, rows, str(error)) for rows in plan.rows]
            continue
        for rows in plan.rows:
            job = {"kind": "run", "precision": placed.precision, "rows": rows}
            job |= {"steps": plan.steps, "text_bytes": plan.text_bytes}
            together = "one utterance" if rows == 1 else f"{rows} utterances"
            runs.append(Part(f"{placed.precision}, {together}", job | shared, 2.0))
    if refused is not None and not runs:
        raise refused
    threads = placed.threads if runs else plan.threads
    # What the machine has in all, however few of its cores a small model takes.
    hardware = {"kind": "hardware", "threads": plan.threads, "available": available_bytes()}
    codec = {"kind": "codec"} | shared | {"threads": threads}
    parts = [Part("The machine", hardware), Part("The codec", codec), *runs]
    if plan.quality:
        asked = {"kind": "quality", "precisions": plan.precisions, "sentences": plan.sentences}
        parts.append(Part("Quality", asked | shared, 4.0))
    return BenchReport(plan, threads, _automatic(plan), runs=tuple(impossible)), parts


def _automatic(plan: BenchPlan) -> str | None:
    try:
        return place(plan.runtime("auto"), plan.config).precision
    except InputError:
        return None


def _with_figures(report: BenchReport, part: Part, figures: dict) -> BenchReport:
    """The report with what a part that still runs has found. A run counts when it is complete."""
    return report if part.job["kind"] == "run" else _with_result(report, part, dict(figures))


def _with_result(report: BenchReport, part: Part, result: dict) -> BenchReport:
    match part.job["kind"]:
        case "hardware":
            return replace(report, hardware=result)
        case "codec":
            return replace(report, codec=result)
        case "quality":
            return replace(report, quality=result)
    return replace(report, runs=(*report.runs, result))


def _with_failure(report: BenchReport, part: Part, figures: dict, error: str) -> BenchReport:
    if part.job["kind"] == "run":
        failed = figures | failed_run(part.job["precision"], part.job["rows"], error)
        return replace(report, runs=(*report.runs, failed))
    report = _with_result(report, part, figures) if figures else report
    return replace(report, failures=report.failures | {part.name: error})
