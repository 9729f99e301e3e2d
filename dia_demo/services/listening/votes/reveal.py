"""A trial after the test: which setting each clip was made with, and what was measured."""

from __future__ import annotations

from dataclasses import dataclass

from dia_demo.services.listening.plan.plan import NAMES, ComparisonKind, ComparisonPlan, Trial
from dia_demo.services.listening.votes.votes import Vote


@dataclass(frozen=True)
class Revealed:
    """A trial after the test: the settings of A and B, and the measurements of both takes."""

    trial: Trial
    order: int
    heard: tuple[str, str]
    facts: tuple[dict, dict]
    gains_db: tuple[float, ...]
    vote: Vote | None
    x: str | None


def reveal_trial(plan: ComparisonPlan, order: int, trial: Trial, vote: Vote | None) -> Revealed:
    """The trial with its sides. order: its number in the test."""
    secret = plan.secrets[trial.id]
    behind = [secret.setting_of(trial, clip) for clip in (0, 1)]
    slots = {slot.setting: slot for slot in plan.slots_of(trial)}
    first, second = (plan.facts.get(slots[setting].id, {}) for setting in behind)
    return Revealed(
        trial=trial,
        order=order,
        heard=(NAMES[behind[0]], NAMES[behind[1]]),
        facts=(first, second),
        gains_db=secret.gains_db,
        vote=vote,
        x="AB"[secret.x] if plan.kind == ComparisonKind.ABX else None,
    )
