"""How long the takes of a plan take: before it runs, and those that follow the running batch."""

from __future__ import annotations

from collections.abc import Iterable
from math import sqrt

from dia_demo.engine.time_left import NOTHING, TimeLeft
from dia_demo.services.listening.plan.plan import ComparisonPlan, TakeSlot, TakeState
from dia_demo.services.synthesis import Synthesis

# How far the speed of takes may change in the course of a plan.
FACTOR = 1.2


def expected_audio(plan: ComparisonPlan, slot: TakeSlot, synthesis: Synthesis) -> float:
    """The expected seconds of audio of a take."""
    setting = plan.settings[slot.setting]
    info = synthesis.models[setting.runtime.model]
    script = plan.scripts[slot.script]
    script = info.reading(script, setting.normalise, setting.pronunciations).text
    seconds = info.expected_seconds(script)
    return min(seconds, info.seconds_of(setting.params.max_tokens)) / setting.speed


def plan_time(plan: ComparisonPlan, synthesis: Synthesis) -> TimeLeft | None:
    """The time to generate what is missing of a plan, its models' loading included; None if the
    speed of a model is not known."""
    slots = [slot for slot in plan.slots if slot.state != TakeState.MADE]
    total = time_of(plan, slots, synthesis)
    for runtime in dict.fromkeys(plan.settings[slot.setting].runtime for slot in slots):
        loading = synthesis.loading(synthesis.models[runtime.model], runtime)
        total = None if total is None or loading is None else total + loading
    return total


def time_of(
    plan: ComparisonPlan, slots: Iterable[TakeSlot], synthesis: Synthesis
) -> TimeLeft | None:
    """The time of takes that are not generated yet, by this machine's rates; None if unknown.

    Takes generated together cost between as much as one of them and as much as all, one by one.
    """
    slots, total = list(slots), NOTHING
    together = sqrt(min(synthesis.settings.at_once, max(1, len(slots))))
    for slot in slots:
        runtime = plan.settings[slot.setting].runtime
        rate = synthesis.speed.seconds_per_second(synthesis.models[runtime.model], runtime)
        if rate is None:
            return None
        seconds = rate * expected_audio(plan, slot, synthesis) / together
        total += TimeLeft.from_estimate(seconds, together * FACTOR)
    return total
