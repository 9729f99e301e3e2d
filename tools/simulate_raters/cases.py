"""What is counted in simulated experiments, for every design, and what it should be.

A case makes some experiments with a generator and returns counts; shares of all experiments are
compared with its bounds at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np

from dia_demo.services.listening.panel.analysis.clusters import (
    clustered_strengths,
    script_interval,
)
from dia_demo.services.listening.panel.analysis.crossed import CrossedMean, crossed_means
from dia_demo.services.listening.panel.analysis.looks import (
    E_LIMIT,
    e_values,
    look_levels,
    raters_of_looks,
)
from dia_demo.services.listening.panel.analysis.planning import Assumed, PanelSize, power
from dia_demo.services.listening.panel.designs import SPECS, Design
from dia_demo.services.listening.panel.plan import Goal, GoalKind
from tools.simulate_raters.listeners import LEAD, Experiment, simulate, truth

LEVEL = 0.05
# In points: of false alarms and coverage as wanted, of power against what planning promises.
ALARM, COVERAGE, POWER = (0.04, 0.06), (0.935, 0.965), 0.05

Counts = Mapping[str, int]


@dataclass(frozen=True)
class Wanted:
    """Bounds of a share, both included; None for one that is only reported."""

    low: float | None
    high: float | None

    def holds(self, share: float) -> bool:
        return (self.low is None or share >= self.low) and (self.high is None or share <= self.high)


@dataclass(frozen=True)
class Case:
    """run: counts of so many experiments by name. wanted: the bounds of each share."""

    name: str
    run: Callable[[int, np.random.Generator], Counts]
    wanted: Callable[[], Mapping[str, Wanted]]


def _right(scores: np.ndarray, limit: int) -> np.ndarray:
    return scores.sum((1, 2)) >= limit


@cache
def _limit(answers: int) -> int:
    from scipy.stats import binom

    return int(binom.isf(LEVEL, answers, 0.5)) + 1


def votes_as_independent(scores: np.ndarray, centre: float) -> np.ndarray:
    """Whether every vote as independent finds a difference: the exact binomial test of votes for
    either side, ties left out."""
    from scipy.stats import binom

    ahead, decided = (scores > centre).sum((1, 2)), (scores != centre).sum((1, 2))
    fewer = np.minimum(ahead, decided - ahead)
    return np.minimum(1.0, 2 * binom.cdf(fewer, decided, 0.5)) < LEVEL


@cache
def truth_of(design: Design, lead: float) -> Assumed:
    """The true mean (of ABX above guessing) and deviations of a design."""
    true = truth(design, lead)
    above = true.effect - (0.5 if design is Design.ABX else 0.0)
    return Assumed(above, true.rater, true.script, true.rest)


def _design_case(design: Design) -> Case:
    experiment = Experiment(design)
    centre = 0.5 if design is Design.ABX else 0.0

    def run(count: int, random: np.random.Generator) -> Counts:
        effect = truth_of(design, LEAD).effect
        even = simulate(experiment, 0.0, count, random) - centre
        led = simulate(experiment, LEAD, count, random) - centre
        limit = SPECS[design].limit
        fits = crossed_means(even, limit), crossed_means(led, limit)
        found = finds_difference(design, even, fits[0]), finds_difference(design, led, fits[1])
        margin = effect
        both = np.maximum(fits[0].p_above(-margin), fits[0].p_below(margin))
        at_margin = np.maximum(fits[1].p_above(-margin), fits[1].p_below(margin))
        counts = {
            "false alarm": found[0],
            "power": found[1],
            "coverage": _covers(fits[1], effect),
            "coverage without a difference": _covers(fits[0], 0.0),
            "votes as independent: false alarm": votes_as_independent(even, 0.0),
            "not worse by the margin: false alarm": fits[1].p_below(margin) < LEVEL,
            "not worse by the margin: power": fits[0].p_below(margin) < LEVEL,
            "equivalence: false alarm": at_margin < LEVEL,
            "equivalence: power": both < LEVEL,
        }
        if design is Design.ABX:
            # ABX cannot tell which is worse, and guessing is the least that it can measure.
            for name in ("false alarm", "power"):
                counts[f"equivalence: {name}"] = counts.pop(f"not worse by the margin: {name}")
        return {name: int(np.count_nonzero(one)) for name, one in counts.items()}

    return Case(design.value, run, lambda: _wanted_rates(design, experiment))


def finds_difference(design: Design, scores: np.ndarray, fit: CrossedMean) -> np.ndarray:
    """Whether the design's test finds a difference. scores: of ABX, minus one half."""
    if design is Design.ABX:
        return _right(scores + 0.5, _limit(scores[0].size))
    return fit.p_two_sided() < LEVEL


def _covers(fit: CrossedMean, value: float) -> np.ndarray:
    low, high = fit.interval()
    return (low <= value) & (value <= high)


