"""Several listeners of one comparison: each has an order of the pairs and sides of their own.

If all heard the same order and sides, what favours an early pair or the first clip would add up
over the listeners instead of averaging out.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from dia_demo.errors import InputError, RunError
from dia_demo.services.listening.plan.plan import ComparisonKind, ComparisonPlan, Secret, Trial

# The folder of the listeners' folders, in that of the comparison.
LISTENERS = "listeners"
MAX_LISTENERS = 1000


def listeners_of(folder: Path) -> list[str]:
    """The names of all listeners who have voted or ended their test."""
    home = folder / LISTENERS
    names = sorted(os.listdir(home)) if home.is_dir() else []
    return [name for name in names if (home / name).is_dir()]


def make_listener(folder: Path) -> None:
    """Create a listener's folder, at the first vote. Raises InputError if there are too many."""
    if folder.is_dir():
        return
    try:
        folder.parent.mkdir(exist_ok=True)
        if len(os.listdir(folder.parent)) >= MAX_LISTENERS:
            raise InputError(f"{MAX_LISTENERS:,} people have voted here, which is the maximum.")
        folder.mkdir(exist_ok=True)
    except OSError as error:
        reason = error.strerror or error
        raise RunError(f"Your votes cannot be saved: {reason}. Free some space.") from error


def own_order(plan: ComparisonPlan, name: str) -> ComparisonPlan:
    """The plan as the listener `name` hears it: always the same for the same name.

    Each setting is clip A equally often, in every pair of settings. Plans of earlier versions have
    one order for all, in which their votes were given.
    """
    if not plan.salt or plan.kind == ComparisonKind.SIGHTED:
        return plan
    trials = sorted(plan.trials, key=lambda trial: plan.draw(name, "order", trial.id))
    flips = _flips(plan, name)
    turned = {trial.id: flips[trial.id] != plan.secrets[trial.id].flip for trial in plan.trials}
    return replace(
        plan,
        trials=tuple(_swap_trial(trial) if turned[trial.id] else trial for trial in trials),
        secrets={
            trial.id: _swap_secret(plan.secrets[trial.id])
            if turned[trial.id]
            else plan.secrets[trial.id]
            for trial in trials
        },
    )


def _flips(plan: ComparisonPlan, name: str) -> dict[str, bool]:
    """Which setting is A: random, but each setting equally often."""
    flips: dict[str, bool] = {}
    for pair in {trial.settings for trial in plan.trials}:
        group = [trial.id for trial in plan.trials if trial.settings == pair]
        group.sort(key=lambda identity: plan.draw(name, "side", identity))
        # Of an odd number, the extra one goes to either setting.
        extra = len(group) % 2 and int(plan.draw(name, "extra", *map(str, pair)), 16) % 2
        half = len(group) // 2 + extra
        flips |= {identity: place < half for place, identity in enumerate(group)}
    return flips


def _swap_trial(trial: Trial) -> Trial:
    first, second, *x = trial.clips
    return replace(trial, clips=(second, first, *x))


def _swap_secret(secret: Secret) -> Secret:
    return Secret(not secret.flip, 1 - secret.x, secret.gains_db[::-1])
