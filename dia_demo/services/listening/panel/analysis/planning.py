"""What a panel test can find, before the first vote: its power, and the raters that this needs.

The formula is that of the test (see `crossed`): a noncentral t with Satterthwaite's degrees of
freedom, from the standard deviations that are assumed. ABX counts right answers against guessing.
tools/simulate_raters compares what is promised here with 10,000 simulated experiments.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from dia_demo.services.listening.panel.designs import SPECS, Design
from dia_demo.services.listening.panel.plan import (
    MAX_RATERS,
    Goal,
    GoalKind,
    PanelPlan,
)
from dia_demo.services.wording import plural

LEVEL, ENOUGH_POWER = 0.05, 0.8


@dataclass(frozen=True)
class Assumed:
    """What is assumed of the scores of one listener on one script: by how much the first system
    leads, and the standard deviations between raters, between scripts, and of the rest. All in the
    unit of the design."""

    effect: float
    rater: float
    script: float
    rest: float


# The defaults: those of the simulated listeners of tools/simulate_raters, on whose scale of
# perception one system leads by half the deviation of a single judgement.
ASSUMED = {
    Design.PREFERENCE: Assumed(0.35, 0.19, 0.19, 0.78),
    Design.ABX: Assumed(0.15, 0.07, 0.07, 0.47),
    Design.CMOS: Assumed(0.50, 0.30, 0.30, 1.03),
    Design.MUSHRA: Assumed(8.0, 5.0, 5.0, 16.0),
    Design.BWS: Assumed(0.44, 0.25, 0.25, 1.05),
    Design.MOS: Assumed(0.50, 0.30, 0.30, 1.06),
}


@dataclass(frozen=True)
class PanelSize:
    """The size of a test for two of its systems. each: of the scripts, those that a rater hears
    with both systems."""

    raters: int
    scripts: int
    each: float


@dataclass(frozen=True)
class PanelPower:
    """power: how often the goal is reached if what is assumed is true. raters_needed: for a power
    of ENOUGH_POWER with these scripts, None if no number of raters is enough."""

    power: float
    raters_needed: int | None
    sentence: str


def size_of(plan: PanelPlan) -> PanelSize:
    """The size of a plan for two of its systems."""
    scripts = len({item.script for item in plan.items})
    items = len(plan.items)
    if plan.design is Design.MOS:
        each = plan.trials / len(plan.systems)
    elif SPECS[plan.design].pairs:
        each = plan.trials / len(plan.pairs)
    else:
        each = plan.trials
    return PanelSize(plan.raters, scripts, min(each, items) * scripts / items)


def power(design: Design, size: PanelSize, goal: Goal, assumed: Assumed) -> float:
    """How often a test of this size reaches its goal. For equivalence and non-inferiority,
    assumed.effect is the true difference, usually 0."""
    if min(size.raters, size.scripts) < 2:
        return 0.0
    if design is Design.ABX and goal.kind is GoalKind.SUPERIORITY:
        return _power_of_abx(size, assumed)
    error, df = _error(size, assumed)
    limit = SPECS[design].limit

    def distance(value: float) -> float:
        """From the effect to a value, in standard errors of what is compared."""
        if limit is None:
            return (assumed.effect - value) / error
        share = assumed.effect / limit
        log_odds = math.atanh(share) - math.atanh(value / limit)
        return log_odds * limit * (1 - share**2) / error

    if goal.kind is GoalKind.SUPERIORITY:
        shift = abs(distance(0.0))
        return _one_sided_power(LEVEL / 2, df, shift) + _one_sided_power(LEVEL / 2, df, -shift)
    above = _one_sided_power(LEVEL, df, distance(-goal.margin))
    if goal.kind is GoalKind.NONINFERIORITY:
        return above
    below = _one_sided_power(LEVEL, df, -distance(goal.margin))
    # Guessing is the least that ABX can measure, so that only the upper bound matters.
    return below if design is Design.ABX else max(0.0, above + below - 1)


def raters_needed(design: Design, size: PanelSize, goal: Goal, assumed: Assumed) -> int | None:
    """The fewest raters for a power of ENOUGH_POWER, None if even MAX_RATERS are too few."""

    def is_enough(raters: int) -> bool:
        return power(design, replace(size, raters=raters), goal, assumed) >= ENOUGH_POWER

    low, high = 1, MAX_RATERS
    if not is_enough(high):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_enough(middle) else (middle, high)
    return high


def panel_power(plan: PanelPlan, assumed: Assumed | None = None) -> PanelPower:
    """What a plan can find, in numbers and in words. assumed: None for the design's defaults, with
    no true difference where equivalence or non-inferiority is to be shown."""
    if assumed is None:
        assumed = ASSUMED[plan.design]
        if plan.goal.kind is not GoalKind.SUPERIORITY:
            assumed = replace(assumed, effect=0.0)
    size = size_of(plan)
    chance = power(plan.design, size, plan.goal, assumed)
    needed = raters_needed(plan.design, size, plan.goal, assumed)
    return PanelPower(chance, needed, _sentence(plan, size, assumed, chance, needed))


def _sentence(
    plan: PanelPlan, size: PanelSize, assumed: Assumed, chance: float, needed: int | None
) -> str:
    unit = SPECS[plan.design].unit
    votes = plan.raters * plan.trials
    if plan.goal.kind is GoalKind.SUPERIORITY:
        true = f"one system leads by {assumed.effect:g} ({unit})"
        found = "finds it"
    else:
        true = (
            "there is no difference"
            if assumed.effect == 0
            else f"the true difference is {assumed.effect:g}"
        )
        found = (
            f"shows that it is within {plan.goal.margin:g} ({unit})"
            if plan.goal.kind is GoalKind.EQUIVALENCE
            else f"shows that {plan.systems[plan.goal.first]} is at most {plan.goal.margin:g} "
            f"({unit}) worse than {plan.systems[plan.goal.second]}"
        )
    text = (
        f"If {true}, a test of {plural(plan.raters, 'listener')} and "
        f"{plural(size.scripts, 'script')} ({votes:,} votes) {found} {chance:.0%} of the time."
    )
    if chance >= ENOUGH_POWER:
        return text
    if needed is None:
        return (
            f"{text} With {plural(size.scripts, 'script')} no number of listeners is enough for "
            f"{ENOUGH_POWER:.0%}: add scripts."
        )
    more = f"{plural(needed, 'listener')} ({needed * plan.trials:,} votes)"
    return f"{text} For {ENOUGH_POWER:.0%} it needs {more}, or more scripts."


def _error(size: PanelSize, assumed: Assumed) -> tuple[float, float]:
    """The expected standard error of the mean and its degrees of freedom."""
    of_rest = assumed.rest**2 / (size.raters * size.each)
    of_rater = assumed.rater**2 / size.raters + of_rest
    of_script = assumed.script**2 / size.scripts + of_rest
    variance = of_rater + of_script - of_rest
    rest_freedom = max(1.0, size.raters * size.each - size.raters - size.scripts + 1)
    spread = of_rater**2 / (size.raters - 1) + of_script**2 / (size.scripts - 1)
    return math.sqrt(variance), variance**2 / (spread + of_rest**2 / rest_freedom)


def _one_sided_power(level: float, df: float, shift: float) -> float:
    """How often a t with noncentrality `shift` is above the one-sided critical value."""
    from scipy.stats import nct, t

    return float(nct.sf(t.isf(level, df), df, shift))


def _power_of_abx(size: PanelSize, assumed: Assumed) -> float:
    """How often the right answers are more than guessing explains (exact binomial limit)."""
    from scipy.stats import binom, norm

    answers = round(size.raters * size.each)
    limit = binom.isf(LEVEL, answers, 0.5) + 1
    error, _ = _error(size, assumed)
    return float(norm.sf((limit - 0.5) / answers, 0.5 + assumed.effect, error))
