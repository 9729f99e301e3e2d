"""Designs of panel tests: what a screen contains, what a valid answer is, how it is scored.

The scales are those of ITU-T P.800 (MOS, CMOS), ITU-R BS.1534 (MUSHRA) and Louviere's best-worst
scaling.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from dia_demo.errors import InputError


class Design(StrEnum):
    """What a listener does on each screen of a panel test."""

    PREFERENCE = "preference"
    ABX = "abx"
    CMOS = "cmos"
    MUSHRA = "mushra"
    BWS = "bws"
    MOS = "mos"


# What a listener may tick beside an answer.
ATTRIBUTES = ("voice", "pace", "words", "noise")
STRENGTHS = (1, 2, 3)
MOS_SCORES, CMOS_SCORES = range(1, 6), range(-3, 4)
MUSHRA_BEST = 100


@dataclass(frozen=True)
class DesignSpec:
    """The rules of a design. systems: the fewest and the most that are compared. clips: the number
    of clips of a screen, None for one clip of every system. pairs: each screen compares two
    systems. unit: of the margin. span: the largest difference between two systems. is_share: the
    difference is one of shares of answers, whose variance is smaller near the ends."""

    systems: tuple[int, int]
    clips: int | None
    pairs: bool
    unit: str
    span: float
    is_share: bool = False

    @property
    def limit(self) -> float | None:
        """Of means of shares (see `CrossedMean`), None for points of a scale."""
        return self.span if self.is_share else None


SPECS = {
    Design.PREFERENCE: DesignSpec((2, 6), 2, True, "share of answers", 1.0, True),
    Design.ABX: DesignSpec((2, 2), 3, True, "share of right answers", 0.5, True),
    Design.CMOS: DesignSpec((2, 6), 2, True, "points of CMOS", 3.0),
    Design.MUSHRA: DesignSpec((2, 12), None, False, "points of MUSHRA", 100.0),
    Design.BWS: DesignSpec((3, 6), None, False, "best minus worst per screen", 2.0, True),
    Design.MOS: DesignSpec((2, 12), 1, False, "points of MOS", 4.0),
}


def check_answer(design: Design, clips: int, answer: object) -> dict[str, Any]:
    """A valid answer to a screen with so many clips (MUSHRA: without the open reference), with
    the fields of its design alone. Raises InputError for another one."""
    if not isinstance(answer, Mapping):
        raise InputError(f"An answer is an object of the {design} test, not {answer!r:.80}.")
    match design:
        case Design.PREFERENCE:
            better = _whole(answer, "better", range(3))
            strength = answer.get("strength")
            if strength is not None:
                strength = _whole(answer, "strength", STRENGTHS)
            return {"better": better, "strength": strength if better else None}
        case Design.ABX:
            return {"x": _whole(answer, "x", (1, 2))}
        case Design.CMOS:
            return {"score": _whole(answer, "score", CMOS_SCORES)}
        case Design.MOS:
            return {"score": _whole(answer, "score", MOS_SCORES)}
        case Design.MUSHRA:
            return {"scores": _scores(answer.get("scores"), clips)}
        case Design.BWS:
            numbers = range(1, clips + 1)
            best, worst = _whole(answer, "best", numbers), _whole(answer, "worst", numbers)
            if best == worst:
                raise InputError("The best and the worst clip must be two different ones.")
            return {"best": best, "worst": worst}


def check_attributes(offered: Sequence[str], ticked: object) -> list[str]:
    """The attributes that were ticked, each once, in the order offered. Raises InputError for one
    that was not offered."""
    if not isinstance(ticked, list | tuple) or not all(isinstance(one, str) for one in ticked):
        raise InputError("The attributes of an answer are a list of names.")
    if surplus := set(ticked) - set(offered):
        raise InputError(f"This test has no attribute {sorted(surplus)[0]!r:.40}.")
    return [name for name in offered if name in ticked]


def _whole(answer: Mapping, name: str, allowed: Sequence[int]) -> int:
    value = answer.get(name)
    if type(value) is not int or value not in allowed:
        raise InputError(
            f"{name} must be a whole number from {min(allowed)} to {max(allowed)}, not "
            f"{value!r:.40}."
        )
    return value


def _scores(scores: object, clips: int) -> list[int]:
    if not isinstance(scores, list) or len(scores) != clips:
        raise InputError(f"Rate each of the {clips} clips from 0 to {MUSHRA_BEST}.")
    return [_whole({"a score": one}, "a score", range(MUSHRA_BEST + 1)) for one in scores]
