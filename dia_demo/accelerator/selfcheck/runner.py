"""The self-check in a process of its own, with a limit of time for each stage."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from multiprocessing.connection import Connection
from pathlib import Path
from time import perf_counter

import torch

from dia_demo.accelerator.backend import Backend, Card, explain
from dia_demo.accelerator.process import DeviceProcess, Failure
from dia_demo.accelerator.selfcheck.context import Plan, Subject
from dia_demo.accelerator.selfcheck.race import race
from dia_demo.accelerator.selfcheck.report import (
    FAIL,
    STAGES,
    Race,
    Report,
    StageReport,
    VerdictKey,
    with_stage,
)
from dia_demo.accelerator.selfcheck.stages import broken_off, run_stages
from dia_demo.errors import DiaDemoError
from dia_demo.model import checkpoint
from dia_demo.task import result_of


@dataclass(frozen=True)
class CheckSpec:
    """Everything a check needs, so that it can be sent to another process.

    open: makes the Backend there. folder holds the checkpoint, `model` is what the person calls it.
    """

    open: Callable[[], Backend]
    folder: Path
    model: str
    key: VerdictKey
    card: Card
    threads: int
    plan: Plan = field(default_factory=Plan)


@dataclass(frozen=True)
class Checking:
    """What is being done, how much of all is done, and the report so far."""

    doing: str
    fraction: float
    report: Report


def check(
    spec: CheckSpec, cancel: threading.Event | None = None
) -> Generator[Checking, None, Report]:
    """Run the check in a process of its own; yields as it goes, returns the report.

    A stage during which the process hangs or dies has failed, and the report says how. Raises
    Stopped when `cancel` is set; then nothing was found out.
    """
    began = perf_counter()
    now = datetime.now().astimezone().isoformat(timespec="seconds")
    report = Report(spec.key, spec.card, spec.model, now)
    process = DeviceProcess(_work, spec)
    doing, number, limit, since = "loading the model", 0, spec.plan.loading_limit, began
    try:
        while doing:
            yield Checking(doing, len(report.stages) / (len(STAGES) + 1), report)
            answer = process.receive(limit, doing, cancel)
            limit, since = spec.plan.stage_limit, perf_counter()
            match answer:
                case int():
                    number = answer
                    doing = f"{number}. {STAGES[number]}"
                case StageReport():
                    report, number = with_stage(report, answer), 0
                case str():
                    doing, limit = answer, spec.plan.loading_limit
                case Race():
                    report = replace(report, race=answer)
                case None:
                    doing = ""
    except DiaDemoError as error:
        if number:
            stage = broken_off(number, spec.key.precision, str(error), perf_counter() - since)
            report = with_stage(report, stage)
        else:
            report = replace(report, failure=str(error))
    finally:
        process.close()
    return replace(report, seconds=perf_counter() - began)


def _work(pipe: Connection, spec: CheckSpec) -> None:
    """In the device's process: numbers of stages begun, their reports, the race, then None."""
    torch.set_num_threads(spec.threads)
    try:
        backend = spec.open()
        model = result_of(checkpoint.load(spec.folder, "float32"))
        subject = Subject(backend, model, spec.key.precision, spec.card, spec.plan)
        del model
        verdicts = set()
        for report in run_stages(subject, begin=pipe.send):
            pipe.send(report)
            verdicts.add(report.verdict)
        if FAIL not in verdicts:
            pipe.send("the race against the CPU")
            pipe.send(race(subject, spec.folder, spec.threads))
        pipe.send(None)
    except Exception as error:
        with suppress(OSError):  # Nobody may be left to be told.
            pipe.send(Failure(explain(error)))
