"""What whoever makes a panel test chooses: the same options on the page, over HTTP and on the
command line.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from dia_demo.errors import InputError
from dia_demo.services.listening.panel.designs import ATTRIBUTES, Design
from dia_demo.services.listening.panel.plan import (
    ExclusionRules,
    Goal,
    GoalKind,
    Item,
    LookKind,
    Looks,
    PanelPlan,
    SessionRules,
    make_panel_plan,
)

RATERS = 12
# What a consent line says where the owner has written none.
CONSENT = (
    "I take part voluntarily and can stop at any time. My answers, listening times and the name I "
    "give, if any, are stored by whoever sent me this test."
)
# By design: the margin that is offered first, in the unit of the design.
MARGINS = {
    Design.PREFERENCE: 0.15,
    Design.ABX: 0.1,
    Design.CMOS: 0.3,
    Design.MUSHRA: 5.0,
    Design.BWS: 0.3,
    Design.MOS: 0.3,
}


@dataclass(frozen=True)
class PanelOptions:
    """trials: screens of each listener, None for all. goal: what is to be shown of `candidate`
    against `baseline`, by their numbers. margin: in the unit of the design; None for that of
    MARGINS. looks: at the result, of which the last is at the end. reference: the number of the
    system that is MUSHRA's open reference. catch_percent: of the screens.
    """

    design: str = Design.PREFERENCE
    raters: int = RATERS
    trials: int | None = None
    goal: str = GoalKind.SUPERIORITY
    margin: float | None = None
    candidate: int = 1
    baseline: int = 0
    look_kind: str = LookKind.NONE
    looks: int = 3
    reference: int | None = None
    attributes: bool = False
    headphone_check: bool = False
    training: int = 2
    catch_percent: float = 10.0
    repeats: int = 1
    null_pairs: int = 1
    break_every: int = 20
    title: str = ""
    consent: str = CONSENT
    completion_code: str = ""
    completion_url: str = ""

    @classmethod
    def from_mapping(cls, given: Mapping[str, Any]) -> PanelOptions:
        """Options by their names; None counts as not given. Raises InputError for other names."""
        known = {field.name for field in fields(cls)}
        if surplus := sorted(given.keys() - known):
            raise InputError(
                f"A listening test has no option {surplus[0]!r:.60}: use "
                f"{', '.join(sorted(known))}."
            )
        return cls(**{name: value for name, value in given.items() if value is not None})

    def plan(self, systems: Sequence[str], items: Sequence[Item]) -> PanelPlan:
        """The plan of a test of these systems and items. Raises InputError with what is
        allowed."""
        _check_choice("design", self.design, Design)
        _check_choice("goal", self.goal, GoalKind)
        _check_choice("look_kind", self.look_kind, LookKind)
        _check_numbers(self)
        return make_panel_plan(
            self.design,
            systems,
            items,
            raters=self.raters,
            trials=self.trials,
            title=" ".join(self.title.split()),
            reference=self.reference,
            attributes=ATTRIBUTES if self.attributes else (),
            goal=self._goal(),
            looks=self._looks(),
            rules=ExclusionRules(headphones=self.headphone_check),
            session=SessionRules(
                training=self.training,
                catch_share=self.catch_percent / 100,
                repeats=self.repeats,
                null_pairs=self.null_pairs,
                break_every=self.break_every,
                headphone_check=self.headphone_check,
            ),
            consent=self.consent.strip(),
            completion_code=self.completion_code.strip(),
            completion_url=self.completion_url.strip(),
        )

    def _goal(self) -> Goal:
        kind = GoalKind(self.goal)
        if kind is GoalKind.SUPERIORITY:
            return Goal(kind, 0.0, self.candidate, self.baseline)
        margin = MARGINS[Design(self.design)] if self.margin is None else self.margin
        return Goal(kind, margin, self.candidate, self.baseline)

    def _looks(self) -> Looks:
        kind = LookKind(self.look_kind)
        return Looks(kind, self.looks if kind is LookKind.OBRIEN_FLEMING else 1)


def _check_choice(name: str, value: object, kind: Any) -> None:
    if value not in list(kind):
        raise InputError(f"{name} must be one of {', '.join(kind)}, not {value!r:.60}.")


def _check_numbers(options: PanelOptions) -> None:
    """Raise InputError for a number that is none; ranges are checked with the plan."""
    for field in fields(options):
        value, kind = getattr(options, field.name), str(field.type)
        if value is None and "None" in kind:
            continue
        if kind.startswith("bool") != isinstance(value, bool):
            raise InputError(f"{field.name} must be yes or no, not {value!r:.60}.")
        if kind.startswith("int") and type(value) is not int:
            raise InputError(f"{field.name} must be a whole number, not {value!r:.60}.")
        if kind.startswith("float") and not isinstance(value, int | float):
            raise InputError(f"{field.name} must be a number, not {value!r:.60}.")
        if kind.startswith("str") and not isinstance(value, str):
            raise InputError(f"{field.name} must be a text, not {value!r:.60}.")
