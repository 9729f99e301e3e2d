"""The self-check of an accelerator as a service: queue, checkpoint, then the nine stages."""

from __future__ import annotations

import threading
from collections.abc import Generator

from dia_demo.accelerator.selfcheck.report import Report
from dia_demo.accelerator.selfcheck.runner import Checking
from dia_demo.config import RuntimeConfig
from dia_demo.engine.events import Loading, Waiting
from dia_demo.errors import DiaDemoError
from dia_demo.hub import cached_config, fetch_checkpoint
from dia_demo.model.checkpoint import local_folder
from dia_demo.services.synthesis import Synthesis
from dia_demo.task import Task


def check_device(
    synthesis: Synthesis, runtime: RuntimeConfig, cancel: threading.Event
) -> Generator[Waiting | Loading | Checking, None, Report]:
    """Check runtime's device with runtime's model and precision; returns the report.

    Nothing else runs meanwhile, so that the race is fair. Raises InputError where there is no such
    device, and Stopped (engine/process.py) when `cancel` is set.
    """
    accelerator = synthesis.accelerator(runtime.device)
    with synthesis.alone(cancel) as waiting:
        yield from waiting
        folder = local_folder(runtime.model)
        if folder is None:
            fetching = fetch_checkpoint(runtime.model)
            folder = yield from _as_loading(f"Fetching {runtime.model}", fetching)
        return (yield from accelerator.check(runtime, folder, runtime.model, cancel))


def last_report(synthesis: Synthesis, runtime: RuntimeConfig) -> Report | None:
    """The report that still holds for this device, model and precision, if there is one."""
    accelerator = synthesis.accelerator(runtime.device)
    if not accelerator.status().usable:
        return None
    try:
        folder = local_folder(runtime.model) or cached_config(runtime.model)
    except DiaDemoError:
        return None
    precision = "float32" if runtime.precision == "auto" else runtime.precision
    return folder and accelerator.store.find(accelerator.key(folder, precision))


def _as_loading(what: str, work: Generator) -> Generator:
    task = Task(work)
    for fraction in task:
        yield Loading(what, fraction)
    return task.result
