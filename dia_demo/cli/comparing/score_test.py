"""`compare --score` for a test with many listeners: progress, results files, the result."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from dia_demo.errors import InputError
from dia_demo.services.listening.link.offline import write_offline_test
from dia_demo.services.listening.panel.analysis.ending import panel_result, reveal_panel
from dia_demo.services.listening.panel.analysis.result import (
    Contrast,
    GoalVerdict,
    PanelResult,
)
from dia_demo.services.listening.panel.offline import MAX_BYTES, merge_results
from dia_demo.services.listening.panel.panel import Panel
from dia_demo.services.listening.report.files import test_json, write_long_table, write_report


def score_test(panel: Panel, options: argparse.Namespace) -> int:
    """Do what the options ask of a test, then print how far it is, or its result."""
    for path in options.add or ():
        print(f"{path}: {_merge(panel, path)}", file=sys.stderr)
    if options.leave_out:
        _leave_out(panel, *options.leave_out)
    if options.close:
        panel.close()
    if options.offline is not None:
        write_offline_test(panel, options.offline)
    if options.reveal:
        reveal_panel(panel, early=True)
    if options.csv is not None:
        write_long_table(panel, options.csv)
    if options.report is not None:
        write_report(panel, options.report)
    result = panel_result(panel)
    print(json.dumps(test_json(panel)) if options.json else "\n".join(_lines(result)))
    return 0


def _merge(panel: Panel, path: Path) -> str:
    try:
        with open(path, "rb") as file:
            return merge_results(panel, file.read(MAX_BYTES + 1)).sentence
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}.") from error


def _leave_out(panel: Panel, number: str, reason: str) -> None:
    raters = panel.raters()
    if not number.isdecimal() or not 1 <= int(number) <= len(raters):
        raise InputError(
            f"--leave-out needs the number of a listener, 1 to {len(raters)}, not {number!r}."
        )
    rater = raters[int(number) - 1].id
    if reason.strip():
        panel.exclude(rater, reason)
    else:
        panel.include(rater)


def _lines(result: PanelResult) -> list[str]:
    """The result as text."""
    lines = [result.sentence, *(_contrast_line(one, result.unit) for one in result.contrasts)]
    for row in result.raters:
        checks, name = row.checks, f" {row.rater.name}" if row.rater.name else ""
        lead = "" if row.lead is None else f", lead {row.lead:+.2f}"
        # Whoever has not finished may still do so.
        is_on = result.verdict is GoalVerdict.OPEN and not row.rater.excluded
        is_out = row.excluded and (checks.complete or not is_on)
        out = f", left out: {row.excluded}" if is_out else ""
        screens = f"{checks.answered} of {checks.screens} screens"
        lines.append(f"listener {row.number}{name}: {screens}{lead}{out}")
    return [*lines, *result.notes]


def _contrast_line(one: Contrast, unit: str) -> str:
    estimate, low, high = one.estimate, one.estimate.low, one.estimate.high
    interval = "" if low is None or high is None else f" ({low:+.2f} to {high:+.2f})"
    p = "" if one.p is None else f", p = {one.p:.3f}"
    return f"{one.first} - {one.second}: {estimate.mean:+.2f} {unit}{interval}{p}"
