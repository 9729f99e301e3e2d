"""What the owner of a test chooses, as its plan; what cannot be chosen, in a sentence."""

from __future__ import annotations

import pytest

from dia_demo.errors import InputError
from dia_demo.services.listening.owner.options import MARGINS, PanelOptions
from dia_demo.services.listening.panel.designs import ATTRIBUTES, Design
from dia_demo.services.listening.panel.plan import GoalKind, Item, LookKind

ITEMS = tuple(Item(f"Sentence {number}.", number, f"s{number}") for number in range(8))


def plan_of(**options):
    return PanelOptions.from_mapping(options).plan(("old", "new", "newer"), ITEMS)


def test_the_second_setting_is_to_be_shown_as_good_as_the_first():
    plan = plan_of(design="cmos", goal="noninferiority", attributes=True, headphone_check=True)
    assert (plan.systems[plan.goal.first], plan.systems[plan.goal.second]) == ("new", "old")
    assert plan.goal.margin == MARGINS[Design.CMOS] and plan.attributes == ATTRIBUTES
    assert plan.session.headphone_check and plan.rules.headphones and plan.trials == 24


@pytest.mark.parametrize("design", Design)
@pytest.mark.parametrize("goal", GoalKind)
def test_every_design_has_a_usual_margin(design, goal):
    systems = ("old", "new") if design is Design.ABX else ("old", "new", "newer")
    options = PanelOptions.from_mapping({"design": design, "goal": goal})
    if design is Design.ABX and goal is GoalKind.NONINFERIORITY:
        with pytest.raises(InputError, match="choose equivalence"):
            options.plan(systems, ITEMS)
        return
    margin = options.plan(systems, ITEMS).goal.margin
    assert (margin > 0) == (goal is not GoalKind.SUPERIORITY)


def test_looks_are_planned_or_there_are_none():
    options = PanelOptions.from_mapping({"look_kind": "obrien-fleming", "looks": 4})
    looks = options.plan(("old", "new"), ITEMS).looks
    assert (looks.kind, looks.number) == (LookKind.OBRIEN_FLEMING, 4)
    assert plan_of(looks=4).looks.number == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"voices": 2}, "no option 'voices': use attributes"),
        ({"design": "taste"}, "design must be one of preference"),
        ({"goal": "best"}, "goal must be one of superiority"),
        ({"look_kind": "often"}, "look_kind must be one of"),
        ({"raters": "12"}, "raters must be a whole number"),
        ({"raters": True}, "raters must be yes or no|raters must be a whole number"),
        ({"raters": 0}, "number of raters"),
        ({"attributes": 1}, "attributes must be yes or no"),
        ({"catch_percent": "many"}, "catch_percent must be a number"),
        ({"title": 7}, "title must be a text"),
        ({"goal": "equivalence", "margin": 2.0}, "margin must be above 0"),
        ({"completion_url": "javascript:alert(1)"}, "must start with http"),
    ],
)
def test_what_cannot_be_chosen_is_said(options, message):
    with pytest.raises(InputError, match=message):
        plan_of(**options)
