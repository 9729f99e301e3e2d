"""The menus and the panel of voices: what they offer, keep and refuse, and whose they are."""

import re
from base64 import b64decode
from dataclasses import replace
from io import BytesIO
from types import SimpleNamespace

import numpy as np
import pytest
import soundfile

from dia_demo.audio import Health, write_audio
from dia_demo.config import RuntimeConfig
from dia_demo.errors import InputError
from dia_demo.services.people import new_key
from dia_demo.services.settings import Settings
from dia_demo.services.synthesis import Synthesis
from dia_demo.services.voices.kept import KeptVoices
from dia_demo.ui import form
from dia_demo.ui.voices.handlers import VoiceHandlers
from dia_demo.ui.voices.layout import BY_SEED, KeepPanel, VoiceMenus, choices_of
from tests.helpers.page.page_stubs import field_values, parts_by_name
from tests.prompt.test_voice_file import SUFFIX, VOICE

REQUEST = SimpleNamespace(session_hash="s", client=None, headers={}, request=None)


@pytest.fixture
def settings(tmp_path):
    return Settings(
        runtime=RuntimeConfig(threads=1), kept_folder=tmp_path / "kept", takes_folder=tmp_path
    )


@pytest.fixture
def handlers(settings):
    menus, panel = parts_by_name(VoiceMenus), parts_by_name(KeepPanel)
    menus.menus = ("one", "two")
    synthesis = Synthesis(settings)
    yield VoiceHandlers(synthesis, menus, panel)
    synthesis.close()


@pytest.fixture
def key():
    return new_key()


def message(updates) -> str:
    return updates["message"]


def offered(handlers, key, *chosen) -> dict:
    return handlers.refresh(key, "nano", *(chosen or ("", "")), None)


def names(update) -> list[str]:
    return [value for _, value in update["choices"]]


@pytest.fixture(scope="module")
def take(tmp_path_factory):
    """A take of one speaker as the page has it: a WAV."""
    import dia_demo

    with dia_demo.load("nano", threads=1) as model:
        made = model.generate("[S1] Hello there, my name is Anna.", seed=5)
    assert isinstance(made.health, Health)
    return str(made.save(tmp_path_factory.mktemp("take") / "take.wav"))


def test_the_menus_offer_the_seed_the_kept_voices_and_the_models_own(handlers):
    info = handlers.synthesis.models["nano"]
    choices = choices_of(info, [VOICE])
    assert choices[0] == (BY_SEED, "") and choices[1] == ("Anna (3 s, kept)", "Anna")
    assert len(choices) == 2 + len(info.config.voices.voices)


@pytest.mark.parametrize(
    ("cost", "text"),
    [(0.4, "Anna (3 s, kept)"), (9.2, "Anna (3 s, kept, adds about 9 s)")],
)
def test_a_menu_says_what_a_voice_costs(handlers, cost, text):
    choices = choices_of(handlers.synthesis.models["nano"], [VOICE], lambda info, frames: cost)
    assert choices[1] == (text, "Anna")


def test_a_person_keeps_uses_renames_and_removes_a_voice(handlers, key, take):
    said = message(handlers.keep_take(REQUEST, key, "Anna", take, "", "", ""))
    assert "Anna is kept" in said
    updates = offered(handlers, key)
    assert "Anna" in names(updates["one"]) and updates["kept"]["choices"] == ["Anna"]
    assert updates["remove"]["visible"] is True
    assert "is now Clara" in message(handlers.rename(key, "Anna", "Clara"))
    exported = handlers.export(key, "Clara")["file"]
    assert exported.endswith(SUFFIX)
    assert "removed" in message(handlers.remove(key, "Clara"))
    assert offered(handlers, key)["kept"]["choices"] == []
    assert "Clara is kept" in message(handlers.add_file(REQUEST, key, exported))


def test_a_long_take_whose_parts_are_gone_says_so(handlers, key, tmp_path):
    about = {"script": "[S1] Hello.", "settings": {"seed": 1}, "chunks": []}
    file = write_audio(tmp_path / "long.wav", np.zeros(16000, np.float32), 16000, about)
    assert "no longer kept" in message(
        handlers.keep_take(REQUEST, key, "Anna", str(file), "", "", "")
    )


