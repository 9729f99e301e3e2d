"""What a plan promises, and the methods beside the main one."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from dia_demo.services.listening.panel.analysis.clusters import (
    clustered_strengths,
    script_interval,
)
from dia_demo.services.listening.panel.analysis.looks import (
    e_values,
    look_levels,
    raters_of_looks,
)
from dia_demo.services.listening.panel.analysis.planning import (
    ASSUMED,
    PanelSize,
    panel_power,
    power,
    raters_needed,
    size_of,
)
from dia_demo.services.listening.panel.analysis.result import holm
from dia_demo.services.listening.panel.designs import Design
from dia_demo.services.listening.panel.plan import Goal, GoalKind
from tests.services.listening.panel.helpers import panel_plan

SIZE = PanelSize(12, 16, 16)
MARGIN = {Design.ABX: 0.2, Design.MUSHRA: 10.0, Design.PREFERENCE: 0.4}


@pytest.mark.parametrize("design", list(Design))
@pytest.mark.parametrize("kind", list(GoalKind))
def test_more_raters_scripts_and_effect_find_more(design, kind):
    if design is Design.ABX and kind is GoalKind.NONINFERIORITY:
        return
    goal = Goal(kind, 0.0 if kind is GoalKind.SUPERIORITY else MARGIN.get(design, 0.6))
    assumed = ASSUMED[design]
    if goal.margin:
        assumed = replace(assumed, effect=0.0)
    few, more = power(design, PanelSize(6, 8, 8), goal, assumed), power(design, SIZE, goal, assumed)
    assert 0 <= few < more <= 1
    needed = raters_needed(design, SIZE, goal, assumed)
    assert power(design, replace(SIZE, raters=needed), goal, assumed) >= 0.8
    if needed > 2:
        assert power(design, replace(SIZE, raters=needed - 1), goal, assumed) < 0.8


def test_without_an_effect_a_difference_is_found_as_often_as_chance_does():
    for design in set(Design) - {Design.ABX}:
        none = replace(ASSUMED[design], effect=0.0)
        assert power(design, SIZE, Goal(), none) == pytest.approx(0.05, abs=0.001)
    guessing = replace(ASSUMED[Design.ABX], effect=0.0, rater=0.0, script=0.0, rest=0.5)
    assert power(Design.ABX, SIZE, Goal(), guessing) == pytest.approx(0.05, abs=0.01)


def test_raters_cannot_replace_scripts():
    needed = raters_needed(Design.CMOS, PanelSize(12, 3, 3), Goal(), ASSUMED[Design.CMOS])
    plan = panel_plan("cmos", items=3)
    assert needed is None and "add scripts" in panel_power(plan).sentence


def test_the_size_is_that_of_the_trials_with_both_systems():
    assert size_of(panel_plan("mos", items=8, raters=5)) == PanelSize(5, 8, 8.0)
    assert size_of(panel_plan("preference", systems=3, items=8, trials=12)).each == 4
    assert "votes) finds it" in panel_power(panel_plan("cmos", items=16, raters=12)).sentence
    goal = Goal(GoalKind.EQUIVALENCE, 0.6)
    assert "is within 0.6" in panel_power(panel_plan("cmos", items=16, goal=goal)).sentence
    goal = Goal(GoalKind.NONINFERIORITY, 0.6, 1, 0)
    plan = panel_plan("cmos", items=16, goal=goal)
    says = f"shows that {plan.systems[1]} is at most 0.6 (points of CMOS) worse than "
    assert says + plan.systems[0] in panel_power(plan).sentence


def test_levels_of_looks_grow_and_the_last_is_nearly_the_whole():
    assert look_levels(1)[0] == pytest.approx(0.05, abs=1e-3)
    for looks in range(2, 11):
        levels = look_levels(looks)
        assert all(early < late for early, late in pairwise(levels))
        assert 0.03 < levels[-1] < 0.05
    assert raters_of_looks(10, 3) == (4, 7, 10)


def test_levels_of_looks_spend_five_percent():
    """Sums of independent steps, as the levels assume."""
    random = np.random.default_rng(2)
    from scipy.special import ndtri

    for looks in (2, 5, 10):
        walk = np.cumsum(random.standard_normal((100_000, looks)), 1)
        z = np.abs(walk) / np.sqrt(np.arange(1, looks + 1))
        limits = -ndtri(np.array(look_levels(looks)) / 2)
        assert (z > limits).any(1).mean() == pytest.approx(0.05, abs=0.003)


def test_an_e_value_is_one_on_average_and_grows_with_agreement():
    signs = np.array(np.meshgrid(*[[-1, 1]] * 8)).reshape(8, -1).T
    sizes = np.array([0.3, 1.0, 0.2, 0.7, 1.5, 0.1, 0.0, 0.4])
    values = e_values(signs * sizes)
    assert values.mean(0) == pytest.approx(np.ones(8))
    assert e_values(np.full(12, 0.5))[-1] > 20 > e_values(np.full(3, 0.5))[-1]


def test_holm_multiplies_the_smallest_most():
    first, second, missing, fourth = holm([0.04, 0.01, None, 0.03])
    assert missing is None
    assert (first, second, fourth) == pytest.approx((0.06, 0.03, 0.06))


def test_strengths_are_those_of_bradley_terry_with_errors_of_clusters():
    """Every rater repeats one opinion: 20 votes of each are no more than one."""
    systems = np.tile([(0, 1), (1, 2), (0, 2)], (40, 1))
    scores = np.tile([1, 1, 1, 1, 1, 1, 1, 1, -1, -1, 1, 1], 10)
    raters, scripts = np.repeat(np.arange(6), 20), np.tile(np.arange(20), 6)
    fit = clustered_strengths(systems, scores, raters, scripts, 3)
    assert fit.df == 5 and fit.strengths[0] > fit.strengths[1] > fit.strengths[2]
    lead, error, p = fit.difference(0, 2)
    assert lead > 0 and error > 0 and 0 <= p <= 1
    assert clustered_strengths(systems[:3], scores[:3], [0] * 3, [0, 1, 2], 3) is None
    assert clustered_strengths(systems[::3], scores[::3], raters[::3], scripts[::3], 3) is None


def test_the_bootstrap_by_script_is_near_the_t_interval_and_always_the_same():
    means = np.random.default_rng(4).standard_normal(16)
    low, high = script_interval(means)
    assert script_interval(means) == (low, high)
    reach = 2.131 * means.std(ddof=1) / 4
    assert low == pytest.approx(means.mean() - reach, abs=0.3 * reach)
    assert high == pytest.approx(means.mean() + reach, abs=0.3 * reach)
    assert script_interval(means[:1]) is None
