"""The fields of a test with many listeners, and their values as `PanelOptions`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dia_demo.errors import InputError
from dia_demo.services.listening.owner.options import PanelOptions
from dia_demo.services.listening.panel.designs import Design
from dia_demo.services.listening.panel.plan import GoalKind, LookKind

DESIGNS = [
    ("Preference: which sounds better?", Design.PREFERENCE),
    ("CMOS: how much better, −3 to +3?", Design.CMOS),
    ("ABX: can they be told apart?", Design.ABX),
    ("MUSHRA: 0 to 100, all on one screen", Design.MUSHRA),
    ("Best and worst of 3 to 6", Design.BWS),
    ("MOS: one clip, 1 to 5", Design.MOS),
]
GOALS = [
    ("Which is better?", GoalKind.SUPERIORITY),
    ("Is the second at least as good?", GoalKind.NONINFERIORITY),
    ("Are the two equally good?", GoalKind.EQUIVALENCE),
]
LOOKS = [
    ("Only when the planned number is reached", LookKind.NONE),
    ("At planned looks, with O'Brien-Fleming levels", LookKind.OBRIEN_FLEMING),
    ("After every listener, as an e-value", LookKind.E_VALUE),
]
# In the order in which the page passes their values. margin and trials: 0 for what is usual.
FIELDS = (
    "design",
    "raters",
    "trials",
    "goal",
    "margin",
    "look_kind",
    "looks",
    "attributes",
    "headphone_check",
    "reference",
    "training",
    "catch_percent",
    "repeats",
    "null_pairs",
    "break_every",
    "title",
    "consent",
    "completion_code",
    "completion_url",
)
_WHOLE = ("raters", "trials", "looks", "training", "repeats", "null_pairs", "break_every")


def options_of(values: Sequence[Any]) -> PanelOptions:
    """The options that the values of FIELDS are. Raises InputError for a number that is none."""
    named = dict(zip(FIELDS, values, strict=True))
    for name in _WHOLE:
        named[name] = _whole(name, named[name])
    named["trials"] = named["trials"] or None
    named["margin"] = named["margin"] or None
    named["reference"] = 0 if named["reference"] and named["design"] == Design.MUSHRA else None
    return PanelOptions.from_mapping(named)


def _whole(name: str, value: Any) -> int:
    """A number field's value; blank is 0."""
    number = 0 if value in (None, "") else value
    if isinstance(number, bool) or not isinstance(number, int | float) or number != int(number):
        raise InputError(f"{name} must be a whole number, not {value!r:.60}.")
    return int(number)