def test_a_choice_that_is_no_longer_offered_becomes_the_seeds(handlers, key):
    updates = offered(handlers, key, "Anna", "awb")
    assert updates["one"]["value"] == "" and "value" not in updates["two"]


def test_a_persons_voices_are_their_own_and_those_of_the_machine_are_everybodys(
    handlers, settings, key, take
):
    handlers.keep_take(REQUEST, key, "Anna", take, "", "", "")
    KeptVoices.for_user(settings).add(replace(VOICE, name="Shared"))
    own, other = (names(offered(handlers, one)["one"]) for one in (key, new_key()))
    assert {"Anna", "Shared"} <= set(own)
    assert "Shared" in other and "Anna" not in other
    assert "Shared" in names(offered(handlers, None)["one"])
    assert "cannot be removed" in message(handlers.remove(key, "Shared"))
    assert "cannot be renamed" in message(handlers.rename(key, "Shared", "Mine"))
    assert "There is no kept voice" in message(handlers.remove(new_key(), "Anna"))


@pytest.mark.parametrize(
    "name, sound, part, said",
    [
        ("Anna", None, ("", "", ""), "press Generate first"),
        ("", "take", ("", "", ""), "Give the voice a name"),
        ("../x", "take", ("", "", ""), "may not contain"),
        ("Anna", "take", ("soon", "", ""), "a number of seconds"),
        ("Anna", "take", ("2", "1", ""), "from a time to a later one"),
        ("Anna", "take", ("0", "1.5", ""), "Enter exactly"),
    ],
)
def test_what_cannot_be_kept_is_said(handlers, key, take, name, sound, part, said):
    updates = handlers.keep_take(REQUEST, key, name, sound and take, *part)
    assert said in message(updates) and "name" not in updates
    assert offered(handlers, key)["kept"]["choices"] == []


def test_a_recording_is_kept_with_consent_alone(handlers, key, tmp_path):
    from tests.helpers.voices import write_voice

    sound = str(write_voice(tmp_path / "me.wav", 4.0))
    of = (key, "Me", sound, "Hello to you.", "nano")
    assert "consent" in message(handlers.keep_prompt(REQUEST, *of, False, "", "", ""))
    assert "Me is kept" in message(handlers.keep_prompt(REQUEST, *of, True, "", "", ""))
    without = (key, "Me", None, *of[3:])
    assert "Add a recording" in message(handlers.keep_prompt(REQUEST, *without, True, "", "", ""))


def test_a_page_without_a_key_keeps_nothing(handlers, take):
    assert "stores no data" in message(handlers.keep_take(REQUEST, None, "Anna", take, "", "", ""))


def test_a_name_is_text_and_never_markup_or_a_path(handlers, key, take, tmp_path):
    said = message(handlers.keep_take(REQUEST, key, "<b>x", take, "", "", ""))
    assert "&lt;b&gt;x" in said
    path = VOICE.write(tmp_path / f"secret{SUFFIX}")
    with pytest.raises(InputError, match="no voice|may not contain|at most 60"):
        handlers.hear(REQUEST, key, "nano", str(path))


def test_a_voice_is_heard_before_it_is_chosen(handlers, key, monkeypatch):
    monkeypatch.setattr("dia_demo.ui.voices.handlers.Sessions.run", nothing_to_cancel)
    first, second = (handlers.hear(REQUEST, key, "nano", "rms high") for _ in range(2))
    assert first != second, "or the page would not play it again"
    sound = b64decode(re.search(r"data:[a-z/]+;base64,([^\"]+)", first)[1])
    samples, rate = soundfile.read(BytesIO(sound))
    assert rate == 16000 and len(samples) > rate and np.abs(samples).max() > 0.03
    with pytest.raises(InputError, match="Choose a voice first"):
        handlers.hear(REQUEST, key, "nano", "")


def nothing_to_cancel(_sessions, _request):
    import threading
    from contextlib import nullcontext

    return nullcontext(threading.Event())


def test_the_form_gives_the_chosen_voices_and_restores_only_text():
    values = form.Form.from_values(field_values(voice_s1="awb", voice_s2=None))
    assert values.voices == ("awb", "")
    saved = {"voice_s1": "Anna", "voice_s2": 3}
    assert form.restored_values(saved, {}) == {"voice_s1": "Anna"}
