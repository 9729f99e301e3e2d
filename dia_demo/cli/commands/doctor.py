"""The command `doctor`: this machine, what would run on it, and the self-check of a device."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path

from dia_demo.cli.commands import device
from dia_demo.cli.common import add_runtime, runtime_of
from dia_demo.services.diagnosis.doctor import examine
from dia_demo.services.settings import Settings


def register(commands) -> None:
    """Add `doctor` to the command line."""
    doctor = commands.add_parser(
        "doctor", help="report the hardware, and the precision and kernels a model would use"
    )
    doctor.set_defaults(run=_doctor)
    add_runtime(doctor)
    doctor.add_argument("--json", action="store_true", help="print one JSON object")
    report = "write the report of a device's self-check"
    doctor.add_argument("--report", type=Path, metavar="FILE", help=report)


def _doctor(options: argparse.Namespace) -> int:
    if options.device != "cpu":
        return device.check(options)
    report = examine(runtime_of(options, Settings.from_env()))
    print(json.dumps(asdict(report)) if options.json else report.as_text())
    return 0 if report.ready else 1
