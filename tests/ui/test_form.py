"""The form: what its fields mean to a request, and what of a memory is believed."""

from __future__ import annotations

import gradio as gr
import numpy as np
import pytest

from dia_demo.audio import write_audio
from dia_demo.config import PARAMS, GenerationParams, RuntimeConfig
from dia_demo.errors import InputError
from dia_demo.services.settings import Settings
from dia_demo.services.synthesis import Synthesis
from dia_demo.ui import form
from dia_demo.ui.generate.form_handlers import FormHandlers
from dia_demo.ui.generate.layout import GenerateParts
from tests.helpers.models.known import DIA_NAME, NANO
from tests.helpers.page.page_stubs import field_values, parts_by_name
from tests.helpers.voices import RATE, speech_like, write_voice


@pytest.mark.parametrize("asked", [None, "", " ", "-1", -1, -1.0])
def test_an_unspecified_seed_is_drawn_at_random(asked):
    assert len({form.chosen_seed(asked) for _ in range(4)}) > 1


@pytest.mark.parametrize("asked", [1.5, float("nan"), float("inf"), "seven", "0x1", "1e400"])
def test_a_seed_that_is_none_is_refused(asked):
    with pytest.raises(InputError, match="seed must be a whole number"):
        form.chosen_seed(asked)


@pytest.mark.parametrize("asked", ["7", " 7 ", 7, 7.0])
def test_a_seed_means_the_same_typed_or_sent(asked):
    assert form.chosen_seed(asked) == 7


def test_a_request_combines_the_page_with_the_start_options():
    fields = field_values(voice_prompt="/tmp/a.wav", voice_transcript=" [S1] Yes. ")
    asked = form.Form.from_values(fields).to_request(NANO, RuntimeConfig(threads=1))
    assert asked.runtime == RuntimeConfig("nano", "float32", "cpu", 1)
    assert asked.params == GenerationParams(0.4, 1.5, 0.9, 40, 200, 7)
    assert asked.voice.transcript == "[S1] Yes." and asked.script == "[S1] Hi. [S2]"


def test_what_is_remembered_is_checked_before_it_is_believed():
    ends = {"temperature": (0.0, 2.5), "max_tokens": (6, 860)}
    saved = {"model": "nano", "script": "[S1]", "temperature": "hot", "max_tokens": 9999, "x": 1}
    assert form.restored_values({"temperature": float("nan")}, ends) == {}
    kept = {"model": "nano", "script": "[S1]", "max_tokens": 860}
    assert form.restored_values(saved, ends) == kept


@pytest.mark.parametrize("junk", [None, 3, "text", [], {}, {"model": "/etc"}, {"model": None}])
def test_a_memory_that_is_none_changes_nothing(junk):
    updates = FormHandlers(Synthesis(Settings()), parts_by_name(GenerateParts)).restore(junk)
    assert len(updates) == len(form.REMEMBERED)
    assert all(set(update) == {"__type__"} for update in updates)


@pytest.mark.parametrize(
    ("model", "hint"), [("nano", "Above 1 this voice slurs."), (DIA_NAME, "1.0 to 2.5 is usual.")]
)
def test_a_slider_says_what_is_useful_with_the_model(model, hint):
    handlers = FormHandlers(Synthesis(Settings()), parts_by_name(GenerateParts))
    temperature = handlers.change_model(model)[form.SAMPLING.index("temperature")]
    assert temperature["info"].endswith(hint)
    assert handlers.restore({"model": model})[form.REMEMBERED.index("temperature")] == {
        name: value for name, value in temperature.items() if name != "value"
    }


@pytest.mark.parametrize(("model", "visible"), [("nano", False), (DIA_NAME, True)])
def test_the_choice_to_normalise_is_shown_where_it_has_an_effect(model, visible):
    handlers = FormHandlers(Synthesis(Settings()), parts_by_name(GenerateParts))
    assert handlers.change_model(model)[-1]["visible"] is visible
    restored = handlers.restore({"model": model, "normalise": True})
    assert restored[form.REMEMBERED.index("normalise")]["visible"] is visible


