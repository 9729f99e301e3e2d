"""Whether a rater listened: catch trials, hidden repeats, the hidden reference, the plan's rules.

Everything follows from a rater's own answers and the plan, nothing from the result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dia_demo.services.listening.panel.designs import Design
from dia_demo.services.listening.panel.plan import PanelPlan
from dia_demo.services.listening.panel.raters import Rater
from dia_demo.services.listening.panel.sessions import ANCHOR, Presentation, ScreenPart
from dia_demo.services.listening.panel.votes import PanelVote

# Scores of one clip that differ by no more are consistent.
_NEAR_CMOS, _NEAR_MOS, _NEAR_MUSHRA = 1, 1, 15
# BS.1534: a listener who hears the hidden reference gives it at least so much.
_REFERENCE_SCORE = 90


@dataclass(frozen=True)
class RaterChecks:
    """What the hidden screens say of a rater. low_references: of the screens with a hidden
    reference. answered, screens: without training."""

    answered: int
    screens: int
    catch_passed: int
    catch: int
    repeats_consistent: int
    repeats: int
    low_references: int
    references: int

    @property
    def complete(self) -> bool:
        return self.answered >= self.screens


def check_rater(
    plan: PanelPlan, screens: Mapping[str, Presentation], votes: Mapping[str, PanelVote]
) -> RaterChecks:
    """The checks of one rater's session. votes: by screen."""
    tested = [one for one in screens.values() if one.part is not ScreenPart.TRAINING]
    heard = [one for one in tested if one.id in votes]
    mean = _own_mean(plan, heard, votes)
    caught = [
        _passes(plan.design, one, votes[one.id].value, mean)
        for one in heard
        if one.part in (ScreenPart.IDENTICAL, ScreenPart.ANCHORED)
    ]
    repeated = [
        _is_consistent(plan.design, one, votes[one.id].value, first, votes[first.id].value)
        for one in heard
        if one.part is ScreenPart.REPEAT
        for first in [screens[one.repeats]]
        if first.id in votes
    ]
    references = [
        votes[one.id].value["scores"][one.systems.index(plan.reference)]
        for one in heard
        if plan.reference is not None and one.part is ScreenPart.MAIN
    ]
    return RaterChecks(
        answered=len(heard),
        screens=len(tested),
        catch_passed=sum(caught),
        catch=len(caught),
        repeats_consistent=sum(repeated),
        repeats=len(repeated),
        low_references=sum(score < _REFERENCE_SCORE for score in references),
        references=len(references),
    )


def why_excluded(plan: PanelPlan, rater: Rater, checks: RaterChecks) -> str:
    """The reason why a rater does not count, blank for one who does. The owner's comes first."""
    rules = plan.rules
    if rater.excluded:
        return rater.excluded
    if not checks.complete and (rules.complete or not checks.answered):
        return f"answered {checks.answered} of {checks.screens} screens"
    if checks.catch and 1 - checks.catch_passed / checks.catch > rules.catch:
        return f"failed {checks.catch - checks.catch_passed} of {checks.catch} catch trials"
    if checks.repeats and checks.repeats_consistent / checks.repeats < rules.repeats:
        return f"was consistent in {checks.repeats_consistent} of {checks.repeats} repeats"
    if rules.headphones and rater.headphones is not True:
        return "did not pass the headphone check"
    if checks.references and checks.low_references / checks.references > rules.reference:
        return (
            f"rated the hidden reference under {_REFERENCE_SCORE} on {checks.low_references} of "
            f"{checks.references} screens"
        )
    return ""


def _own_mean(
    plan: PanelPlan, heard: Sequence[Presentation], votes: Mapping[str, PanelVote]
) -> float:
    """Of MOS, a rater's mean score of what is no anchor."""
    if plan.design is not Design.MOS:
        return 0.0
    scores = [votes[one.id].value["score"] for one in heard if one.part is ScreenPart.MAIN]
    return sum(scores) / len(scores) if scores else 3.0


def _passes(design: Design, screen: Presentation, answer: Mapping, own_mean: float) -> bool:
    """Whether a catch trial was answered as anybody would who listens."""
    if screen.part is ScreenPart.IDENTICAL:
        if design is Design.CMOS:
            return abs(answer["score"]) <= 1
        return answer["better"] == 0 or answer["strength"] == 1
    anchor = screen.systems.index(ANCHOR)
    match design:
        case Design.PREFERENCE:
            return answer["better"] == 2 - anchor
        case Design.CMOS:
            return answer["score"] > 0 if anchor == 0 else answer["score"] < 0
        case Design.ABX:
            return answer["x"] - 1 == screen.x
        case Design.BWS:
            return answer["worst"] - 1 == anchor
        case Design.MUSHRA:
            return answer["scores"][anchor] == min(answer["scores"])
        case Design.MOS:
            return answer["score"] < own_mean


def _is_consistent(
    design: Design, screen: Presentation, answer: Mapping, first: Presentation, earlier: Mapping
) -> bool:
    """Whether a hidden repeat got the answer of its first time."""

    def chosen_system(one: Presentation, number: int) -> int | None:
        return one.systems[number - 1] if number else None

    match design:
        case Design.PREFERENCE:
            return chosen_system(screen, answer["better"]) == chosen_system(
                first, earlier["better"]
            )
        case Design.CMOS:
            # The sides are turned, so the same opinion has the opposite sign.
            return abs(answer["score"] + earlier["score"]) <= _NEAR_CMOS
        case Design.ABX:
            right = [one["x"] - 1 == of.x for one, of in ((answer, screen), (earlier, first))]
            return right[0] == right[1]
        case Design.BWS:
            return any(
                chosen_system(screen, answer[what]) == chosen_system(first, earlier[what])
                for what in ("best", "worst")
            )
        case Design.MOS:
            return abs(answer["score"] - earlier["score"]) <= _NEAR_MOS
        case Design.MUSHRA:
            now = dict(zip(screen.systems, answer["scores"], strict=True))
            before = dict(zip(first.systems, earlier["scores"], strict=True))
            apart = [abs(now[system] - before[system]) for system in now]
            return sum(apart) / len(apart) <= _NEAR_MUSHRA
