"""The Compare tab's form: the plan it makes, and what it says before anything is made."""

from __future__ import annotations

import re
from types import SimpleNamespace

import gradio as gr
import numpy as np
import pytest

from dia_demo.config import PARAMS
from dia_demo.errors import InputError
from dia_demo.prompt.voice_file import VoiceFile
from dia_demo.services.listening.plan_time import expected_audio
from dia_demo.services.people import new_key
from dia_demo.services.voices.kept import KeptVoices
from dia_demo.ui.compare.form.fields import FIELDS, MAX_SCRIPTS_CHARACTERS, SIDE_FIELDS, CompareForm
from dia_demo.ui.compare.form.fields import default_side as default_fields
from dia_demo.ui.compare.form.question import default_values, round_values
from dia_demo.ui.compare.reload import restored_updates
from dia_demo.ui.compare.setup import START, VOICE_MENUS, SetupHandlers
from dia_demo.voices import VOICE_FIELDS
from tests.helpers.models.checkpoints import NANO_DEFAULTS
from tests.helpers.models.known import DIA_NAME, NANO
from tests.helpers.page.page_stubs import COMPARE_SCRIPT, compare_values
from tests.helpers.voices import NO_VOICES


@pytest.fixture
def setup(synthesis):
    """The form's handlers over components that are their own names."""
    parts = SimpleNamespace(
        fields={name: name for name in FIELDS},
        rows={name: f"row_{name}" for name in SIDE_FIELDS},
        before="before",
        between="between",
        after="after",
    )
    return SetupHandlers(synthesis, parts)


def note_of(setup, values) -> str:
    return setup.describe(None, *values)[0]


def test_a_form_is_a_plan(synthesis, side_values):
    plan = CompareForm.from_values(
        compare_values(side_values, scripts=f"{COMPARE_SCRIPT}\n---\n[S1] More.")
    ).plan(synthesis)
    assert plan.kind == "preference" and plan.seeds == (7, 8) and len(plan.trials) == 4
    assert [setting.params.temperature for setting in plan.settings] == [
        side_values["temperature"], 1.9,
    ]  # fmt: skip


def test_only_the_question_differs_unless_more_is_asked_for(synthesis, side_values):
    values = compare_values(side_values, second={"temperature": 1.9, "top_k": 3}, separate=False)
    one, other = CompareForm.from_values(values).settings(synthesis)
    assert one.params.top_k == other.params.top_k == side_values["top_k"]
    values = compare_values(side_values, second={"temperature": 1.9, "top_k": 3})
    assert CompareForm.from_values(values).settings(synthesis)[1].params.top_k == 3


def test_more_text_than_is_looked_at_is_refused_at_once(synthesis, setup, side_values, monkeypatch):
    monkeypatch.setattr("dia_demo.ui.compare.form.fields.split_scripts", None)
    long = compare_values(side_values, scripts="a" * (MAX_SCRIPTS_CHARACTERS + 1))
    with pytest.raises(InputError, match="100,000 are allowed"):
        CompareForm.from_values(long).plan(synthesis)
    assert "100,000" in note_of(setup, long)


def test_a_round_varies_one_value(synthesis, side_values):
    form = CompareForm.from_values(
        compare_values(side_values, kind="round", differs="top_k", values="5, 9,20")
    )
    assert [setting.params.top_k for setting in form.settings(synthesis)] == [5, 9, 20]
    assert len(form.plan(synthesis).trials) == 6


