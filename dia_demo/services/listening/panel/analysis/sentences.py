"""What may be concluded from a panel test, and what may not, in words."""

from __future__ import annotations

from dia_demo.services.listening.panel.analysis.result import Contrast, GoalVerdict
from dia_demo.services.listening.panel.designs import SPECS, Design
from dia_demo.services.listening.panel.plan import Goal, GoalKind, PanelPlan
from dia_demo.services.listening.plan.names import capitalize
from dia_demo.services.wording import plural

SCOPE = "This holds for listeners and scripts like those of this test, on average"


def result_sentence(plan: PanelPlan, contrast: Contrast, verdict: GoalVerdict) -> str:
    """The conclusion about the two systems of the goal, and its limits."""
    if contrast.estimate.low is None:
        if not contrast.estimate.votes:
            return "Nothing can be concluded, because there are no votes that count."
        votes = plural(contrast.estimate.votes, "vote")
        return (
            f"Too few listeners or scripts: with fewer than two of either, {votes} cannot show "
            "what others would say."
        )
    passed = verdict is GoalVerdict.PASSED
    if plan.design is Design.ABX:
        return _abx(plan.goal, contrast, passed)
    match plan.goal.kind:
        case GoalKind.SUPERIORITY:
            return _superiority(plan, contrast, passed)
        case GoalKind.NONINFERIORITY:
            return _noninferiority(plan, contrast, passed)
        case GoalKind.EQUIVALENCE:
            return _equivalence(plan, contrast, passed)


def number(value: float) -> str:
    """A number of a result with as many digits as it needs."""
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def describe(contrast: Contrast, unit: str) -> str:
    """The estimate with its interval: "0.42 points of CMOS (95% interval 0.10 to 0.74)"."""
    estimate = contrast.estimate
    assert estimate.low is not None and estimate.high is not None, "checked before"
    interval = f"95% interval {number(estimate.low)} to {number(estimate.high)}"
    return f"{number(estimate.mean)} ({interval}; {unit})"


def _difference(contrast: Contrast) -> str:
    return f"{contrast.first} minus {contrast.second}"


def p_text(p: float) -> str:
    """A p-value: "p = 0.031", "p < 0.001"."""
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}"


def _superiority(plan: PanelPlan, contrast: Contrast, passed: bool) -> str:
    unit = SPECS[plan.design].unit
    shown, difference = describe(contrast, unit), _difference(contrast)
    assert contrast.p is not None, "checked before"
    p = p_text(contrast.p)
    if passed:
        ahead = contrast.estimate.mean > 0
        better, worse = (
            (contrast.first, contrast.second) if ahead else (contrast.second, contrast.first)
        )
        return (
            f"{capitalize(better)} is better than {worse}: {difference} is {shown}, {p}. "
            f"{SCOPE}. It does not say why, nor that every listener agrees."
        )
    return (
        f"No difference was shown: {difference} is {shown}, {p}. This "
        "does not show that they are equal: any difference within the interval is possible."
    )


def _noninferiority(plan: PanelPlan, contrast: Contrast, passed: bool) -> str:
    margin, low = number(plan.goal.margin), _bound(contrast, 0)
    shown = describe(contrast, SPECS[plan.design].unit)
    if passed:
        return (
            f"{capitalize(contrast.first)} is not worse than {contrast.second} by {margin} or "
            f"more: the difference is {shown}, and it is at most {number(max(0.0, -low))} worse "
            f"with 95% confidence. {SCOPE}. It does not show that the two are equal, nor that a "
            "difference cannot be heard."
        )
    worse = ""
    if _bound(contrast, 1) < -plan.goal.margin:
        worse = " It was shown to be worse by more than that."
    return (
        f"It was not shown that {contrast.first} is less than {margin} worse than "
        f"{contrast.second}: the difference is {shown}, and it may be "
        f"{number(max(0.0, -low))} worse.{worse}"
    )


def _equivalence(plan: PanelPlan, contrast: Contrast, passed: bool) -> str:
    margin = number(plan.goal.margin)
    shown, difference = describe(contrast, SPECS[plan.design].unit), _difference(contrast)
    inner = f"{number(_bound(contrast, 0))} to {number(_bound(contrast, 1))}"
    if passed:
        return (
            f"{capitalize(contrast.first)} and {contrast.second} differ by less than {margin} on "
            f"average: {difference} is {shown}, and its 90% interval, {inner}, is within "
            f"the margin. {SCOPE}. Single scripts or listeners may differ by more."
        )
    return (
        f"It was not shown that {contrast.first} and {contrast.second} differ by less than "
        f"{margin}: {difference} is {shown}, and its 90% interval is {inner}. Nor does "
        "this show that they differ."
    )


def _abx(goal: Goal, contrast: Contrast, passed: bool) -> str:
    votes = contrast.estimate.votes
    right = round(votes * (contrast.estimate.mean + 0.5))
    assert contrast.p is not None and contrast.estimate.high is not None, "checked before"
    counts = f"{right} of {plural(votes, 'answer')} were right"
    if goal.kind is GoalKind.EQUIVALENCE:
        high = 0.5 + _bound(contrast, 1)
        limit = f"{0.5 + goal.margin:.0%}"
        if passed:
            return (
                f"{capitalize(contrast.first)} and {contrast.second} can be told apart in fewer "
                f"than {limit} of trials: {counts}, with 95% confidence at most {high:.0%}. "
                f"{SCOPE}. A single trained listener may do better."
            )
        return (
            f"It was not shown that {contrast.first} and {contrast.second} can be told apart in "
            f"fewer than {limit} of trials: {counts}, and up to {high:.0%} is possible."
        )
    if passed:
        return (
            f"{capitalize(contrast.first)} and {contrast.second} can be told apart: {counts}, "
            f"{p_text(contrast.p)} against guessing. It does not say which is better, nor that "
            "every listener hears a difference."
        )
    return (
        f"No audible difference was shown: {counts}, {p_text(contrast.p)} against guessing. This "
        "does not show that nobody hears one: for that, plan an equivalence test."
    )


def _bound(contrast: Contrast, side: int) -> float:
    assert contrast.inner is not None, "checked before"
    return contrast.inner[side]
