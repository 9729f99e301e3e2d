"""The long table of a panel test: one row for each answer, with its sides."""

from __future__ import annotations

from collections.abc import Mapping

from dia_demo.errors import InputError
from dia_demo.services.listening.panel.analysis.ending import judge
from dia_demo.services.listening.panel.analysis.result import RaterRow
from dia_demo.services.listening.panel.designs import Design
from dia_demo.services.listening.panel.panel import Panel
from dia_demo.services.listening.panel.plan import PanelPlan
from dia_demo.services.listening.panel.sessions import ANCHOR, Presentation
from dia_demo.services.listening.panel.votes import PanelVote

COLUMNS = (
    "rater",
    "name",
    "source",
    "excluded",
    "session",
    "order",
    "part",
    "script",
    "sentence",
    "text",
    "systems",
    "settings",
    "chosen",
    "correct",
    "scores",
    "attributes",
    "note",
    "seconds",
    "gains_db",
    "started",
    "time",
    "received",
    "PROLIFIC_PID",
    "STUDY_ID",
    "SESSION_ID",
)
# Between the clips of a screen, in their order.
_BETWEEN = " | "
ANCHOR_NAME = "anchor (3.5 kHz)"


def long_table(panel: Panel) -> list[dict[str, object]]:
    """A row for each answer by COLUMNS, excluded raters included. `systems`, `settings` (JSON),
    `scores`, `seconds` and `gains_db` have a value for each clip in the order of the screen.
    Raises InputError before the reveal."""
    if not panel.state.revealed:
        raise InputError("The table contains the sides: reveal the result first.")
    votes = panel.votes()
    rows = []
    for row in judge(panel).rows:
        screens = panel.screens(row.rater.session)
        mine = votes.get(row.rater.id, {}).values()
        known = [vote for vote in mine if vote.presentation in screens]
        for vote in sorted(known, key=lambda one: one.order):
            rows.append(_row(panel.plan, row, screens[vote.presentation], vote))
    return rows


def _row(
    plan: PanelPlan, row: RaterRow, screen: Presentation, vote: PanelVote
) -> dict[str, object]:
    item, rater = plan.items[screen.item], row.rater
    names = [ANCHOR_NAME if one == ANCHOR else plan.systems[one] for one in screen.systems]
    chosen, correct, scores = _answer(plan.design, screen, vote.value, names)
    values = (
        row.number,
        rater.name,
        "file" if rater.offline else "link",
        row.excluded,
        vote.session,
        vote.order,
        screen.part.value,
        item.script + 1,
        item.label,
        item.text,
        _BETWEEN.join(names if screen.x is None else [*names, f"X: {names[screen.x]}"]),
        _settings(plan, screen),
        chosen,
        correct,
        scores,
        vote.attributes,
        vote.note,
        _BETWEEN.join(map(str, vote.seconds)),
        _BETWEEN.join(f"{plan.gains_db.get(name, 0.0):.2f}" for name in screen.names),
        vote.started,
        vote.time,
        vote.received,
        *(rater.recruitment.get(name, "") for name in ("PROLIFIC_PID", "STUDY_ID", "SESSION_ID")),
    )
    return dict(zip(COLUMNS, values, strict=True))


def _settings(plan: PanelPlan, screen: Presentation) -> str:
    """The setting of each clip; blank for an anchor, and of uploaded clips."""
    if not plan.settings:
        return ""
    return _BETWEEN.join("" if one == ANCHOR else plan.settings[one] for one in screen.systems)


def _answer(
    design: Design, screen: Presentation, answer: Mapping, names: list[str]
) -> tuple[str, str, str]:
    """The chosen system, whether an answer of ABX is right, and scores."""
    match design:
        case Design.PREFERENCE:
            better = answer["better"]
            chosen = names[better - 1] if better else "no difference"
            return chosen, "", str(answer["strength"] or "")
        case Design.ABX:
            right = answer["x"] - 1 == screen.x
            return names[answer["x"] - 1], "yes" if right else "no", ""
        case Design.BWS:
            best, worst = (names[answer[what] - 1] for what in ("best", "worst"))
            return f"best: {best}{_BETWEEN}worst: {worst}", "", ""
        case Design.MUSHRA:
            return "", "", _BETWEEN.join(map(str, answer["scores"]))
    return "", "", str(answer["score"])