@pytest.mark.parametrize(
    "change, message",
    [
        (dict(kind="round", values="5"), "2 to 6 values"),
        (dict(kind="round", differs="top_k", values="5, many"), "Top-k must be a whole number"),
        (dict(kind="round", differs="model", values="5, many"), "needs one model"),
        (dict(second={}), "identical"),
        (dict(second={"temperature": None}), "^Temperature must be a number"),
        (
            dict(second={"temperature": 1.9, "top_k": None}),
            "Second side: Top-k must be a whole number, not blank",
        ),
        (dict(scripts=" "), "script is empty"),
        (dict(first_seed="soon"), "^Seed must be"),
        (dict(seeds=0), "number of seeds"),
        (dict(second={"temperature": 9}), "Temperature must be a number from 0 to 5, not 9"),
        (dict(second={"temperature": -1}), "Temperature must be a number from 0 to 5, not -1"),
        (dict(second={"speed": 0}), "Speed must be"),
        (dict(second={"speed": float("nan")}), "Speed must be"),
        (dict(use_voice=True), "no voice prompt on the Generate tab"),
        (dict(seeds=float("nan")), "number of seeds must be"),
        (dict(seeds=float("inf")), "number of seeds must be"),
        (dict(seeds=1e300), "number of seeds must be"),
        (dict(seeds="many"), "number of seeds must be"),
        (dict(seeds=2.5), "number of seeds must be"),
        (dict(scripts="[S1] " + "word " * 400), "bytes and the model reads"),
    ],
)
def test_the_note_refuses_what_cannot_be_made(setup, side_values, change, message):
    """Before the pairs are made, in the words of the refusal then."""
    note = note_of(setup, compare_values(side_values, **change))
    assert 'class="plan-note problem"' in note
    assert re.search(message, note.split("<p>")[1]), note


@pytest.mark.parametrize("prompt", [{"path": "/tmp/missing.wav"}, "/tmp/missing.wav"])
def test_the_note_does_not_open_the_voice_prompt(setup, side_values, prompt):
    """Its path is as the page sent it."""
    values = compare_values(side_values, use_voice=True, voice_prompt=prompt)
    assert "2 pairs to listen to" in note_of(setup, values)


def test_the_note_describes_the_planned_comparison(setup, side_values):
    note = note_of(setup, compare_values(side_values, seeds=6))
    assert "6 pairs to listen to, 12 takes to generate" in note
    assert "6 pairs of 1 script can show nothing" in note and "differ by chance" not in note
    assert "differ by chance" in note_of(setup, compare_values(side_values, kind="abx"))
    assert "differ by chance" not in note_of(
        setup, compare_values(side_values, kind="abx", second={"speed": 1.5})
    )
    assert "will be different speakers" in note and "the same voices" not in note
    speed = note_of(setup, compare_values(side_values, second={"speed": 1.5}))
    assert "Both sides of a pair have the same voices." in speed and "speakers" not in speed
    two = note_of(setup, compare_values(side_values, second={"temperature": 1.9, "top_k": 3}))
    assert "More than one setting differs (temperature, top-k)" in two


def test_the_pronunciations_of_the_generate_tab_count(setup, synthesis, side_values):
    side_values = side_values | {"max_tokens": 600}
    values = compare_values(side_values, pronunciations="Hello = hello again and again and again")
    plan = CompareForm.from_values(values).plan(synthesis)
    request = plan.settings[0].request(NANO, "[S1] Hello.", 3, None, NO_VOICES)
    assert request.encode() == b"\x01 hello again and again and again."
    (slot, *_), without = (
        plan.slots,
        CompareForm.from_values(compare_values(side_values)).plan(synthesis),
    )
    assert expected_audio(plan, slot, synthesis) > expected_audio(without, slot, synthesis)
    assert "1 pronunciation of the Generate tab applies to both sides" in note_of(setup, values)
    off = compare_values(side_values, pronunciations="no entry", use_pronunciations=False)
    assert "pronunciation" not in note_of(setup, off)
    assert "line 1: write" in note_of(setup, compare_values(side_values, pronunciations="no entry"))


def test_the_note_tells_how_long_it_takes(setup, side_values, monkeypatch):
    """Of 24 takes of Dia on most machines half an hour."""
    values = compare_values(side_values, seeds=6)
    monkeypatch.setattr(setup.synthesis.speed, "seconds_per_second", lambda *_: None)
    assert "to generate on this machine" not in note_of(setup, values)
    monkeypatch.setattr(setup.synthesis.speed, "seconds_per_second", lambda *_: 120.0)
    assert re.search(
        r"about \d+ s of audio, (about|less than) .*\d+ min to generate on this machine\.",
        note_of(setup, values),
    )


