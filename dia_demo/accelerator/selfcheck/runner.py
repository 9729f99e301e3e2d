"""Runs the self-check in a separate process, with a time limit for each stage."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from multiprocessing.connection import Connection
from time import perf_counter

import torch

from dia_demo.accelerator.backend import Backend, Card, explain
from dia_demo.accelerator.process import DeviceProcess
from dia_demo.accelerator.selfcheck.context import CheckContext, CheckPlan
from dia_demo.accelerator.selfcheck.race import race
from dia_demo.accelerator.selfcheck.report import (
    STAGES,
    Race,
    SelfCheckReport,
    StageReport,
    StageVerdict,
    VerdictKey,
    add_stage,
)
from dia_demo.accelerator.selfcheck.stages import aborted_report, run_stages
from dia_demo.engine.family import ModelInfo
from dia_demo.errors import DiaDemoError
from dia_demo.machine.child_process import Failure
from dia_demo.model.weights import checkpoint
from dia_demo.task import result_of


@dataclass(frozen=True)
class CheckSpec:
    """Everything a check needs; it is sent to the other process.

    open: creates the Backend there.
    """

    open: Callable[[], Backend]
    model: ModelInfo
    key: VerdictKey
    card: Card
    threads: int
    plan: CheckPlan = field(default_factory=CheckPlan)


@dataclass(frozen=True)
class Checking:
    """Progress: what runs now, the fraction that is done, and the report so far."""

    doing: str
    fraction: float
    report: SelfCheckReport


def check(
    spec: CheckSpec, cancel: threading.Event | None = None
) -> Generator[Checking, None, SelfCheckReport]:
    """Run the check in a separate process; yields its progress, returns the report.

    A stage during which the process hangs or dies has failed, and the report says how. Raises
    WaitCancelled when `cancel` is set; then there is no result.
    """
    began = perf_counter()
    now = datetime.now().astimezone().isoformat(timespec="seconds")
    report = SelfCheckReport(spec.key, spec.card, spec.model.name, now)
    process = DeviceProcess(_run, spec)
    doing, number, limit, stage_began = "loading the model", 0, spec.plan.loading_limit, began
    try:
        while doing:
            yield Checking(doing, len(report.stages) / (len(STAGES) + 1), report)
            answer = process.answer(limit, doing, cancel)
            limit, stage_began = spec.plan.stage_limit, perf_counter()
            match answer:
                case int():
                    number = answer
                    doing = f"{number}. {STAGES[number]}"
                case StageReport():
                    report, number = add_stage(report, answer), 0
                case str():
                    doing, limit = answer, spec.plan.loading_limit
                case Race():
                    report = replace(report, race=answer)
                case None:
                    doing = ""
    except DiaDemoError as error:
        if number:
            seconds = perf_counter() - stage_began
            report = add_stage(
                report, aborted_report(number, spec.key.precision, str(error), seconds)
            )
        else:
            report = replace(report, failure=str(error))
    finally:
        process.close()
    return replace(report, seconds=perf_counter() - began)


def _run(pipe: Connection, spec: CheckSpec) -> None:
    """Runs in the device's process. Sends the number of each stage, then its report; what follows
    the stages as a str, the Race, and None at the end."""
    torch.set_num_threads(spec.threads)
    try:
        backend = spec.open()
        folder, config = spec.model.folder, spec.model.config
        assert folder is not None, "its files are on this machine"
        model = result_of(checkpoint.load(folder, "float32", config=config))
        context = CheckContext(backend, model, spec.key.precision, spec.card, spec.plan)
        del model  # The race frees the context's reference.
        verdicts = set()
        for report in run_stages(context, begin=pipe.send):
            pipe.send(report)
            verdicts.add(report.verdict)
        if StageVerdict.FAIL not in verdicts:
            pipe.send("the race against the CPU")
            pipe.send(race(context, spec.model, spec.threads))
        pipe.send(None)
    except Exception as error:
        with suppress(OSError):  # The program may have closed the pipe.
            pipe.send(Failure(explain(error)))
