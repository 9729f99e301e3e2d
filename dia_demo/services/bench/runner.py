"""Runs a benchmark: its parts in order, each in its own process, with results as they arrive."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from dataclasses import dataclass, replace
from typing import Any

from dia_demo.engine.events import Loading, Waiting
from dia_demo.engine.loading.placement import place_on_cpu, remember_losses, remember_steps
from dia_demo.errors import InputError, RunError
from dia_demo.families.resolve import random_sizes
from dia_demo.machine.system import available_bytes
from dia_demo.services.bench.last_report import keep_report
from dia_demo.services.bench.plan import BenchPlan
from dia_demo.services.bench.report import BenchReport, FailedRun
from dia_demo.services.measurements import codec, hardware, quality, steps
from dia_demo.services.measurements.types import (
    CodecResult,
    HardwareResult,
    Job,
    JobKind,
    QualityResult,
    RunResult,
)
from dia_demo.services.synthesis import Synthesis
from dia_demo.services.worker.messages import JobProgress
from dia_demo.services.worker.worker import JobStopped, run_job
from dia_demo.task import Task
from dia_demo.untrusted import parse_as

Worker = Callable[[Job, threading.Event], Generator[JobProgress, None, dict[str, Any]]]
WORK = {
    JobKind.HARDWARE: hardware.run_job,
    JobKind.CODEC: codec.run_job,
    JobKind.RUN: steps.run_job,
    JobKind.QUALITY: quality.run_job,
}


def run_measurement(
    job: Job, cancel: threading.Event
) -> Generator[JobProgress, None, dict[str, Any]]:
    """A measurement in its own process."""
    return run_job(WORK[job.kind], job, cancel)


@dataclass(frozen=True)
class Measuring:
    """What is being measured, the fraction of the benchmark that is done, and the report so far."""

    doing: str
    fraction: float
    report: BenchReport


@dataclass(frozen=True)
class BenchPart:
    """The work of one process. name: for people. weight: its share of the time."""

    name: str
    job: Job
    weight: float = 1.0


def bench(
    synthesis: Synthesis, plan: BenchPlan, cancel: threading.Event
) -> Generator[Waiting | Loading | Measuring, None, BenchReport]:
    """`measure`, after waiting in the queue, with no model in memory and no other run. The result
    is stored and updates the estimates of takes."""
    plan = plan.check()
    with synthesis.reserve_machine(cancel) as waiting:
        yield from waiting
        report = yield from measure(plan, cancel)
    keep_report(report)
    if name := model_of(plan):
        for run in report.finished_runs():
            synthesis.speed.learn_run(name, run)
    return report


def model_of(plan: BenchPlan) -> str | None:
    """The model that the plan's runs represent; speed does not depend on the values of weights."""
    if plan.random is None:
        return plan.model
    return random_sizes()[plan.random].stands_for


def measure(
    plan: BenchPlan, cancel: threading.Event, worker: Worker = run_measurement
) -> Generator[Measuring, None, BenchReport]:
    """Run the plan; yields its progress, returns the report.

    A part that fails is reported with the figures it had until then, and the others continue.
    Raises InputError, before anything is measured, if no run of the plan is possible here, and
    JobStopped if `cancel` is set; the last Measuring then has the results so far.
    """
    plan = plan.check()
    report, parts = prepare(plan)
    whole, done = sum(part.weight for part in parts), 0.0
    for part in parts:
        yield Measuring(part.name, done / whole, report)
        before, known, work = report, dict[str, Any](), Task(worker(part.job, cancel))
        try:
            for step in work:
                if step.results:
                    known |= step.results
                    report = _add_known(before, part, known)
                fraction = (done + step.fraction * part.weight) / whole
                yield Measuring(f"{part.name}: {_activity(step)}", fraction, report)
            report = _add_result(before, part, work.result)
        except RunError as error:
            if cancel.is_set():  # Ctrl-C reaches the worker first.
                raise JobStopped from error
            report = _add_failure(before, part, known, str(error))
        finally:
            work.close()
        done += part.weight
        yield Measuring(part.name, done / whole, report)
    return _update_choice(report)