def test_the_power_of_a_test_is_told_in_plain_words(setup, side_values):
    six = "\n---\n".join(f"[S1] This is number {number}." for number in range(6))
    note = note_of(setup, compare_values(side_values, scripts=six, seeds=1, ties=0))
    assert (
        "Even if one side really is better three times in four, a test of 6 pairs notices it only "
        "19% of the time: take more scripts." in note
    )
    with_ties = note_of(setup, compare_values(side_values, scripts=six, seeds=1, ties=30))
    assert "and 30% of the answers are “no difference”, a test of 6 pairs" in with_ties
    assert "fewer than 6 scripts have a majority 8" in with_ties
    assert "must be a number from 0 to 60" in note_of(setup, compare_values(side_values, ties=99))


# -- the question ------------------------------------------------------------------------------


@pytest.mark.parametrize("model", ["nano", DIA_NAME])
def test_every_setting_has_two_values_to_begin_with(synthesis, model):
    side = default_fields(synthesis, model)
    for name in SIDE_FIELDS:
        first, second = default_values(name, side, list(synthesis.models.values()))
        if name in VOICE_FIELDS and model == DIA_NAME:
            assert first == second == "", "it has none by name"
            continue
        assert first != second and type(first) is type(second)
        if name in PARAMS:
            assert first == side[name], "the model's own default comes first"
        if name != "model":
            assert len(round_values(name, first, second).split(", ")) >= 2


def test_values_to_begin_with_suit_the_model(synthesis):
    def pairs(model):
        side = default_fields(synthesis, model)
        return [
            default_values(name, side, list(synthesis.models.values()))
            for name in ("temperature", "cfg_scale")
        ]

    own = NANO_DEFAULTS.temperature
    assert pairs("nano") == [(own, pytest.approx(2.5 * own)), (1.0, 2.5)]
    assert pairs(DIA_NAME) == [(1.8, 1.2), (3.0, 2.0)]


def test_a_chosen_setting_brings_its_values(setup, side_values):
    updates = setup.choose_setting("preference", "precision", False, *side_values.values())
    assert updates["first_choice"]["value"] == "float32" and updates["first_choice"]["visible"]
    assert not updates["first"]["visible"] and not updates["values"]["visible"]
    assert not updates["row_precision"]["visible"] and updates["row_temperature"]["visible"]


def test_a_second_model_brings_its_own_defaults(setup, side_values):
    updates = setup.choose_setting("preference", "model", False, *side_values.values())
    assert updates["second_choice"]["value"] == DIA_NAME
    assert updates["b_temperature"]["value"] == 1.8 and updates["b_temperature"]["visible"]
    assert (
        setup.choose_second("model", "nano")["b_temperature"]["value"] == NANO_DEFAULTS.temperature
    )
    assert "value" not in setup.choose_second("precision", "int8")["b_model"]


def test_a_model_of_both_sides_brings_its_values_to_the_question(setup):
    updates = setup.change_model("temperature", DIA_NAME, "auto")
    assert (updates["first"]["value"], updates["second"]["value"]) == (1.8, 1.2)
    assert updates["a_cfg_scale"]["value"] == 3.0 and updates["values"]["value"] == "1.2, 1.5, 1.8"


@pytest.mark.parametrize(
    "kind, shown", [("preference", {"first", "second"}), ("round", {"values"})]
)
def test_only_fields_that_count_are_shown(setup, kind, shown):
    updates = setup.choose_kind(kind, "temperature", False)
    question = ("first", "second", "first_choice", "second_choice", "values")
    assert {name for name in question if updates[name]["visible"]} == shown
    assert not any(updates[f"b_{name}"]["visible"] for name in SIDE_FIELDS)
    assert updates["separate"]["visible"] == (kind != "round")


def test_the_second_side_begins_as_the_first(setup, side_values):
    updates = setup.separate("preference", "temperature", True, *side_values.values())
    assert updates["b_top_k"] == {
        "__type__": "update", "visible": True, "value": side_values["top_k"],
    }  # fmt: skip
    assert (
        "value"
        not in setup.separate("preference", "temperature", False, *side_values.values())["b_top_k"]
    )


