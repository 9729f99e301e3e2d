"""The script checker's report on the scripts of a comparison, of which there are several."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace

from dia_demo.services.listening.plan.plan import split_scripts
from dia_demo.services.wording import plural
from dia_demo.text.checks.script_check import Finding, ScriptReport, fix_all
from dia_demo.ui import html

Check = Callable[[str], ScriptReport]
SEPARATOR = "\n---\n"
_MOST_NAMED = 5


def report_on(text: str, check: Check) -> str:
    """The report on all scripts as HTML."""
    scripts = split_scripts(text)
    reports = [check(script) for script in scripts]
    seconds = sum(report.expected_seconds for report in reports)
    counts = [plural(len(scripts), "script"), f"about {seconds:.0f} s in total"]
    readings = [report.reading for report in reports if report.reading is not None]
    report = replace(check(""), findings=findings_on(scripts, reports))
    return html.report_of(counts if scripts else counts[:1], readings, report)


def findings_on(scripts: Sequence[str], reports: Sequence[ScriptReport]) -> tuple[Finding, ...]:
    """The findings on all scripts, each kind once; a repair changes every script that needs it."""
    by_code: dict[str, dict[int, Finding]] = defaultdict(dict)
    for index, report in enumerate(reports):
        for finding in report.findings:
            by_code[finding.code].setdefault(index, finding)
    return tuple(_together(scripts, by_script) for by_script in by_code.values())


def _together(scripts: Sequence[str], by_script: dict[int, Finding]) -> Finding:
    """One finding for the findings of one kind, the first of each script."""
    first = next(iter(by_script.values()))
    repairs = {index: finding.repaired for index, finding in by_script.items()}
    repaired = None
    if any(repair is not None for repair in repairs.values()):
        repaired = SEPARATOR.join(
            repairs.get(index) or script for index, script in enumerate(scripts)
        )
    if len(scripts) == 1:
        return replace(first, repaired=repaired)
    message = f"{_name_scripts(list(by_script), first.line)}: {first.message}"
    return replace(first, message=message, line=None, repaired=repaired)


def _name_scripts(indices: Sequence[int], line: int | None) -> str:
    """Which scripts a finding is about: "Script 3, line 1", "Scripts 1, 2 and 5"."""
    numbers = [str(index + 1) for index in indices]
    if len(numbers) == 1:
        return f"Script {numbers[0]}{f', line {line}' if line else ''}"
    if len(numbers) > _MOST_NAMED:
        return f"{len(numbers)} scripts"
    return f"Scripts {', '.join(numbers[:-1])} and {numbers[-1]}"


def repair_scripts(text: str, code: str, check: Check) -> str | None:
    """The scripts after the repair of all findings of one kind, or after all repairs that take no
    words away; None if there is nothing to repair."""
    scripts = split_scripts(text)
    if code == html.FIX_ALL:
        return SEPARATOR.join(fix_all(script, check) for script in scripts)
    findings = findings_on(scripts, [check(script) for script in scripts])
    return next((finding.repaired for finding in findings if finding.code == code), None)
