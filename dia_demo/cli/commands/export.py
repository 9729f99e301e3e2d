"""The command `export`: prepared weights in a folder that loads without the original."""

from __future__ import annotations

import argparse
import json
import threading
from contextlib import closing
from dataclasses import asdict, replace
from pathlib import Path

from dia_demo.cli.common import follow, model_of
from dia_demo.config import PRECISIONS
from dia_demo.services.exporting.exporter import ExportReport, export
from dia_demo.services.settings import Settings


def register(commands) -> None:
    """Add `export` to the command line."""
    text = "write prepared weights that load without the original"
    parser = commands.add_parser("export", help=text)
    parser.set_defaults(run=_export)
    add = parser.add_argument
    add("--model", metavar="nano | OWNER/NAME | PATH", help="the model to prepare")
    add("--precision", choices=PRECISIONS, help="auto takes the fastest here")
    add("-o", "--output", type=Path, required=True, metavar="FOLDER", help="new folder to write")
    add("--threads", type=int, metavar="N", help="of the short take that checks the export")
    add("--json", action="store_true", help="print what was written as one JSON object")


def _export(options: argparse.Namespace) -> int:
    names = ("model", "precision", "threads")
    values = {name: getattr(options, name) for name in names}
    runtime = replace(
        Settings.from_env().runtime,
        **{name: value for name, value in values.items() if value is not None},
    )
    cancel = threading.Event()
    info = model_of(runtime.model)
    with closing(export(info, runtime, options.output, cancel)) as work:
        report = follow(work, cancel, lambda step: f"{step[0]} {step[1]:.0%}")
    print(json.dumps(_as_json(report)) if options.json else _as_text(report))
    return 0


def _as_json(report: ExportReport) -> dict:
    return asdict(report) | {"folder": str(report.folder), "total_bytes": report.total_bytes}


def _as_text(report: ExportReport) -> str:
    revision = f" at revision {report.revision}" if report.revision else ""
    measured = report.measured
    return (
        f"{report.folder}: {report.base_model}{revision} in {report.precision}, "
        f"{report.total_bytes / 1e6:,.1f} MB in {len(report.files)} files. Loaded in "
        f"{measured.load_seconds:.1f} s; {measured.same_codes:,} codes of a short take equal the "
        "original's."
    )