def test_both_sides_start_from_other_settings(setup, side_values):
    values = side_values | {"temperature": 0.3, "script": "x", "cfg_scale": None}
    started = dict(zip(START, setup.start_from(values, "temperature"), strict=True))
    assert started["first"] == 0.3 != started["second"] and started["scripts"] == "x"
    assert started["a_cfg_scale"] == started["b_cfg_scale"] == side_values["cfg_scale"]


# -- voices ------------------------------------------------------------------------------------


@pytest.fixture
def person(synthesis):
    """The key of a person who has kept Anna."""
    key = new_key()
    codes = np.ones((12, 3), np.int16)
    anna = VoiceFile("Anna", codes, "[S1] I am Anna.", "", 16000, 40.0, "small")
    KeptVoices.for_person(synthesis.settings, key).add(anna)
    return key


def offered(updates, field: str) -> list[str]:
    return [value for _, value in updates[field]["choices"]]


def test_the_menus_of_voices_offer_kept_ones_and_those_of_the_models(setup, person):
    values = ("Anna", "Gone", "rms deep", "", 0.5, "auto")
    updates = setup.offer_voices(person, "temperature", *values)
    assert {"", "Anna", "rms deep"} <= set(offered(updates, "a_voice_s1"))
    changed = [name for name in VOICE_MENUS if "value" in updates[name]]
    assert changed == ["a_voice_s2"] and updates["a_voice_s2"]["value"] == ""
    assert updates["first_choice"] == gr.skip(), "it is a menu of another setting"
    asked = setup.offer_voices(person, "voice_s1", *values)
    assert "Anna" in offered(asked, "second_choice")
    early = setup.offer_voices(None, "voice_s1", *values)
    assert not any("value" in update for update in early.values()), "its key is not there yet"


def test_kept_voices_are_compared(setup, synthesis, side_values, person):
    values = compare_values(
        side_values, {"voice_s1": ""}, differs="voice_s1", first_choice="Anna", second_choice=""
    )
    one, other = CompareForm.from_values(values).settings(synthesis)
    assert (one.voice_s1, other.voice_s1) == ("Anna", "")
    assert "pair" in setup.describe(person, *values)[0]
    assert "There is no voice" in setup.describe(None, *values)[0], "it is somebody else's"


def test_the_name_of_a_kept_voice_comes_back_after_a_reload():
    menu = gr.Dropdown([("By the seed", "")])
    parts = SimpleNamespace(fields=dict.fromkeys(FIELDS, menu))
    saved = {"differs": "voice_s1", "first_choice": "Anna", "b_voice_s2": "Ben", "a_model": "x"}
    found = dict(zip(FIELDS, restored_updates(parts, saved), strict=True))
    assert found["first_choice"]["value"] == "Anna" and found["b_voice_s2"]["value"] == "Ben"
    assert found["a_model"] == gr.skip()
    found = dict(zip(FIELDS, restored_updates(parts, saved | {"differs": "model"}), strict=True))
    assert found["first_choice"] == gr.skip()


# -- the scripts -------------------------------------------------------------------------------

SCRIPTS = "[S1] I’m sure. [S2]\n---\n[S1] Fine. [S2]\n---\n[S1] Don’t. (laugh) [S2]"


def press(setup, values, code: str):
    return setup.repair(SimpleNamespace(code=code), *values)["after"]


def test_scripts_are_checked_together(setup, side_values):
    report = setup.describe(None, *compare_values(side_values, scripts=SCRIPTS))[1]
    assert "3 scripts · about" in report
    assert "Scripts 1 and 3: Typographic quotes" in report
    assert "Script 3, line 1: “(laugh)” is not a sound Dia knows" in report
    assert "Fix all (2)" in report


def test_a_repair_changes_every_script_that_needs_it(setup, side_values):
    values = compare_values(side_values, scripts=SCRIPTS)
    assert press(setup, values, "typographic") == SCRIPTS.replace("’", "'")
    fixed = press(setup, values, "fix_all")
    assert fixed == SCRIPTS.replace("’", "'").replace("(laugh)", "(laughs)")


def test_the_report_shows_what_nano_reads(setup, synthesis):
    side = default_fields(synthesis, "nano")
    report = setup.describe(None, *compare_values(side, scripts="[S1] It costs $5. [S2]"))[1]
    assert "Read as" in report and "five dollars" in report
