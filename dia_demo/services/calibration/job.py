"""Calibrates int4 in a worker, and stores the prepared weights."""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter

from dia_demo.engine.calibration import make_takes
from dia_demo.engine.family import ModelInfo
from dia_demo.engine.memory import why_not_calibrated
from dia_demo.errors import RunError
from dia_demo.machine.system import granted_cores
from dia_demo.model.loading import Calibrator, prepare
from dia_demo.services.worker.messages import ReportProgress
from dia_demo.task import Task

# The fraction of the whole at which a stage begins, and how much of it the stage is, by its last
# words; about as long as the stages take for Dia-1.6B. Other stages report nothing.
SHARES = {"test takes": (0.05, 0.1), "rounding the weights": (0.15, 0.85)}


@dataclass(frozen=True)
class CalibrationJob:
    """threads: None for all cores."""

    model: ModelInfo
    threads: int | None = None


@dataclass(frozen=True)
class CalibrationResult:
    """seconds: how long it took."""

    seconds: float


def calibrate(job: CalibrationJob, report_progress: ReportProgress) -> CalibrationResult:
    """Calibrate the job's model. Raises RunError if it cannot be stored, or if
    there is too little memory."""
    info, began = job.model, perf_counter()
    assert info.folder is not None, "its files are on this machine"
    if why_not := why_not_calibrated(info):
        raise RunError(why_not)
    calibrator = Calibrator(make_takes)
    threads = job.threads or granted_cores()
    task = Task(prepare(info.folder, info.config, "int4", threads, calibrator))
    for stage, fraction in task:
        for ending, (start, share) in SHARES.items():
            if stage.endswith(ending):
                report_progress("Calibrating int4", start + share * fraction)
    if task.result.note:
        raise RunError(task.result.note)
    return CalibrationResult(perf_counter() - began)
