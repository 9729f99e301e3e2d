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
from dia_demo.engine.model_loader import as_loading
from dia_demo.errors import DiaDemoError
from dia_demo.hub.fetch import fetch_checkpoint
from dia_demo.services.models import ModelRef
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
    synthesis: Synthesis, runtime: RuntimeConfig, cancel: threading.Event
) -> Generator[Waiting | Loading | Checking, None, SelfCheckReport]:
    """Check the runtime's device with its model and precision; returns the report.

    Nothing else runs at the same time, so that the race is fair. Raises InputError if the device is
    not available, and CheckStopped if `cancel` is set.
    """
    accelerator = synthesis.accelerator(runtime.device)
    with synthesis.alone(cancel) as waiting:
        yield from waiting
        folder = ModelRef.resolve(runtime.model).local
        if folder is None:
            fetching = fetch_checkpoint(runtime.model)
            folder = yield from as_loading(f"Fetching {runtime.model}", fetching)
        try:
            return (yield from accelerator.check(runtime, folder, runtime.model, cancel))
        except WaitCancelled as error:
            raise CheckStopped from error


def last_report(synthesis: Synthesis, runtime: RuntimeConfig) -> SelfCheckReport | None:
    """The report that is valid for this device, model and precision, if there is one."""
    accelerator = synthesis.accelerator(runtime.device)
    if not accelerator.status().usable:
        return None
    try:
        folder = ModelRef.resolve(runtime.model).folder
    except DiaDemoError:
        return None
    if folder is None:
        return None
    precision = "float32" if runtime.precision == "auto" else runtime.precision
    return accelerator.store.find(accelerator.key(folder, precision))
