"""From answers to numbers: what each rater's answers say of two systems, and of each.

Main trials alone count; training, catch trials, repeats and null pairs do not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from dia_demo.services.listening.panel.designs import SPECS, Design
from dia_demo.services.listening.panel.plan import PanelPlan
from dia_demo.services.listening.panel.sessions import Presentation, ScreenPart


@dataclass(frozen=True)
class Judged:
    """An answer with its sides."""

    rater: str
    screen: Presentation
    answer: Mapping


@dataclass(frozen=True)
class Score:
    """A number that a rater gave on a script."""

    rater: str
    script: int
    value: float


def is_main(judged: Judged) -> bool:
    """Whether an answer counts."""
    return judged.screen.part is ScreenPart.MAIN


def compare_systems(
    plan: PanelPlan, answers: Iterable[Judged], first: int, second: int
) -> list[Score]:
    """By how much the first of two systems leads, a number for each main trial with both (of MOS,
    for each sentence that a rater heard from both). For ABX 0.5 for a right answer, else -0.5."""
    if plan.design is Design.MOS:
        return _compare_mos(plan, answers, first, second)
    scores = []
    for one in filter(is_main, answers):
        systems = one.screen.systems
        if first in systems and second in systems:
            value = _lead(plan.design, one, systems.index(first), systems.index(second))
            scores.append(Score(one.rater, plan.items[one.screen.item].script, value))
    return scores


def _lead(design: Design, judged: Judged, first: int, second: int) -> float:
    """By how much a clip leads another of the screen, both by their places from 0."""
    answer = judged.answer
    match design:
        case Design.PREFERENCE:
            better = answer["better"] - 1
            return float(better == first) - float(better == second)
        case Design.CMOS:
            return float(answer["score"] if first == 1 else -answer["score"])
        case Design.ABX:
            return 0.5 if answer["x"] - 1 == judged.screen.x else -0.5
        case Design.MUSHRA:
            return float(answer["scores"][first] - answer["scores"][second])
    return _best_worst(answer, first) - _best_worst(answer, second)


def _best_worst(answer: Mapping, place: int) -> float:
    return float(answer["best"] - 1 == place) - float(answer["worst"] - 1 == place)


def _compare_mos(
    plan: PanelPlan, answers: Iterable[Judged], first: int, second: int
) -> list[Score]:
    given: dict[tuple[str, int], dict[int, float]] = {}
    for one in filter(is_main, answers):
        (system,) = one.screen.systems
        given.setdefault((one.rater, one.screen.item), {})[system] = float(one.answer["score"])
    return [
        Score(rater, plan.items[item].script, by_system[first] - by_system[second])
        for (rater, item), by_system in given.items()
        if first in by_system and second in by_system
    ]


def rate_system(plan: PanelPlan, answers: Iterable[Judged], system: int) -> list[Score]:
    """What a system got on its own scale: scores of MOS and MUSHRA, best minus worst of BWS.
    Nothing for designs of pairs."""
    if SPECS[plan.design].pairs:
        return []
    scores = []
    for one in filter(is_main, answers):
        if system in one.screen.systems:
            place = one.screen.systems.index(system)
            value = _own_score(plan.design, one.answer, place)
            scores.append(Score(one.rater, plan.items[one.screen.item].script, value))
    return scores


def _own_score(design: Design, answer: Mapping, place: int) -> float:
    if design is Design.MOS:
        return float(answer["score"])
    if design is Design.MUSHRA:
        return float(answer["scores"][place])
    return _best_worst(answer, place)
