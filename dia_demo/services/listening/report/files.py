"""What a panel test gives to take away: a report to print, the votes as a table, plan and result as
JSON. All of them contain the answers, so report and table are refused before the reveal.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from html import escape
from pathlib import Path
from typing import Any

from dia_demo.errors import InputError, RunError
from dia_demo.files import PAGE_FILES, write_atomic
from dia_demo.services.listening.panel.analysis.ending import panel_result
from dia_demo.services.listening.panel.analysis.planning import panel_power
from dia_demo.services.listening.panel.analysis.result import PanelResult
from dia_demo.services.listening.panel.analysis.table import COLUMNS, long_table
from dia_demo.services.listening.panel.panel import Panel
from dia_demo.services.listening.report import sections
from dia_demo.services.listening.report.methods import methods_of
from dia_demo.services.listening.votes.votes import csv_lines

FORMAT, VERSION = "dia-listening-report", 1
NOT_REVEALED = "The report contains the answers: reveal the result first."


def write_report(panel: Panel, path: Path) -> None:
    """Write the report. Raises InputError before the reveal, RunError if that fails."""
    _write(path, report_page(panel))


def write_long_table(panel: Panel, path: Path) -> None:
    """Write the votes as CSV. Raises InputError before the reveal, RunError if that fails."""
    _write(path, votes_csv(panel))


def write_json(panel: Panel, path: Path) -> None:
    """Write plan, progress and, as far as it may be seen, the result. Raises RunError if that
    fails."""
    _write(path, json.dumps(test_json(panel), indent=1).encode())


def _write(path: Path, data: bytes) -> None:
    try:
        with write_atomic(path) as part:
            part.write_bytes(data)
    except OSError as error:
        reason = error.strerror or error
        raise RunError(f"{path.name} could not be written: {reason}. Free some space.") from error


def votes_csv(panel: Panel) -> bytes:
    """The votes as CSV, one row each. Raises InputError before the reveal."""
    return csv_lines([COLUMNS, *(list(map(_number, row.values())) for row in long_table(panel))])


def _number(value: object) -> object:
    """A score as a number: a text that begins with a minus is quoted, in case it is a formula."""
    is_whole = isinstance(value, str) and value.removeprefix("-").isdecimal()
    return int(str(value)) if is_whole else value


def test_json(panel: Panel) -> dict[str, Any]:
    """A test as JSON: its plan without what opens it, how far it is, its result."""
    plan, state, result = panel.plan, panel.state, panel_result(panel)
    return {
        "format": FORMAT,
        "version": VERSION,
        "id": plan.id,
        "state": "revealed" if state.revealed else "closed" if state.closed else "open",
        "plan": {
            "created": plan.created,
            "title": plan.title,
            "design": plan.design,
            "systems": list(plan.systems),
            "settings": list(map(json.loads, plan.settings)),
            "items": [asdict(item) for item in plan.items],
            "listeners": plan.raters,
            "screens": plan.trials,
            "goal": asdict(plan.goal),
            "looks": asdict(plan.looks),
            "rules": asdict(plan.rules),
            "session": asdict(plan.session),
            "can_show": panel_power(plan).sentence,
        },
        "listeners": [
            {
                "number": number,
                "name": one.rater.name,
                "recruitment": one.rater.recruitment,
                "answered": one.answered,
                "screens": one.screens,
                "excluded": one.rater.excluded,
            }
            for number, one in enumerate(panel.progress(), start=1)
        ],
        "result": _result_json(result),
    }


test_json.__test__ = False  # type: ignore[attr-defined]  # for pytest


def _result_json(result: PanelResult) -> dict[str, Any]:
    names = ("verdict", "sentence", "counted", "e_value", "methods", "notes")
    about = {name: getattr(result, name) for name in names}
    return about | {
        "contrasts": [asdict(one) for one in result.contrasts],
        "systems": [asdict(one) for one in result.systems],
        "scripts": [asdict(one) for one in result.scripts],
        "interval_over_scripts": result.bootstrap,
        "identical_pairs": dict(result.identical),
        "attributes": dict(result.attributes),
    }


def report_page(panel: Panel) -> bytes:
    """The result as one HTML file without anything from elsewhere, for a screen and for paper.
    Raises InputError before the reveal."""
    _check_revealed(panel)
    plan, result = panel.plan, panel_result(panel)
    title = escape(plan.title or " or ".join(plan.systems))
    style = (PAGE_FILES / "report.css").read_text(encoding="utf-8")
    methods = escape(f"{methods_of(panel)} {_statistics(result)}")
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8">'
        f'<meta name="viewport" content="width=device-width"><title>{title}</title>'
        f"<style>{style}</style><h1>{title}</h1>"
        f'<p class="small">Listening test {plan.id}, planned {escape(plan.created[:10])}, '
        f"revealed {escape(panel.state.revealed[:10])}. {result.counted} of {plan.raters} planned "
        f"listeners count.</p>{sections.outcome(result)}"
        f"<h2>Result</h2>{sections.figures(result)}{sections.asides(result)}"
        f"<h2>Listeners</h2>{sections.raters(result)}<h2>Methods</h2><p>{methods}</p></html>"
    ).encode()


def _statistics(result: PanelResult) -> str:
    text = f"Statistics: {'; '.join(result.methods)}."
    if result.bootstrap:
        low, high = result.bootstrap
        text += f" Bootstrap interval over scripts: {low:+.2f} to {high:+.2f} {result.unit}."
    return text


def _check_revealed(panel: Panel) -> None:
    if not panel.state.revealed:
        raise InputError(NOT_REVEALED)