def _wanted_rates(design: Design, experiment: Experiment) -> Mapping[str, Wanted]:
    led, even = truth_of(design, LEAD), truth_of(design, 0.0)
    size = PanelSize(experiment.raters, experiment.scripts, experiment.scripts)
    margin = led.effect

    def wanted_power(kind: GoalKind, assumed: Assumed) -> Wanted:
        goal = Goal(kind, 0.0 if kind is GoalKind.SUPERIORITY else margin)
        chance = power(design, size, goal, assumed)
        return Wanted(chance - POWER, min(1.0, chance + POWER))

    none = Assumed(0.0, even.rater, even.script, even.rest)
    wanted = {
        "false alarm": Wanted(*ALARM),
        "power": wanted_power(GoalKind.SUPERIORITY, led),
        "coverage": Wanted(*COVERAGE),
        # Of ABX, guessing has no effects of raters and scripts.
        "coverage without a difference": Wanted(
            COVERAGE[0], None if design is Design.ABX else COVERAGE[1]
        ),
        # Votes of ABX are independent where everybody guesses; nowhere else.
        "votes as independent: false alarm": Wanted(
            *((None, None) if design is Design.ABX else (2 * ALARM[1], None))
        ),
        "not worse by the margin: false alarm": Wanted(*ALARM),
        "not worse by the margin: power": wanted_power(GoalKind.NONINFERIORITY, none),
        "equivalence: false alarm": Wanted(None, ALARM[1]),
        "equivalence: power": wanted_power(GoalKind.EQUIVALENCE, none),
    }
    if design is Design.ABX:
        del wanted["not worse by the margin: false alarm"], wanted["not worse by the margin: power"]
    return wanted


def _looks_case(looks: int) -> Case:
    experiment = Experiment(Design.CMOS)
    after = raters_of_looks(experiment.raters, looks)

    def run(count: int, random: np.random.Generator) -> Counts:
        scores = simulate(experiment, 0.0, count, random)
        stopped, peeked = np.zeros(count, bool), np.zeros(count, bool)
        for raters, level in zip(after, look_levels(looks), strict=True):
            p = crossed_means(scores[:, :raters]).p_two_sided()
            stopped |= p < level
            peeked |= p < LEVEL
        return {
            "false alarm": int(stopped.sum()),
            "looks without levels: false alarm": int(peeked.sum()),
        }

    wanted = {
        "false alarm": Wanted(None, ALARM[1]),
        "looks without levels: false alarm": Wanted(ALARM[1], None),
    }
    return Case(f"CMOS, {looks} looks", run, lambda: wanted)


def _e_value_case() -> Case:
    experiment = Experiment(Design.CMOS)

    def run(count: int, random: np.random.Generator) -> Counts:
        # For these scripts: their effects are part of the difference.
        even = simulate(experiment, 0.0, count, random, script_sd=0.0)
        led = simulate(experiment, LEAD, count, random, script_sd=0.0)
        passed = [(e_values(one.mean(2)).max(1) >= E_LIMIT) for one in (even, led)]
        return {"false alarm": int(passed[0].sum()), "power": int(passed[1].sum())}

    wanted = {"false alarm": Wanted(None, ALARM[1]), "power": Wanted(None, None)}
    return Case("CMOS, e-value after every rater", run, lambda: wanted)


def _bootstrap_case() -> Case:
    experiment = Experiment(Design.CMOS)

    def run(count: int, random: np.random.Generator) -> Counts:
        # For these raters: no effect of other ones.
        scores = simulate(experiment, LEAD, count, random, rater_sd=0.0)
        interval = script_interval(scores.mean(1))
        assert interval is not None
        low, high = interval
        true = truth_of(Design.CMOS, LEAD).effect
        return {"coverage": int(((low <= true) & (true <= high)).sum())}

    return Case("CMOS, bootstrap by script", run, lambda: {"coverage": Wanted(*COVERAGE)})


def _strengths_case() -> Case:
    """Rounds of 3 systems, judged as preferences; the first two are compared."""
    pairs = np.array([(0, 1), (0, 2), (1, 2)])
    raters, scripts = 12, 16

    def run(count: int, random: np.random.Generator) -> Counts:
        alarms = sum(_differ(random) for _ in range(count))
        return {"false alarm": alarms}

    def _differ(random: np.random.Generator) -> bool:
        taste = 0.3 * np.sqrt(0.5) * random.standard_normal((raters, 1, 3))
        taste = taste + 0.3 * np.sqrt(0.5) * random.standard_normal((1, scripts, 3))
        lead = taste[..., pairs[:, 0]] - taste[..., pairs[:, 1]]
        scores = np.sign(lead + random.standard_normal(lead.shape)).ravel()
        rows, columns, which = (one.ravel() for one in np.indices(lead.shape))
        fit = clustered_strengths(pairs[which], scores, rows, columns, 3)
        assert fit is not None
        return fit.difference(0, 1)[2] < LEVEL

    wanted = {"false alarm": Wanted(*ALARM)}
    return Case("preference among 3, Bradley-Terry", run, lambda: wanted)


def all_cases() -> dict[str, Case]:
    """Every case by its name."""
    cases = [
        *(_design_case(design) for design in Design),
        *(_looks_case(looks) for looks in (2, 3, 4)),
        _e_value_case(),
        _bootstrap_case(),
        _strengths_case(),
    ]
    return {case.name: case for case in cases}
