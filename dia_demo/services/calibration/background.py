"""Calibrates formats of few bits of large models in the background; takes are made in int8 until it
is done."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from dia_demo.config import RuntimeConfig
from dia_demo.engine.events import Loading
from dia_demo.engine.family import ModelInfo
from dia_demo.engine.loading.memory import why_not_calibrated
from dia_demo.errors import DiaDemoError
from dia_demo.machine.background import Background, stop_all
from dia_demo.model.linear import SMALL_WEIGHTS
from dia_demo.model.weights.packed_cache import ROUNDING
from dia_demo.services.calibration.job import CalibrationJob, calibrate
from dia_demo.services.wording import about_duration
from dia_demo.services.worker.messages import JobProgress
from dia_demo.services.worker.worker import JobStopped, run_job

POLL_SECONDS = 0.5
SECONDS_TO_END = 10.0
# Before this fraction the time left is not known.
LEAST_FRACTION = 0.1

# A model's folder, and the precision.
_Weights = tuple[Path, str]
Worker = Callable[..., Generator[JobProgress, None, dict[str, Any]]]

log = logging.getLogger(__name__)


def run_calibration(
    job: CalibrationJob, cancel: threading.Event, must_pause: Callable[[], bool]
) -> Generator[JobProgress, None, dict[str, Any]]:
    """The calibration in its own process, which gives way to everything else."""
    return run_job(calibrate, job, cancel, low_priority=True, must_pause=must_pause)


class _Calibration(Background):
    """The calibration of one model: how far it is, and why it failed."""

    def __init__(self, job: CalibrationJob, worker: Worker, busy: threading.Event) -> None:
        super().__init__("calibration", self._run)
        self.job, self._worker, self._busy = job, worker, busy
        self.is_awaited = False
        self.fraction, self.problem, self.began = 0.0, "", time.monotonic()

    def _run(self) -> None:
        try:
            worker = self._worker(self.job, self.cancel, must_pause=self._must_pause)
            with closing(worker) as reports:
                for report in reports:
                    self.fraction = report.fraction
        except JobStopped:
            return
        except (DiaDemoError, OSError) as error:
            job = self.job
            log.warning("%s of %s: no calibration: %s", job.precision, job.model.name, error)
            self.problem = str(error)

    def _must_pause(self) -> bool:
        """While a take is made: two programs on the same cores would wait for each other."""
        return self._busy.is_set() and not self.is_awaited

    @property
    def progress(self) -> str:
        """Such as "34%, about 5 min left"."""
        text = f"{self.fraction:.0%}"
        if self.fraction < LEAST_FRACTION:
            return text
        seconds = time.monotonic() - self.began
        return f"{text}, {about_duration(seconds / self.fraction - seconds)} left"


class BackgroundCalibration:
    """The calibrations of this program, one at a time, each in a process of low priority.

    busy: set while anybody generates, which pauses them.
    """

    def __init__(
        self, busy: threading.Event, threads: int | None = None, worker: Worker = run_calibration
    ) -> None:
        self._busy, self._threads, self._worker = busy, threads, worker
        self._calibrations: dict[_Weights, _Calibration] = {}
        self._lock = threading.Lock()
        self._closed = False

    @property
    def running(self) -> bool:
        return any(each.is_running for each in list(self._calibrations.values()))

    def current_runtime(self, info: ModelInfo, runtime: RuntimeConfig) -> tuple[RuntimeConfig, str]:
        """The runtime that serves now, and a note for the user if it is not the one asked for.

        Where its weights have to be calibrated first and that takes minutes, it is begun in the
        background, and the runtime that serves is that of int8.
        """
        weights, in_int8 = self._to_calibrate(info, runtime), replace(runtime, precision="int8")
        if weights is None:
            return runtime, ""
        with self._lock:
            calibration = self._calibrations.get(weights)
            if calibration is None or not (calibration.is_running or calibration.problem):
                if self._closed or self.running:
                    return in_int8, NOT_BEGUN.format(runtime.precision)
                calibration = self._begin(info, weights)
        return in_int8, _note(calibration)

    def describe(self, info: ModelInfo, runtime: RuntimeConfig) -> str:
        """What a user who chose this runtime should know before the take; "" if nothing."""
        if (weights := self._to_calibrate(info, runtime)) is None:
            return ""
        calibration = self._calibrations.get(weights)
        return FIRST.format(runtime.precision) if calibration is None else _note(calibration)

    def wait(self, info: ModelInfo, runtime: RuntimeConfig) -> Iterator[Loading]:
        """Until the model is calibrated, if that has begun."""
        weights = self._to_calibrate(info, runtime)
        calibration = self._calibrations.get(weights) if weights is not None else None
        if calibration is None:
            return
        calibration.is_awaited = True
        try:
            while calibration.is_running:
                doing = f"Calibrating {runtime.precision}, once for this model"
                yield Loading(doing, calibration.fraction)
                calibration.join(POLL_SECONDS)
        finally:
            calibration.is_awaited = False

    def stop(self) -> None:
        """Cancel what is running, and wait for it; the next take in int4 begins it again."""
        with self._lock:
            calibrations = list(self._calibrations.values())
        stop_all(calibrations, SECONDS_TO_END)

    def close(self) -> None:
        """`stop`, and begin nothing afterwards."""
        self._closed = True
        self.stop()

    def _to_calibrate(self, info: ModelInfo, runtime: RuntimeConfig) -> _Weights | None:
        """The weights of the model, if it is large and they are not calibrated yet, and can be."""
        precision = runtime.precision
        if precision not in ROUNDING or precision not in info.config.precisions:
            return None
        if runtime.device != "cpu" or find_spec("numba") is None:
            return None
        if info.folder is None or not info.has_weights or info.config.prepared is not None:
            return None
        if info.family.weights.step(info.config) < SMALL_WEIGHTS:
            return None
        if info.prepared_file(precision).is_file():
            return None
        weights = info.folder, precision
        # One that has begun holds the memory that another would need.
        has_begun = weights in self._calibrations
        return weights if has_begun or not why_not_calibrated(info, precision) else None

    def _begin(self, info: ModelInfo, weights: _Weights) -> _Calibration:
        job = CalibrationJob(info, weights[1], self._threads)
        calibration = self._calibrations[weights] = _Calibration(job, self._worker, self._busy)
        calibration.start()
        return calibration


FIRST = (
    "{} needs a one-time calibration for this model. It runs in the background for a few minutes "
    "while the app is idle. Until then takes are made in int8."
)
NOT_BEGUN = (
    "This take was made in int8: {} needs a one-time calibration for this model, and another "
    "calibration is running."
)


def _note(calibration: _Calibration) -> str:
    precision = calibration.job.precision
    if calibration.problem:
        return (
            f"{precision} could not be calibrated, so takes are made in int8: "
            f"{calibration.problem} The next start of the program tries again."
        )
    return (
        f"{precision} is being calibrated for this model, once ({calibration.progress}), while the "
        "app is idle. Until then takes are made in int8."
    )
