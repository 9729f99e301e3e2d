"""The simulated listeners: the levels of every design in a short form, and a run that goes on."""

from __future__ import annotations

import numpy as np
import pytest

from dia_demo.services.listening.panel.analysis.crossed import crossed_means
from dia_demo.services.listening.panel.analysis.planning import ASSUMED, PanelSize, power
from dia_demo.services.listening.panel.designs import SPECS, Design
from dia_demo.services.listening.panel.plan import Goal
from tools.simulate_raters.cases import COVERAGE, all_cases, finds_difference, votes_as_independent
from tools.simulate_raters.listeners import LEAD, Experiment, simulate, truth
from tools.simulate_raters.run import Log, blocks_of, run_blocks, shares_of, table_of

COUNT = 1500
# The bounds of the long run, and three standard errors of this one.
ALARM = (0.023, 0.077)


@pytest.mark.parametrize("design", list(Design))
def test_false_alarms_coverage_and_power_are_as_promised(design):
    random, experiment = np.random.default_rng(1), Experiment(design)
    centre, limit = 0.5 if design is Design.ABX else 0.0, SPECS[design].limit
    even = simulate(experiment, 0.0, COUNT, random) - centre
    led = simulate(experiment, LEAD, COUNT, random) - centre
    alarms = finds_difference(design, even, crossed_means(even, limit)).mean()
    assert ALARM[0] <= alarms <= ALARM[1]
    if design is not Design.ABX:  # Where everybody guesses, votes are independent.
        assert votes_as_independent(even, 0.0).mean() > 0.12
    fit = crossed_means(led, limit)
    low, high = fit.interval()
    true = led.mean()
    assert COVERAGE[0] - 0.02 <= ((low <= true) & (true <= high)).mean() <= COVERAGE[1] + 0.02
    size = PanelSize(experiment.raters, experiment.scripts, experiment.scripts)
    promised = power(design, size, Goal(), ASSUMED[design])
    assert finds_difference(design, led, fit).mean() == pytest.approx(promised, abs=0.06)


@pytest.mark.parametrize("design", list(Design))
def test_planning_assumes_these_listeners(design):
    true, assumed = truth(design, LEAD, tables=20, size=100), ASSUMED[design]
    effect = true.effect - (0.5 if design is Design.ABX else 0.0)
    whole = assumed.rest
    assert effect == pytest.approx(assumed.effect, abs=0.06 * whole)
    for name in ("rater", "script", "rest"):
        assert getattr(true, name) == pytest.approx(getattr(assumed, name), abs=0.05 * whole)


def test_a_run_goes_on_where_its_log_ends(tmp_path):
    name = "CMOS, e-value after every rater"
    assert blocks_of(1200) == [(0, 500), (1, 500), (2, 200)]
    log = Log(tmp_path / "log.jsonl")
    log.add(name, 0, 30, {"false alarm": 3, "power": 30})
    run_blocks([name], 30, 1, Log(tmp_path / "log.jsonl"))
    assert len((tmp_path / "log.jsonl").read_text().splitlines()) == 1, "nothing was missing"
    shares = {what: share for what, share, _ in shares_of(name, 30, log)}
    assert shares == {"false alarm": 0.1, "power": 1.0}
    table, is_good = table_of([name], 30, log)
    assert not is_good and "10.0% (outside) | at most 6.0%" in table


def test_every_design_has_a_case():
    assert {design.value for design in Design} <= all_cases().keys()
