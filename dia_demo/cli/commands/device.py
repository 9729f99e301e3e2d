"""`doctor --device xpu`: the self-check of an accelerator, stage by stage, and its report."""

from __future__ import annotations

import argparse
import json
import sys
import threading

from dia_demo.cli.common import follow, runtime_of
from dia_demo.config import RuntimeConfig
from dia_demo.engine.events import Loading, Waiting
from dia_demo.errors import RunError
from dia_demo.services.diagnosis.device_check import (
    Checking,
    CheckStopped,
    SelfCheckReport,
    check_device,
)
from dia_demo.services.settings import Settings
from dia_demo.services.synthesis import Synthesis


def check(options: argparse.Namespace, synthesis: Synthesis | None = None) -> int:
    """Run the check and print its report. Returns 0 where it passed, 1 where it failed or there is
    no such device."""
    settings = Settings.from_env()
    synthesis = synthesis or Synthesis(settings)
    runtime = runtime_of(options, settings)
    accelerator = synthesis.accelerator(runtime.device)
    status = accelerator.status()
    if not status.usable:
        summary = {"device": runtime.device, "usable": False, "passed": False}
        text = f"{runtime.device.upper()}: not usable. {status.reason}"
        print(json.dumps(summary | {"reason": status.reason}) if options.json else text)
        return 1
    report = _run(synthesis, runtime, quiet=options.json)
    if accelerator.store.note:
        print(f"warning: {accelerator.store.note}", file=sys.stderr)
    if options.report is not None:
        report.save(options.report)
    if options.json:
        print(json.dumps({"device": runtime.device, "usable": True} | report.to_dict()))
    else:
        print(report.as_text())
    return 0 if report.passed else 1


def _run(synthesis: Synthesis, runtime: RuntimeConfig, quiet: bool) -> SelfCheckReport:
    def progress_line(event: Waiting | Loading | Checking) -> str | None:
        match event:
            case Waiting():
                return "waiting for a running take"
            case Loading():
                return event.text
            case Checking() if not quiet:
                return f"{event.fraction:4.0%}  {event.doing}"
        return None

    cancel = threading.Event()
    try:
        return follow(
            check_device(synthesis, synthesis.models[runtime.model], runtime, cancel),
            cancel,
            progress_line,
        )
    except CheckStopped as stop:
        raise RunError("The self-check was stopped and has no result.") from stop