def test_a_remembered_choice_to_normalise_is_true_or_false():
    assert form.restored_values({"normalise": "yes"}, {}) == {}
    assert form.restored_values({"normalise": True}, {}) == {"normalise": True}


def test_a_list_of_pronunciations_reaches_the_request_or_is_refused():
    asked = form.Form.from_values(field_values(pronunciations="Nguyen = win")).to_request(
        NANO, RuntimeConfig()
    )
    assert asked.pronunciations.entries == (("Nguyen", "win"),)
    with pytest.raises(InputError, match="line 1"):
        form.Form.from_values(field_values(pronunciations="Nguyen")).to_request(
            NANO, RuntimeConfig()
        )
    assert form.restored_values({"pronunciations": "a = b"}, {}) == {"pronunciations": "a = b"}
    assert form.restored_values({"pronunciations": 5}, {}) == {}


def test_a_bad_list_of_pronunciations_is_a_finding_beside_those_of_the_script():
    handlers = FormHandlers(Synthesis(Settings()), parts_by_name(GenerateParts))
    checked = {
        "script": "[S1] Hello, Nguyen. [S2] Hi. [S1]", "model": "nano", "max_tokens": 400,
        "voice_prompt": None, "voice_transcript": "", "normalise": False, "in_parts": True,
    }  # fmt: skip
    report = handlers._report(checked | {"pronunciations": "Nguyen = win\nnginx"})
    assert report.findings[0].level == "error" and "line 2" in report.findings[0].message
    report = handlers._report(checked | {"pronunciations": "Nguyen = win"})
    assert report.reading.text == "[S1] Hello, win. [S2] Hi. [S1]"


def test_a_script_that_is_made_in_parts_is_not_too_long():
    handlers = FormHandlers(Synthesis(Settings()), parts_by_name(GenerateParts))
    long = "[S1] We walk along the river and talk. [S2] Then we go home again. " * 20
    checked = {
        "script": long, "model": "nano", "max_tokens": 400, "voice_prompt": None,
        "voice_transcript": "", "normalise": False, "pronunciations": "", "in_parts": True,
    }  # fmt: skip
    codes = [finding.code for finding in handlers._report(checked).findings]
    assert codes == ["in_parts"]
    assert "bytes" not in handlers.check(*(checked[name] for name in form.CHECKED))[0]
    codes = [finding.code for finding in handlers._report(checked | {"in_parts": False}).findings]
    assert "in_parts" not in codes and "too_many_bytes" in codes
    short = checked | {"script": "[S1] Hello there. [S2] Hi. [S1]", "max_tokens": 1024}
    assert all(finding.code != "in_parts" for finding in handlers._report(short).findings)
    paused = short | {"script": "[S1] Hello there. (pause 2) [S2] Hi. [S1]"}
    (finding,) = handlers._report(paused).findings
    assert "has pauses" in finding.message
    endless = short | {"script": "[S1] Hello there. (pause 99) [S2] Hi. [S1]"}
    (finding,) = handlers._report(endless).findings
    assert finding.level == "error" and "30" in finding.message
    numbers = handlers._report(paused | {"script": paused["script"].replace("there", "3")})
    assert "three. (pause 2)" in numbers.reading.text


@pytest.fixture
def form_handlers():
    return FormHandlers(Synthesis(Settings()), parts_by_name(GenerateParts))


@pytest.fixture
def take_file(tmp_path):
    """The file of a take that says "[S1] Hm."."""
    metadata = {"script": "[S1] Hm. [S2] ", "figures": {"finish_reason": "end"}}
    return write_audio(tmp_path / "take.wav", speech_like(2.0), RATE, metadata)


