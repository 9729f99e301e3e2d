"""The Compare tab's form: the plan it makes, and what it says before anything is made."""

from __future__ import annotations

import pytest

from dia_demo.errors import InputError
from dia_demo.ui.compare.form import MAX_SCRIPTS_CHARACTERS, SIDE_FIELDS, CompareForm
from dia_demo.ui.compare.handlers import CompareHandlers
from dia_demo.ui.compare.layout import CompareParts
from tests.helpers.page_stubs import COMPARE_SCRIPT, compare_values, parts_by_name


def test_a_form_is_a_plan(synthesis, side_values):
    plan = CompareForm.of(
        compare_values(side_values, scripts=f"{COMPARE_SCRIPT}\n---\n[S1] More.")
    ).plan(synthesis)
    assert plan.kind == "preference" and plan.seeds == (7, 8) and len(plan.trials) == 4
    assert [one.params.temperature for one in plan.settings] == [
        side_values["temperature"], 1.9,
    ]  # fmt: skip


def test_more_text_than_is_looked_at_is_refused_at_once(synthesis, side_values, monkeypatch):
    monkeypatch.setattr("dia_demo.ui.compare.form.split_scripts", None)
    long = compare_values(side_values, scripts="a" * (MAX_SCRIPTS_CHARACTERS + 1))
    with pytest.raises(InputError, match="100,000 are allowed"):
        CompareForm.of(long).plan(synthesis)
    assert "100,000" in CompareHandlers(synthesis, None, parts_by_name(CompareParts)).describe(
        *long
    )


def test_a_round_varies_one_value(synthesis, side_values):
    form = CompareForm.of(compare_values(side_values, kind="round", values="5, 9,20"))
    assert [one.params.top_k for one in form.settings(synthesis)] == [5, 9, 20]
    assert len(form.plan(synthesis).trials) == 6


@pytest.mark.parametrize(
    "change, message",
    [
        (dict(kind="round", values="5"), "2 to 6 values"),
        (dict(kind="round", values="5, many"), "top_k must be a whole number"),
        (dict(second={}), "identical"),
        (dict(second={"temperature": None}), "Settings B: temperature must be a number"),
        (dict(scripts=" "), "script is empty"),
        (dict(first_seed="soon"), "seed"),
        (dict(seeds=0), "number of seeds"),
    ],
)
def test_forms_say_what_is_wrong(synthesis, side_values, change, message):
    with pytest.raises(InputError, match=message):
        CompareForm.of(compare_values(side_values, **change)).plan(synthesis)


def test_the_note_describes_the_planned_comparison(synthesis, side_values):
    handlers = CompareHandlers(synthesis, None, parts_by_name(CompareParts))
    note = handlers.describe(*compare_values(side_values, seeds=6))
    assert "Temperature" in note and "vs. 1.9" in note and ".field-temperature" in note
    assert "6 pairs to listen to, 12 takes to generate" in note
    assert "6 pairs of 1 script can show nothing" in note and "differ by chance" not in note
    abx = handlers.describe(*compare_values(side_values, kind="abx"))
    assert "differ by chance" in abx
    assert "differ by chance" not in handlers.describe(
        *compare_values(side_values, kind="abx", second={"speed": 1.5})
    )
    two = handlers.describe(*compare_values(side_values, second={"temperature": 1.9, "top_k": 3}))
    assert "More than one setting differs" in two
    assert "problem" in handlers.describe(*compare_values(side_values, second={"top_k": None}))


@pytest.mark.parametrize("number", [float("nan"), float("inf"), 1e300, "many", 2.5])
def test_numbers_that_are_none_are_refused_in_words(synthesis, side_values, number):
    handlers = CompareHandlers(synthesis, None, parts_by_name(CompareParts))
    assert "number of seeds must be" in handlers.describe(
        *compare_values(side_values, seeds=number)
    )


@pytest.mark.parametrize("speed", [0, float("nan"), -1])
def test_a_speed_that_is_none_is_refused_in_words(synthesis, side_values, speed):
    handlers = CompareHandlers(synthesis, None, parts_by_name(CompareParts))
    assert "speed must be" in handlers.describe(
        *compare_values(side_values, second={"speed": speed})
    )


def test_both_sides_start_from_other_settings(synthesis, side_values):
    handlers = CompareHandlers(synthesis, None, parts_by_name(CompareParts))
    values = side_values | {"temperature": 0.3, "script": "x", "cfg_scale": None}
    sides = handlers.both_sides(values)
    assert (
        len(sides) == 2 * len(SIDE_FIELDS)
        and sides[: len(SIDE_FIELDS)] == sides[-len(SIDE_FIELDS) :]
    )
    assert sides[0] == 0.3 and sides[1] == side_values["cfg_scale"]
