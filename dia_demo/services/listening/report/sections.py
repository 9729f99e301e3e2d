"""The result of a panel test as HTML, without a page around it: for the Compare tab and the report.

Every text is escaped here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from dia_demo.services.listening.panel.analysis.result import (
    Contrast,
    Estimate,
    GoalVerdict,
    PanelResult,
    RaterRow,
)
from dia_demo.services.listening.panel.plan import GoalKind, PanelPlan
from dia_demo.services.listening.report.charts import Row, chart_of

_MOST_LABEL = 28  # characters of a script beside its row


def outcome(result: PanelResult) -> str:
    """The verdict in words, with what must be said beside it."""
    notes = "".join(f"<li>{escape(note)}</li>" for note in result.notes)
    listed = f'<ul class="notes">{notes}</ul>' if notes else ""
    return f'<p class="verdict">{escape(result.sentence)}</p>{listed}'


def figures(result: PanelResult) -> str:
    """Charts and tables; nothing while the result may not be seen, or without votes."""
    has_votes = any(one.estimate.votes for one in result.contrasts)
    if result.verdict is GoalVerdict.OPEN or not has_votes:
        return ""
    return "".join(
        [_leads_chart(result), _leads_table(result), _systems_chart(result), _scripts_chart(result)]
    )


def raters(result: PanelResult) -> str:
    """What each listener answered and whether they count."""
    if not result.raters:
        return "<p>Nobody took part.</p>"
    rows = [
        (f"Listener {row.number}", row.lead, row.lead, row.lead)
        for row in result.raters
        if row.lead is not None and not row.excluded
    ]
    title = f"Mean lead of {result.plan.systems[result.plan.goal.first]} by listener"
    chart = chart_of(f"{title} ({result.unit})", rows, null=0.0) if rows else ""
    return chart + _raters_table(result.raters)


def asides(result: PanelResult) -> str:
    """What was heard beside the result: attributes, and answers to identical pairs."""
    parts = []
    if result.attributes:
        parts.append(f"Heard, in so many answers: {_counts(result.attributes)}.")
    if result.identical:
        parts.append(f"Answers to pairs without a difference: {_counts(result.identical)}.")
    return "".join(f"<p>{escape(text)}</p>" for text in parts)


def _counts(counts: Iterable[tuple[str, int]]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts)


def margins_of(plan: PanelPlan) -> list[float]:
    """Where the lines of a margin are in a chart of leads."""
    goal = plan.goal
    if goal.kind is GoalKind.SUPERIORITY:
        return []
    return [-goal.margin] if goal.kind is GoalKind.NONINFERIORITY else [-goal.margin, goal.margin]


def _leads_chart(result: PanelResult) -> str:
    rows = [
        _row(f"{one.first} − {one.second}", one.estimate)
        for one in result.contrasts
        if one.estimate.votes
    ]
    if not rows:
        return ""
    title = f"Lead of the first over the second ({result.unit}), with its 95% interval"
    return chart_of(title, rows, margins_of(result.plan), null=0.0)


def _row(label: str, estimate: Estimate) -> Row:
    """An estimate without an interval is its own."""
    low, high = estimate.low, estimate.high
    if low is None or high is None:
        return label, estimate.mean, estimate.mean, estimate.mean
    return label, estimate.mean, low, high


def _leads_table(result: PanelResult) -> str:
    several = len(result.contrasts) > 1
    heads = ["", "Lead", "95% interval", "90% interval", "p", *(["p (Holm)"] if several else [])]
    rows = [_lead_cells(one, several) for one in result.contrasts]
    return table("Leads", [*heads, "Votes"], rows)


def _lead_cells(one: Contrast, several: bool) -> list[str]:
    estimate = one.estimate
    wide = _interval(estimate.low, estimate.high)
    inner = _interval(*one.inner) if one.inner else "–"
    cells = [f"{one.first} − {one.second}", f"{estimate.mean:+.2f}", wide, inner, _p(one.p)]
    return [*cells, *([_p(one.p_adjusted)] if several else []), str(estimate.votes)]


def _interval(low: float | None, high: float | None) -> str:
    return "–" if low is None or high is None else f"{low:+.2f} to {high:+.2f}"


def _p(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:.3f}" if value >= 0.001 else "< 0.001"


def _systems_chart(result: PanelResult) -> str:
    rows = [_row(one.system, one.estimate) for one in result.systems if one.estimate.votes]
    return chart_of("Each by itself, with its 95% interval", rows) if rows else ""


def _scripts_chart(result: PanelResult) -> str:
    if len(result.scripts) < 2:
        return ""
    rows = [
        (f"{one.number} {_short(one.text)}", one.lead, one.lead, one.lead) for one in result.scripts
    ]
    title = f"Mean lead of {result.plan.systems[result.plan.goal.first]} by script ({result.unit})"
    return chart_of(title, rows, null=0.0)


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _MOST_LABEL else f"{line[:_MOST_LABEL]}…"


def _raters_table(rows: Sequence[RaterRow]) -> str:
    heads = ["Listener", "Screens", "Catch trials", "Repeats", "Headphones", "Lead", "Left out"]
    return table(f"Listeners ({len(rows)})", heads, [_rater(row) for row in rows])


def _rater(row: RaterRow) -> list[str]:
    checks = row.checks
    named = f" · {row.rater.name}" if row.rater.name else ""
    return [
        f"{row.number}{named}",
        f"{checks.answered} of {checks.screens}",
        f"{checks.catch_passed} of {checks.catch}" if checks.catch else "–",
        f"{checks.repeats_consistent} of {checks.repeats}" if checks.repeats else "–",
        {None: "–", True: "passed", False: "failed"}[row.rater.headphones],
        "–" if row.lead is None else f"{row.lead:+.2f}",
        row.excluded,
    ]


def table(caption: str, heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table whose first column names its rows."""
    head = "".join(f'<th scope="col">{escape(text)}</th>' for text in heads)
    body = "".join(
        f'<tr><th scope="row">{escape(first)}</th>'
        + "".join(f"<td>{escape(cell)}</td>" for cell in cells)
        + "</tr>"
        for first, *cells in rows
    )
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(caption)}">'
        f'<table class="lab-table"><caption>{escape(caption)}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )
