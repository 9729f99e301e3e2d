"""The result of a panel test: estimates, intervals, tests, per rater and per script, with the name
of every method. Its sentences are in `sentences`, what may be seen when in `ending`.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np

from dia_demo.services.listening.panel.analysis import clusters, crossed
from dia_demo.services.listening.panel.analysis.checks import RaterChecks
from dia_demo.services.listening.panel.analysis.clusters import clustered_strengths, script_interval
from dia_demo.services.listening.panel.analysis.crossed import CrossedMean, crossed_mean
from dia_demo.services.listening.panel.analysis.scores import (
    Judged,
    Score,
    compare_systems,
    is_main,
    rate_system,
)
from dia_demo.services.listening.panel.designs import SPECS, Design
from dia_demo.services.listening.panel.plan import PanelPlan
from dia_demo.services.listening.panel.raters import Rater
from dia_demo.services.listening.panel.sessions import ScreenPart
from dia_demo.services.listening.verdict.stats import binomial_at_least

METHOD_HOLM = "Holm's correction for all pairs of systems"
METHOD_ABX = "exact one-sided binomial test against guessing"


class GoalVerdict(StrEnum):
    """Whether the goal of the plan is reached; open while the plan does not let it be seen."""

    PASSED = "passed"
    FAILED = "failed"
    OPEN = "open"


@dataclass(frozen=True)
class Estimate:
    """A number over all raters and scripts with its 95% interval; None where there are too few."""

    mean: float
    low: float | None
    high: float | None
    votes: int


@dataclass(frozen=True)
class Contrast:
    """By how much the first of two systems leads, in the unit of the design. p: two-sided (ABX:
    one-sided). p_adjusted: for all pairs of the test. inner: the 90% interval, which decides on
    margins. deviations: between raters, between scripts, of the rest."""

    first: str
    second: str
    estimate: Estimate
    p: float | None
    p_adjusted: float | None
    inner: tuple[float, float] | None
    deviations: tuple[float, float, float] | None


@dataclass(frozen=True)
class SystemRow:
    """A system: its own score (MOS, MUSHRA, BWS) or its Bradley-Terry strength (preference)."""

    system: str
    estimate: Estimate


@dataclass(frozen=True)
class RaterRow:
    """A rater. number: in the order in which they came. lead: of the first system of the goal.
    excluded: the reason, blank for one who counts."""

    number: int
    rater: Rater
    checks: RaterChecks
    excluded: str
    lead: float | None


@dataclass(frozen=True)
class ScriptRow:
    """A script with the mean lead of the first system of the goal."""

    number: int
    text: str
    lead: float
    votes: int


@dataclass(frozen=True)
class PanelResult:
    """The result. While verdict is open there are the sentence, the raters and the notes alone.

    contrasts: that of the goal first. bootstrap: the interval of its mean over scripts, for these
    raters. identical: answers to null pairs, by the side that was chosen. attributes: how often
    each was ticked.
    """

    plan: PanelPlan
    verdict: GoalVerdict
    sentence: str
    raters: tuple[RaterRow, ...]
    counted: int
    contrasts: tuple[Contrast, ...] = ()
    systems: tuple[SystemRow, ...] = ()
    scripts: tuple[ScriptRow, ...] = ()
    bootstrap: tuple[float, float] | None = None
    identical: tuple[tuple[str, int], ...] = ()
    attributes: tuple[tuple[str, int], ...] = ()
    e_value: float | None = None
    methods: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def unit(self) -> str:
        return SPECS[self.plan.design].unit


def fit_scores(scores: Sequence[Score], limit: float | None = None) -> CrossedMean | None:
    """The mean of scores over raters and scripts. limit: of shares."""
    return crossed_mean(
        [score.value for score in scores],
        [score.rater for score in scores],
        [score.script for score in scores],
        limit,
    )


def estimate_of(scores: Sequence[Score], limit: float | None = None) -> Estimate:
    """The mean of scores with its interval. limit: of shares."""
    fit = fit_scores(scores, limit)
    if fit is None:
        values = [score.value for score in scores]
        return Estimate(float(np.mean(values)) if values else 0.0, None, None, len(scores))
    low, high = fit.interval()
    return Estimate(float(fit.estimate), float(low), float(high), len(scores))


def contrast_of(plan: PanelPlan, answers: Sequence[Judged], first: int, second: int) -> Contrast:
    """The comparison of two systems."""
    scores, limit = compare_systems(plan, answers, first, second), SPECS[plan.design].limit
    fit = fit_scores(scores, limit)
    inner = None if fit is None else tuple(float(one) for one in fit.interval(0.9))
    p = None if fit is None else float(fit.p_two_sided())
    if plan.design is Design.ABX and scores:
        p = binomial_at_least(sum(score.value > 0 for score in scores), len(scores))
    return Contrast(
        first=plan.systems[first],
        second=plan.systems[second],
        estimate=estimate_of(scores, limit),
        p=p,
        p_adjusted=p,
        inner=inner,  # type: ignore[arg-type]
        deviations=None
        if fit is None
        else (float(fit.sd_rater), float(fit.sd_script), float(fit.sd_rest)),
    )


def all_contrasts(plan: PanelPlan, answers: Sequence[Judged]) -> tuple[Contrast, ...]:
    """Every two systems, those of the goal first, with p-values by Holm as well."""
    goal = plan.goal.first, plan.goal.second
    others = [pair for pair in plan.pairs if set(pair) != set(goal)]
    found = [contrast_of(plan, answers, *pair) for pair in (goal, *others)]
    adjusted = holm([contrast.p for contrast in found])
    return tuple(replace(one, p_adjusted=p) for one, p in zip(found, adjusted, strict=True))


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Holm's p-values in the same order; None stays."""
    known = sorted((p, place) for place, p in enumerate(p_values) if p is not None)
    adjusted: list[float | None] = [None] * len(p_values)
    largest = 0.0
    for rank, (p, place) in enumerate(known):
        largest = max(largest, min(1.0, (len(known) - rank) * p))
        adjusted[place] = largest
    return adjusted


def system_rows(plan: PanelPlan, answers: Sequence[Judged]) -> tuple[SystemRow, ...]:
    """What each system got by itself; nothing for two systems in pairs, where the contrast says
    it all."""
    if not SPECS[plan.design].pairs:
        return tuple(
            SystemRow(name, estimate_of(rate_system(plan, answers, number)))
            for number, name in enumerate(plan.systems)
        )
    if plan.design is not Design.PREFERENCE or len(plan.systems) < 3:
        return ()
    main = [one for one in answers if is_main(one)]
    fit = clustered_strengths(
        np.array([one.screen.systems for one in main]).reshape(-1, 2),
        np.array([(0, 1, -1)[one.answer["better"]] for one in main]),
        [one.rater for one in main],
        [plan.items[one.screen.item].script for one in main],
        len(plan.systems),
    )
    if fit is None:
        return ()
    heard = Counter(system for one in main for system in one.screen.systems)
    return tuple(
        SystemRow(
            name, Estimate(float(fit.strengths[number]), float(low), float(high), heard[number])
        )
        for number, (name, (low, high)) in enumerate(
            zip(plan.systems, fit.intervals(), strict=True)
        )
    )


def script_rows(plan: PanelPlan, scores: Sequence[Score]) -> tuple[ScriptRow, ...]:
    """Each script with its mean."""
    by_script: dict[int, list[float]] = defaultdict(list)
    for score in scores:
        by_script[score.script].append(score.value)
    texts = {item.script: item.text or item.label for item in reversed(plan.items)}
    return tuple(
        ScriptRow(script + 1, texts[script], float(np.mean(values)), len(values))
        for script, values in sorted(by_script.items())
    )


def bootstrap_of(rows: Sequence[ScriptRow]) -> tuple[float, float] | None:
    """The interval of the mean over scripts, for the raters of the test."""
    interval = script_interval(np.array([row.lead for row in rows])) if rows else None
    return None if interval is None else (float(interval[0]), float(interval[1]))


def identical_answers(plan: PanelPlan, answers: Sequence[Judged]) -> tuple[tuple[str, int], ...]:
    """Answers to null pairs by the side: without a bias, clips 1 and 2 are chosen equally often."""
    counts: Counter[str] = Counter()
    for one in answers:
        if one.screen.part is ScreenPart.NULL:
            value = one.answer.get("better", one.answer.get("x"))
            if value is None:
                score = one.answer["score"]
                value = 0 if score == 0 else 1 if score < 0 else 2
            counts["no difference" if value == 0 else f"clip {value}"] += 1
    return tuple(sorted(counts.items()))


def methods_of(plan: PanelPlan) -> list[str]:
    """The names of the methods behind a result."""
    methods = [crossed.METHOD]
    if SPECS[plan.design].is_share:
        methods.append(crossed.METHOD_SHARES)
    if plan.design is Design.ABX:
        methods.insert(0, METHOD_ABX)
    else:
        methods.append(clusters.METHOD_BOOTSTRAP)
    if len(plan.systems) > 2:
        methods.append(METHOD_HOLM)
        if plan.design is Design.PREFERENCE:
            methods.append(clusters.METHOD_STRENGTHS)
    return methods
