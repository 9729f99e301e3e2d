"""The self-check of an accelerator as a service: queue, checkpoint, then the nine stages.

The types in `__all__` that are not defined here are those of its arguments and results: page and
command line import them from here.
"""

from __future__ import annotations

import threading
from collections.abc import Generator

from dia_demo.accelerator.process import WaitCancelled
from dia_demo.accelerator.selfcheck.report import STAGES, SelfCheckReport, StageReport, StageVerdict
from dia_demo.accelerator.selfcheck.runner import Checking
from dia_demo.accelerator.status import DeviceStatus
from dia_demo.config import RuntimeConfig
from dia_demo.engine.events import Loading, Waiting
from dia_demo.engine.family import ModelInfo
from dia_demo.services.models import fetch_with_progress
from dia_demo.services.synthesis import Synthesis

__all__ = [
    "STAGES",
    "CheckStopped",
    "Checking",
    "DeviceStatus",
    "SelfCheckReport",
    "StageReport",
    "StageVerdict",
    "check_device",
    "last_report",
]


class CheckStopped(Exception):
    """The self-check was stopped and has no result."""


def check_device(
    synthesis: Synthesis, info: ModelInfo, runtime: RuntimeConfig, cancel: threading.Event
) -> Generator[Waiting | Loading | Checking, None, SelfCheckReport]:
    """Check the runtime's device with a model, in the runtime's precision; returns the report.

    Nothing else runs at the same time, so that the race is fair. Raises InputError if the device is
    not available, and CheckStopped if `cancel` is set.
    """
    accelerator = synthesis.accelerator(runtime.device)
    with synthesis.reserve_machine(cancel) as waiting:
        yield from waiting
        info = yield from fetch_with_progress(info)
        try:
            return (yield from accelerator.check(info, runtime, cancel))
        except WaitCancelled as error:
            raise CheckStopped from error


def last_report(
    synthesis: Synthesis, info: ModelInfo, runtime: RuntimeConfig
) -> SelfCheckReport | None:
    """The report that is valid for this device, model and precision, if there is one."""
    accelerator = synthesis.accelerator(runtime.device)
    if info.folder is None or not accelerator.status().usable:
        return None
    precision = "float32" if runtime.precision == "auto" else runtime.precision
    return accelerator.store.find(accelerator.key(info.folder, precision))
