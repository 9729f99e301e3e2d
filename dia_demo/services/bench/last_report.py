"""The last benchmark of this machine, kept in the cache folder for the page."""

from __future__ import annotations

import json
import logging
from dataclasses import asdict
from datetime import date

from dia_demo.errors import InputError
from dia_demo.files import cache_folder, write_atomic
from dia_demo.services.bench.report import BenchReport, meaning
from dia_demo.services.speed.machine_speed import machine_identity
from dia_demo.untrusted import read_json

VERSION, FILE = 1, "benchmark.json"

log = logging.getLogger(__name__)


def keep_report(report: BenchReport) -> None:
    """Keep a report in place of the one before; none where the folder cannot be written."""
    path = cache_folder() / FILE
    raw = {"version": VERSION, "machine": machine_identity(), "day": date.today().isoformat()}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with write_atomic(path) as part:
            part.write_text(json.dumps(raw | {"report": asdict(report)}), encoding="utf-8")
    except OSError as error:
        log.info("The benchmark could not be kept in %s: %s", path, error)


def last_report() -> tuple[BenchReport, date] | None:
    """The report that was kept last on this machine, with its day.

    None where there is none, and where another machine or other versions made it.
    """
    path = cache_folder() / FILE
    if not path.exists():
        return None
    try:
        raw = read_json(path)
        if raw["version"] != VERSION or raw["machine"] != machine_identity():
            return None
        report = BenchReport.from_json(raw["report"])
        meaning(report)  # Fails where a figure is none.
        return report, date.fromisoformat(raw["day"])
    except (InputError, ValueError, TypeError, KeyError, AttributeError, ArithmeticError) as error:
        log.info("%s is ignored: %s", path, error)
        return None
