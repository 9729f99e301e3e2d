"""The end of a panel test: who counts, when the result may be seen, and the reveal.

The result stays closed until the planned number of raters, or until a planned look or the e-value
says that the test is decided. An owner may end the test before, unseen; the result then says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from dia_demo.errors import InputError
from dia_demo.services.listening.panel.analysis import looks
from dia_demo.services.listening.panel.analysis.checks import check_rater, why_excluded
from dia_demo.services.listening.panel.analysis.result import (
    Contrast,
    GoalVerdict,
    PanelResult,
    RaterRow,
    all_contrasts,
    bootstrap_of,
    contrast_of,
    identical_answers,
    methods_of,
    script_rows,
    system_rows,
)
from dia_demo.services.listening.panel.analysis.scores import Judged, compare_systems
from dia_demo.services.listening.panel.analysis.sentences import result_sentence
from dia_demo.services.listening.panel.designs import Design
from dia_demo.services.listening.panel.panel import Panel
from dia_demo.services.listening.panel.plan import GoalKind, LookKind, PanelPlan
from dia_demo.services.listening.panel.raters import now
from dia_demo.services.listening.verdict.stats import SIGNIFICANT
from dia_demo.services.wording import plural

MOS_NOTE = (
    "A mean opinion score depends on the listeners, the scripts and the other systems of its test: "
    "compare the systems of this test, never scores of two tests."
)
_EARLY = (
    "The test was ended after {counted} of {planned} planned listeners, before its result was "
    "seen. Its error rates hold, but it finds less than was planned."
)
_STOPPED = (
    "The test was ended at a planned look, where estimates are a little too large on average."
)


@dataclass(frozen=True)
class Judgement:
    """The answers of a test: rows of all raters, and the answers of those who count."""

    rows: tuple[RaterRow, ...]
    answers: tuple[Judged, ...]

    @property
    def counted(self) -> tuple[RaterRow, ...]:
        """Those who count, in the order in which they finished."""
        rows = (row for row in self.rows if not row.excluded)
        return tuple(sorted(rows, key=lambda row: (row.rater.finished or "~", row.number)))

    def answers_of(self, rows: Sequence[RaterRow]) -> list[Judged]:
        """The answers of some raters."""
        ids = {row.rater.id for row in rows}
        return [one for one in self.answers if one.rater in ids]


def judge(panel: Panel) -> Judgement:
    """The answers so far, with their sides: for this program, not for a page while blind."""
    plan, votes = panel.plan, panel.votes()
    rows, answers = [], []
    for number, rater in enumerate(panel.raters(), 1):
        screens, mine = panel.screens(rater.session), votes.get(rater.id, {})
        checks = check_rater(plan, screens, mine)
        excluded = why_excluded(plan, rater, checks)
        judged = [
            Judged(rater.id, screens[name], vote.value)
            for name, vote in mine.items()
            if name in screens
        ]
        scores = compare_systems(plan, judged, plan.goal.first, plan.goal.second)
        lead = float(np.mean([score.value for score in scores])) if scores else None
        rows.append(RaterRow(number, rater, checks, excluded, lead))
        answers += [] if excluded else judged
    return Judgement(tuple(rows), tuple(answers))


def panel_result(panel: Panel) -> PanelResult:
    """The result after the reveal; before it, how many raters count and whether it may be
    revealed."""
    plan, state, judgement = panel.plan, panel.state, judge(panel)
    decided = is_decided(plan, judgement)
    if not state.revealed:
        return _open_result(plan, judgement, decided)
    contrasts = all_contrasts(plan, judgement.answers)
    verdict = _verdict(plan, contrasts[0], judgement)
    first, second = plan.goal.first, plan.goal.second
    scripts = script_rows(plan, compare_systems(plan, judgement.answers, first, second))
    return PanelResult(
        plan=plan,
        verdict=verdict,
        sentence=result_sentence(plan, contrasts[0], verdict),
        raters=judgement.rows,
        counted=len(judgement.counted),
        contrasts=contrasts,
        systems=system_rows(plan, judgement.answers),
        scripts=scripts,
        bootstrap=None if plan.design is Design.ABX else bootstrap_of(scripts),
        identical=identical_answers(plan, judgement.answers),
        attributes=_attributes(panel, judgement),
        e_value=_e_value(plan, judgement),
        methods=tuple(methods_of(plan) + _look_methods(plan)),
        notes=tuple(_notes(plan, judgement, state.early)),
    )


def reveal_panel(panel: Panel, early: bool = False) -> None:
    """End the test: no more answers count, nobody is excluded any more, the result may be seen.

    early: although fewer raters count than were planned. Raises InputError for that otherwise.
    """
    plan = panel.plan
    with panel.lock():
        if panel.state.revealed:
            return
        judgement = judge(panel)
        is_short = not is_decided(plan, judgement)
        if is_short and not early:
            raise InputError(
                f"The result stays closed until {plural(plan.raters, 'listener')} count, and "
                f"{len(judgement.counted)} do so far. You can end the test early; the result will "
                "say so."
            )
        state = replace(panel.state, revealed=now(), closed=panel.state.closed or now())
        panel.write_state(replace(state, early=is_short))


def is_decided(plan: PanelPlan, judgement: Judgement) -> bool:
    """Whether the result may be seen by the plan."""
    if len(judgement.counted) >= plan.raters:
        return True
    e_value = _e_value(plan, judgement)
    return _crossed_look(plan, judgement) or (e_value is not None and e_value >= looks.E_LIMIT)


def _open_result(plan: PanelPlan, judgement: Judgement, decided: bool) -> PanelResult:
    counted = len(judgement.counted)
    sentence = (
        f"The test is open: {counted} of {plural(plan.raters, 'planned listener')} count so far."
    )
    if decided:
        sentence = (
            f"The test is decided: {plural(counted, 'listener')} count. Exclude listeners now if "
            "you must, then reveal the result."
        )
    elif plan.looks.kind is LookKind.OBRIEN_FLEMING:
        after = looks.raters_of_looks(plan.raters, plan.looks.number)
        coming = next(one for one in after if one > counted)
        sentence += f" The next planned look is after {coming}."
    # What a rater says of the systems stays hidden.
    rows = tuple(replace(row, lead=None) for row in judgement.rows)
    e_value = _e_value(plan, judgement)
    return PanelResult(plan, GoalVerdict.OPEN, sentence, rows, counted, e_value=e_value)


def _verdict(plan: PanelPlan, contrast: Contrast, judgement: Judgement) -> GoalVerdict:
    return GoalVerdict.PASSED if _is_reached(plan, contrast, judgement) else GoalVerdict.FAILED


def _is_reached(plan: PanelPlan, contrast: Contrast, judgement: Judgement) -> bool:
    if contrast.p is None or contrast.inner is None:
        return False
    goal, (low, high) = plan.goal, contrast.inner
    match goal.kind:
        case GoalKind.NONINFERIORITY:
            return low > -goal.margin
        case GoalKind.EQUIVALENCE:
            return high < goal.margin and (plan.design is Design.ABX or low > -goal.margin)
    if plan.looks.kind is LookKind.E_VALUE:
        e_value = _e_value(plan, judgement)
        return e_value is not None and e_value >= looks.E_LIMIT
    if plan.looks.kind is LookKind.OBRIEN_FLEMING:
        return _crossed_look(plan, judgement)
    return contrast.p < SIGNIFICANT


def _crossed_look(plan: PanelPlan, judgement: Judgement) -> bool:
    """Whether the result was significant at a planned look that has been reached."""
    if plan.looks.kind is not LookKind.OBRIEN_FLEMING:
        return False
    counted = judgement.counted
    after = looks.raters_of_looks(plan.raters, plan.looks.number)
    for raters, level in zip(after, looks.look_levels(plan.looks.number), strict=True):
        # The last look is with all who count, even if more came than were planned.
        included = counted if raters == plan.raters else counted[:raters]
        if len(counted) >= raters:
            answers = judgement.answers_of(included)
            p = contrast_of(plan, answers, plan.goal.first, plan.goal.second).p
            if p is not None and p < level:
                return True
    return False


def _e_value(plan: PanelPlan, judgement: Judgement) -> float | None:
    """The largest e-value so far; None where the plan has none."""
    if plan.looks.kind is not LookKind.E_VALUE:
        return None
    leads = [row.lead for row in judgement.counted if row.lead is not None]
    return float(looks.e_values(leads).max()) if leads else 1.0


def _look_methods(plan: PanelPlan) -> list[str]:
    return {
        LookKind.NONE: [],
        LookKind.OBRIEN_FLEMING: [looks.METHOD_LOOKS],
        LookKind.E_VALUE: [looks.METHOD_E_VALUE],
    }[plan.looks.kind]


def _attributes(panel: Panel, judgement: Judgement) -> tuple[tuple[str, int], ...]:
    counted = {row.rater.id for row in judgement.counted}
    ticked = [
        vote.attributes.split()
        for rater, votes in panel.votes().items()
        if rater in counted
        for vote in votes.values()
    ]
    return tuple((name, sum(name in one for one in ticked)) for name in panel.plan.attributes)


def _notes(plan: PanelPlan, judgement: Judgement, early: bool) -> list[str]:
    notes, counted = [], len(judgement.counted)
    if early:
        notes.append(_EARLY.format(counted=counted, planned=plan.raters))
    elif plan.looks.kind is LookKind.OBRIEN_FLEMING and counted < plan.raters:
        notes.append(_STOPPED)
    if plan.looks.kind is LookKind.E_VALUE:
        notes.append("The e-value is about the scripts of this test, not about others.")
    left_out = [row for row in judgement.rows if row.excluded]
    if left_out:
        reasons = "; ".join(f"{row.number}: {row.excluded}" for row in left_out)
        notes.append(f"{plural(len(left_out), 'listener')} left out ({reasons}).")
    if plan.design is Design.MOS:
        notes.append(MOS_NOTE)
    return notes