def test_a_takes_file_brings_its_words(form_handlers, take_file, tmp_path):
    assert form_handlers.words(str(take_file)) == "[S1] Hm. [S2]"
    assert form_handlers.use_voice(str(take_file)) == (str(take_file), "[S1] Hm. [S2]")
    other = write_voice(tmp_path / "other.wav")
    assert form_handlers.words(str(other)) == gr.skip(), "what a person wrote stays"
    values = field_values(voice_prompt=str(take_file), voice_transcript="")
    voice = form.Form.from_values(values).to_request(NANO, RuntimeConfig()).voice
    assert voice.transcript == "[S1] Hm. [S2]" and voice.has_own_words


@pytest.mark.parametrize("reason", ["max_tokens", "cancelled", None])
def test_the_words_of_a_take_that_was_cut_off_are_not_its_prompts(form_handlers, tmp_path, reason):
    metadata = {"script": "[S1] Hm.", "figures": {"finish_reason": reason}}
    path = write_audio(tmp_path / "take.wav", speech_like(2.0), RATE, metadata)
    assert form_handlers.words(str(path)) == gr.skip()
    assert form_handlers.use_voice(str(path)) == (str(path), "")


def test_what_is_found_in_a_voice_prompt_is_shown_at_once(form_handlers, tmp_path):
    good, bad = write_voice(tmp_path / "good.wav", 4.0), tmp_path / "<b>.wav"
    write_audio(bad, 0.3 * np.sin(np.arange(4 * RATE) / 6), RATE, {})
    assert form_handlers.hear(None, "nano", 900) == ""
    assert form_handlers.hear(str(good), "nano", 900) == ""
    quiet = write_voice(tmp_path / "quiet.wav", 4.0, level=0.01)
    assert "dB louder" in form_handlers.hear(str(quiet), "nano", 900)
    found = form_handlers.hear(str(bad), "nano", 900)
    assert "lost-prompt" in found and "&lt;b&gt;.wav is not speech, but a tone" in found


@pytest.mark.parametrize("model", ["nano", DIA_NAME])
def test_sliders_reach_as_far_as_programs(synthesis, model):
    """Once the page ended at temperature 2.5, and Compare and programs at 5."""
    info = synthesis.models[model]
    for name, ends in form.slider_ends(info).items():
        allowed = PARAMS[name].range(info.config)
        assert ends == (allowed.low, allowed.high)


@pytest.mark.parametrize("name", NANO.profile.presets)
def test_a_preset_sets_the_sliders_and_is_then_shown(form_handlers, name):
    values = form_handlers.choose_preset(name, "nano")
    sampling = [
        default if isinstance(value, dict) else value
        for value, default in zip(values, form.defaults_of(NANO).values(), strict=True)
    ]
    ends = form.slider_ends(NANO)
    for key, value in zip(form.SAMPLING, sampling, strict=True):
        assert ends[key][0] <= value <= ends[key][1]
    assert form_handlers.show_preset("nano", *sampling)["value"] == name
    assert "max_tokens" not in form.presets_of(NANO)[name]


def test_other_settings_are_no_preset(form_handlers):
    sampling = form.defaults_of(NANO) | {"temperature": 0.123}
    shown = form_handlers.show_preset("nano", *(sampling[name] for name in form.SAMPLING))
    assert shown["value"] is None and shown["visible"]


def test_balanced_is_what_the_model_asks_for():
    assert form.preset_menu(NANO, form.defaults_of(NANO))["value"] == "Balanced"


def test_a_model_that_was_not_measured_has_no_presets(form_handlers):
    shown = form_handlers.show_preset("nari-labs/Dia-1.6B-0626", *[None] * len(form.SAMPLING))
    assert not shown["visible"] and shown["choices"] == []


def test_a_number_that_is_being_typed_is_no_preset(form_handlers):
    assert form_handlers.show_preset("nano", *[None] * len(form.SAMPLING))["value"] is None