def _update_choice(report: BenchReport) -> BenchReport:
    """The report with what auto chooses from now on, by the steps that were measured."""
    alone = [run for run in report.finished_runs() if run.rows == 1]
    if alone:
        steps = {run.precision: run.ms_per_step for run in alone}
        remember_steps(report.plan.info.config, alone[0].threads, steps)
    if report.quality is not None:
        compared = report.quality.precisions.items()
        losses = {name: its.kl_mean for name, its in compared if its.error is None}
        remember_losses(report.plan.info, losses)
    return replace(report, automatic=_auto_precision(report.plan))


def _activity(step: JobProgress) -> str:
    """What a part is doing, and for how many seconds, so that a long step does not look stuck."""
    return f"{step.doing}, {step.seconds} s" if step.seconds else step.doing


def prepare(plan: BenchPlan) -> tuple[BenchReport, list[BenchPart]]:
    """The parts to run, and a report that already contains the runs that are not possible.

    Raises InputError if none of the runs is possible.
    """
    info, runs, impossible, refused = plan.info, [], [], None
    shared = Job(
        JobKind.RUN,
        plan.model,
        plan.random,
        plan.threads,
        steps=plan.steps,
        text_bytes=plan.text_bytes,
    )
    for precision in plan.precisions:
        try:
            placed = place_on_cpu(plan.runtime(precision), info)
        except InputError as error:
            refused = refused or error
            impossible += [FailedRun(precision, rows, str(error)) for rows in plan.rows]
            continue
        for rows in plan.rows:
            together = "one utterance" if rows == 1 else f"{rows} utterances"
            job = replace(shared, precision=placed.precision, rows=rows)
            runs.append(BenchPart(f"{placed.precision}, {together}", job, 2.0))
    if refused is not None and not runs:
        raise refused
    threads = placed.threads if runs else plan.threads
    # The rates of the whole machine, even if a small model uses only some of its cores.
    hardware = Job(JobKind.HARDWARE, threads=plan.threads, available_bytes=available_bytes())
    codec = replace(shared, kind=JobKind.CODEC, threads=threads)
    parts = [BenchPart("The machine", hardware), BenchPart("The codec", codec), *runs]
    if plan.quality:
        quality = replace(shared, precisions=plan.precisions, sentences=plan.sentences)
        parts.append(BenchPart("Quality", replace(quality, kind=JobKind.QUALITY), 4.0))
    return BenchReport(plan, threads, _auto_precision(plan), runs=tuple(impossible)), parts


def _auto_precision(plan: BenchPlan) -> str | None:
    try:
        return place_on_cpu(plan.runtime("auto"), plan.info).precision
    except InputError:
        return None


def _add_known(report: BenchReport, part: BenchPart, known: dict[str, Any]) -> BenchReport:
    """The report with the results so far of a running part. A run is added when it is complete."""
    return report if part.job.kind == JobKind.RUN else _add_result(report, part, known)


def _add_result(report: BenchReport, part: BenchPart, result: dict[str, Any]) -> BenchReport:
    match part.job.kind:
        case JobKind.HARDWARE:
            return replace(report, hardware=parse_as(HardwareResult, result))
        case JobKind.CODEC:
            return replace(report, codec=parse_as(CodecResult, result))
        case JobKind.QUALITY:
            return replace(report, quality=parse_as(QualityResult, result))
    return replace(report, runs=(*report.runs, parse_as(RunResult, result)))


def _add_failure(
    report: BenchReport, part: BenchPart, known: dict[str, Any], error: str
) -> BenchReport:
    if part.job.kind == JobKind.RUN:
        failed = FailedRun(part.job.precision, part.job.rows, error, known)
        return replace(report, runs=(*report.runs, failed))
    report = _add_result(report, part, known) if known else report
    return replace(report, failures=report.failures | {part.name: error})
