"""The nine stages in order. An exception in a stage becomes one of its findings."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from time import perf_counter

from dia_demo.accelerator.backend import explain
from dia_demo.accelerator.selfcheck import device_stages, model_stages, op_stages
from dia_demo.accelerator.selfcheck.context import TOLERANCES, CheckContext
from dia_demo.accelerator.selfcheck.recorder import StageRecorder
from dia_demo.accelerator.selfcheck.report import STAGES, StageReport, StageVerdict, finite_or_none


@dataclass(frozen=True)
class Stage:
    """`tolerance` is a number, or a key of context.TOLERANCES. A stage that is not `required` tests
    what a run does not use: it can only note."""

    number: int
    run: Callable[[CheckContext, StageRecorder], None]
    tolerance: float | str
    unit: str = "relative L2"
    required: bool = True

    @property
    def title(self) -> str:
        return STAGES[self.number]

    def tolerance_in(self, precision: str) -> float:
        if isinstance(self.tolerance, str):
            return TOLERANCES[precision][self.tolerance]
        return self.tolerance


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
    context: CheckContext, begin: Callable[[int], object] = lambda number: None
) -> Iterator[StageReport]:
    """Yield every stage's report; `begin` is called with the number of each before it runs.

    If stage 1 fails, no other stage runs; if any stage fails, the soak does not run.
    """
    failed: list[int] = []
    for stage in ALL:
        if failed and (failed[0] == 1 or stage.number == 9):
            report = _skipped_report(stage, failed[0])
        else:
            begin(stage.number)
            report = run_stage(stage, context)
        if report.verdict == StageVerdict.FAIL:
            failed.append(stage.number)
        yield report


def run_stage(stage: Stage, context: CheckContext) -> StageReport:
    """Run one stage; returns its report."""
    recorder = StageRecorder(stage.tolerance_in(context.precision), stage.unit)
    began = perf_counter()
    try:
        stage.run(context, recorder)
    except Exception as error:  # A driver may raise anything; none of it may end the check.
        recorder.add_problem(f"{recorder.current or stage.title}: {explain(error)}")
    if not recorder.findings:
        verdict = StageVerdict.PASS
    else:
        verdict = StageVerdict.FAIL if stage.required else StageVerdict.NOTE
    return StageReport(
        number=stage.number,
        title=stage.title,
        verdict=verdict,
        tolerance=recorder.tolerance,
        unit=stage.unit,
        error=finite_or_none(recorder.error) if recorder.measured else None,
        seconds=perf_counter() - began,
        findings=recorder.findings,
        facts=tuple(recorder.facts),
    )


def aborted_report(number: int, precision: str, finding: str, seconds: float) -> StageReport:
    """The report of a stage whose process hung or died, so that it could not report itself."""
    stage = ALL[number - 1]
    return StageReport(
        number=number,
        title=stage.title,
        verdict=StageVerdict.FAIL,
        tolerance=stage.tolerance_in(precision),
        unit=stage.unit,
        seconds=seconds,
        findings=(finding,),
    )


def _skipped_report(stage: Stage, failed: int) -> StageReport:
    facts = (f"not run: stage {failed} failed",)
    return StageReport(
        stage.number, stage.title, StageVerdict.SKIPPED, 0.0, stage.unit, facts=facts
    )
