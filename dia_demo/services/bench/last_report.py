"""The last benchmark of this machine, stored in the cache folder for the page."""

from __future__ import annotations

import json
import logging
from dataclasses import asdict
from datetime import date

from dia_demo.errors import InputError
from dia_demo.files import cache_folder, write_atomic
from dia_demo.services.bench.report import BenchReport, summary
from dia_demo.services.speed.rates import machine_identity
from dia_demo.untrusted import parse_as, read_json

VERSION, FILE = 1, "benchmark.json"

log = logging.getLogger(__name__)


def keep_report(report: BenchReport) -> None:
    """Store a report in place of the previous one. Without a writable folder nothing is stored."""
    path = cache_folder() / FILE
    raw = {"version": VERSION, "machine": machine_identity(), "day": date.today().isoformat()}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with write_atomic(path) as part:
            part.write_text(json.dumps(raw | {"report": asdict(report)}), encoding="utf-8")
    except OSError as error:
        log.info("The benchmark could not be saved in %s: %s", path, error)


def last_report() -> tuple[BenchReport, date] | None:
    """The stored report and its date; None if there is none, or if it is from another machine or
    other versions."""
    path = cache_folder() / FILE
    if not path.exists():
        return None
    try:
        raw = read_json(path)
        if raw["version"] != VERSION or raw["machine"] != machine_identity():
            return None
        report = parse_as(BenchReport, raw["report"])
        summary(report)  # Raises an error for an invalid figure.
        return report, date.fromisoformat(raw["day"])
    except (InputError, ValueError, TypeError, KeyError, AttributeError, ArithmeticError) as error:
        log.info("%s is ignored: %s", path, error)
        return None
