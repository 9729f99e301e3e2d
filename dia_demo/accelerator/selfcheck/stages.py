"""The nine stages in order, and how one is run: whatever it raises becomes its finding."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from time import perf_counter

from dia_demo.accelerator.backend import explain
from dia_demo.accelerator.selfcheck import device_stages, model_stages, op_stages
from dia_demo.accelerator.selfcheck.context import TOLERANCES, Subject
from dia_demo.accelerator.selfcheck.recorder import Tally
from dia_demo.accelerator.selfcheck.report import (
    FAIL,
    NOTE,
    PASS,
    SKIPPED,
    STAGES,
    StageReport,
    finite,
)


@dataclass(frozen=True)
class Stage:
    """`tolerance` is a number, or a name in subject.TOLERANCES. What is not `required` only tells:
    the run does without it."""

    number: int
    run: Callable[[Subject, Tally], None]
    tolerance: float | str
    unit: str = "relative L2"
    required: bool = True

    @property
    def title(self) -> str:
        return STAGES[self.number]


ALL = (
    Stage(1, device_stages.device, 1e-6),
    Stage(2, op_stages.linears, "linear"),
    Stage(3, op_stages.attention, "attention", "relative L2 of the worst head"),
    Stage(4, op_stages.elementwise, "elementwise"),
    Stage(5, device_stages.selection, 1e-5, required=False),
    Stage(6, device_stages.copies, 1e-6),
    Stage(7, device_stages.codec_layers, 1e-3, "relative L2 (60 dB)", required=False),
    Stage(8, model_stages.teacher_forced, "kl", "nats of KL divergence"),
    Stage(9, model_stages.soak, 0.01, "growth of memory"),
)


def run_stages(
    subject: Subject, begin: Callable[[int], object] = lambda number: None
) -> Iterator[StageReport]:
    """Every stage's report, as it is made; `begin` is told the number of each before it runs.

    Without a device nothing follows stage 1, and nothing is soaked that is wrong already.
    """
    failed: list[int] = []
    for stage in ALL:
        if failed and (failed[0] == 1 or stage.number == 9):
            report = _skipped(stage, failed[0])
        else:
            begin(stage.number)
            report = run_stage(stage, subject)
        if report.verdict == FAIL:
            failed.append(stage.number)
        yield report


def run_stage(stage: Stage, subject: Subject) -> StageReport:
    """One stage from its first probe to its verdict."""
    tally = Tally(_tolerance(stage, subject.precision), stage.unit)
    began = perf_counter()
    try:
        stage.run(subject, tally)
    except Exception as error:  # A driver raises what it likes; none of it may end the check.
        tally.wrong(f"{tally.now or stage.title}: {explain(error)}")
    wrong = NOTE if not stage.required else FAIL
    return StageReport(
        number=stage.number,
        title=stage.title,
        verdict=wrong if tally.findings else PASS,
        tolerance=tally.tolerance,
        unit=stage.unit,
        error=finite(tally.error) if tally.measured else None,
        seconds=perf_counter() - began,
        findings=tally.findings,
        facts=tuple(tally.facts),
    )


def broken_off(number: int, precision: str, finding: str, seconds: float) -> StageReport:
    """The report of a stage whose process hung or died: it cannot report itself."""
    stage = ALL[number - 1]
    return StageReport(
        number=number,
        title=stage.title,
        verdict=FAIL,
        tolerance=_tolerance(stage, precision),
        unit=stage.unit,
        seconds=seconds,
        findings=(finding,),
    )


def _tolerance(stage: Stage, precision: str) -> float:
    named = isinstance(stage.tolerance, str)
    return TOLERANCES[precision][stage.tolerance] if named else stage.tolerance


def _skipped(stage: Stage, because: int) -> StageReport:
    told = (f"not run: stage {because} failed",)
    return StageReport(stage.number, stage.title, SKIPPED, 0.0, stage.unit, facts=told)
