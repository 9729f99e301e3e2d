"""Simulated listeners of each design: perception with effects of raters and scripts, then answers.

On the scale of perception, a single judgement of the difference of two systems has a standard
deviation of 1. The mean difference over all raters and scripts is `lead`; it varies between raters
and between scripts by RATER_SD and SCRIPT_SD.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dia_demo.services.listening.panel.analysis.planning import Assumed
from dia_demo.services.listening.panel.designs import Design

RATER_SD = SCRIPT_SD = 0.3
# How much one system leads where there is something to find.
LEAD = 0.5
SYSTEMS = {Design.MUSHRA: 3, Design.BWS: 4}
# Of MOS a trial is one system, so that 16 trials are 8 scripts.
TRIALS_OF_A_SCRIPT = {Design.MOS: 2}


@dataclass(frozen=True)
class Experiment:
    """So many raters hear so many trials."""

    design: Design
    raters: int = 12
    trials: int = 16

    @property
    def scripts(self) -> int:
        return self.trials // TRIALS_OF_A_SCRIPT.get(self.design, 1)


def simulate(
    experiment: Experiment,
    lead: float,
    count: int,
    random: np.random.Generator,
    rater_sd: float = RATER_SD,
    script_sd: float = SCRIPT_SD,
) -> np.ndarray:
    """Scores of the first system against the second, [count, raters, scripts], in the unit of the
    design (of ABX: 1 for a right answer, 0 for a wrong one)."""
    raters, scripts = experiment.raters, experiment.scripts

    def perceive(mean: float, scale: float = 1.0) -> np.ndarray:
        """[count, raters, scripts]. scale: of all deviations."""
        wave = mean + scale * random.standard_normal((count, raters, scripts))
        wave += scale * rater_sd * random.standard_normal((count, raters, 1))
        return wave + scale * script_sd * random.standard_normal((count, 1, scripts))

    return _ANSWERS[experiment.design](lead, perceive, random, (count, raters, scripts))


_Perceived = Callable[..., np.ndarray]


def _preference(lead, perceived: _Perceived, random, shape) -> np.ndarray:
    heard = perceived(lead)
    return np.where(np.abs(heard) < 0.3, 0.0, np.sign(heard))


def _cmos(lead, perceived: _Perceived, random, shape) -> np.ndarray:
    return np.clip(np.rint(perceived(lead)), -3, 3)


def _abx(lead, perceived: _Perceived, random, shape) -> np.ndarray:
    """Who hears a difference is right, all others guess. No effect makes anybody hear one that
    does not exist: without a lead everybody guesses."""
    count, raters, scripts = shape
    ability = np.zeros(shape)
    if lead:
        base = 2 * lead * 0.3
        # A uniform effect of raters and of scripts: no share of hearers is below 0 or above 1.
        ability = base + 0.25 * random.uniform(-1, 1, (count, raters, 1))
        ability = np.clip(ability + 0.25 * random.uniform(-1, 1, (count, 1, scripts)), 0, 1)
    return (random.random(shape) < 0.5 + ability / 2).astype(float)


# Systems beside the two that are compared differ from them as these do from each other.
def _mushra(lead, perceived: _Perceived, random, shape) -> np.ndarray:
    half = np.sqrt(0.5)
    level = 60 + 8 * random.standard_normal((shape[0], shape[1], 1))
    first, second = (
        np.clip(np.rint(level + 16 * perceived(mean, half)), 0, 100)
        for mean in (lead / 2, -lead / 2)
    )
    return first - second


def _bws(lead, perceived: _Perceived, random, shape) -> np.ndarray:
    half = np.sqrt(0.5)
    leads = (lead / 2, -lead / 2, *[0.0] * (SYSTEMS[Design.BWS] - 2))
    utility = np.stack([perceived(mean, half) for mean in leads], -1)
    best, worst = utility.argmax(-1), utility.argmin(-1)
    scores = [1.0 * (best == system) - (worst == system) for system in (0, 1)]
    return scores[0] - scores[1]


def _mos(lead, perceived: _Perceived, random, shape) -> np.ndarray:
    half = np.sqrt(0.5)
    level = 3.2 + 0.4 * random.standard_normal((shape[0], shape[1], 1))
    first, second = (
        np.clip(np.rint(level + perceived(mean, half)), 1, 5) for mean in (lead / 2, -lead / 2)
    )
    return first - second


_ANSWERS = {
    Design.PREFERENCE: _preference,
    Design.ABX: _abx,
    Design.CMOS: _cmos,
    Design.MUSHRA: _mushra,
    Design.BWS: _bws,
    Design.MOS: _mos,
}


def truth(design: Design, lead: float, tables: int = 100, size: int = 300) -> Assumed:
    """The true mean and deviations of the scores of a design, from large tables."""
    random = np.random.default_rng(1)
    from dia_demo.services.listening.panel.analysis.crossed import crossed_means

    trials = size * TRIALS_OF_A_SCRIPT.get(design, 1)
    scores = simulate(Experiment(design, size, trials), lead, tables, random)
    fit = crossed_means(scores)
    deviations = (
        float(np.sqrt((one**2).mean())) for one in (fit.sd_rater, fit.sd_script, fit.sd_rest)
    )
    mean = 0.0 if lead == 0 and design is not Design.ABX else float(fit.estimate.mean())
    return Assumed(mean, *deviations)
