"""Calibrates a format of few bits in a worker, and stores the prepared weights."""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter

from dia_demo.engine.family import ModelInfo
from dia_demo.engine.loading.memory import why_not_calibrated
from dia_demo.errors import RunError
from dia_demo.machine.system import granted_cores
from dia_demo.model.loading import Stages
from dia_demo.model.weights import packed_cache
from dia_demo.services.worker.messages import ReportProgress
from dia_demo.task import Task

# The fraction of the whole at which a stage begins, and how much of it the stage is, by its last
# words; about as long as the stages take for Dia-1.6B. Other stages report nothing.
SHARES = {"test takes": (0.05, 0.1), "rounding the weights": (0.15, 0.85)}


@dataclass(frozen=True)
class CalibrationJob:
    """threads: None for all cores."""

    model: ModelInfo
    precision: str
    threads: int | None = None


@dataclass(frozen=True)
class CalibrationResult:
    """seconds: how long it took."""

    seconds: float


def calibrate(job: CalibrationJob, report_progress: ReportProgress) -> CalibrationResult:
    """Calibrate the job's model. Raises RunError if it cannot be stored, or if
    there is too little memory."""
    began, task = perf_counter(), Task(_prepare(job))
    if why_not := why_not_calibrated(job.model, job.precision):
        raise RunError(why_not)
    for stage, fraction in task:
        for ending, (start, share) in SHARES.items():
            if stage.endswith(ending):
                report_progress(f"Calibrating {job.precision}", start + share * fraction)
    if task.result:
        raise RunError(task.result)
    return CalibrationResult(perf_counter() - began)


def _prepare(job: CalibrationJob) -> Stages[str]:
    """Why there are no better weights than before; "" where they are stored."""
    info, precision = job.model, job.precision
    assert info.folder is not None, "its files are on this machine"
    prepared = yield from info.family.prepare(info, precision, job.threads or granted_cores())
    if prepared.why_not:
        return prepared.why_not
    file = info.prepared_file(precision)
    return packed_cache.write(prepared.network, file, info.folder, precision)
