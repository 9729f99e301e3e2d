"""The HTML of tests with many listeners: the note on a plan, the link, who has judged how far."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from dia_demo.services.listening.panel.analysis.ending import panel_result
from dia_demo.services.listening.panel.panel import Panel, RaterProgress
from dia_demo.services.listening.panel.plan import PanelPlan
from dia_demo.services.listening.panel.stimuli import catch_count, null_items
from dia_demo.services.listening.report import sections
from dia_demo.services.wording import plural


def state(panel: Panel, url: str, qr: str) -> str:
    """A test: its link, its listeners, what can be said of it. qr: the link as SVG."""
    progress, result = panel.progress(), panel_result(panel)
    listeners = sections.raters(result) if panel.state.revealed else _raters(progress)
    kind = "panel-state revealed" if panel.state.revealed else "panel-state"
    return (
        f'<div class="{kind}">{_link(panel, url, qr)}{_closed_notice(panel)}'
        f'<div class="lab-result">{sections.outcome(result)}{sections.figures(result)}'
        f"{sections.asides(result)}{listeners}</div></div>"
    )


def _link(panel: Panel, url: str, qr: str) -> str:
    if panel.state.closed or panel.state.revealed:
        return ""
    return (
        f'<div class="panel-link"><div><p>Send this link to your listeners:</p>'
        f'<p><a href="{escape(url)}" target="_blank" rel="noopener">{escape(url)}</a></p>'
        "<p class='small'>Whoever has it can take the test. For a recruiting platform, add its "
        "parameters, such as <code>?PROLIFIC_PID=…</code>.</p></div>"
        f'<div class="panel-qr">{qr}</div></div>'
    )


def _closed_notice(panel: Panel) -> str:
    if not panel.state.closed or panel.state.revealed:
        return ""
    return "<p>Closed: the link accepts no more answers, results files are still added.</p>"


def _raters(progress: Sequence[RaterProgress]) -> str:
    if not progress:
        return '<p class="small">Nobody has opened the test yet.</p>'
    heads = ("Listener", "Screens", "Headphones", "From", "")
    rows = (_rater_row(number, one) for number, one in enumerate(progress, start=1))
    return sections.table("Listeners", heads, rows)


def _rater_row(number: int, one: RaterProgress) -> list[str]:
    rater = one.rater
    passed = {None: "–", True: "passed", False: "failed"}[rater.headphones]
    source = "file" if rater.offline else rater.recruitment.get("STUDY_ID", "link")
    note = f"left out: {rater.excluded}" if rater.excluded else "done" if one.complete else ""
    return [rater_name(number, one), f"{one.answered} of {one.screens}", passed, source, note]


def rater_name(number: int, one: RaterProgress) -> str:
    """A listener by the number, and the name if there is one."""
    return f"{number}{f' · {one.rater.name}' if one.rater.name else ''}"


def note(sentences: Sequence[str]) -> str:
    """What a planned test asks for, and what it can show."""
    text = "".join(f"<p>{escape(sentence)}</p>" for sentence in sentences)
    return f'<div class="plan-note">{text}</div>'


def message(sentence: str) -> str:
    """What became of what was pressed."""
    return f'<p class="small" role="status">{escape(sentence)}</p>'


def size(plan: PanelPlan) -> str:
    """The size of a test in words."""
    session = plan.session
    hidden = catch_count(plan) + session.repeats + len(null_items(plan))
    more = (
        f", with {plural(session.training, 'training screen')} before" if session.training else ""
    )
    between = f" and {hidden} to check the listener between" if hidden else ""
    return (
        f"{plural(plan.raters, 'listener')}, {plural(plan.trials, 'screen')} each{more}{between}: "
        f"{plan.raters * plan.trials:,} votes on {' and '.join(plan.systems)}."
    )


def title(panel: Panel) -> str:
    """A test in the list of a person's."""
    plan = panel.plan
    done = sum(one.complete for one in panel.progress())
    name = plan.title or " or ".join(plan.systems)
    return f"{name[:80]} · {plan.design} · {done} of {plan.raters} listeners · {plan.created[:10]}"
