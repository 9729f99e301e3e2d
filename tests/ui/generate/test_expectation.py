"""What the page says of a take before it is made: the time beside Generate, and who speaks."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from dia_demo.config import RuntimeConfig
from dia_demo.engine.time_left import TimeLeft
from dia_demo.families.resolve import resolve
from dia_demo.machine import system
from dia_demo.prompt.voice_file import VoiceFile
from dia_demo.services.people import new_key
from dia_demo.services.settings import Settings
from dia_demo.services.speed.estimate import Expectation, precision_here
from dia_demo.services.synthesis import Synthesis
from dia_demo.services.voices.kept import KeptVoices
from dia_demo.services.wording import about_duration
from dia_demo.ui.generate import expectation
from dia_demo.ui.generate.expectation import FIELDS, ExpectationHandlers
from tests.helpers.models.known import DIA as DIA_INFO
from tests.helpers.models.known import DIA_DOWNLOAD, DIA_MEMORY, DIA_NAME, NANO
from tests.helpers.page.page_stubs import FIGURES, parts_by_name
from tests.helpers.stand_ins.bench_stubs import QUICK

SCRIPT = "[S1] Good morning. Did you sleep well? [S2] Yes, thank you. And you? [S1]"
FIRST = (SCRIPT, False, "", "nano", 1024, "auto", 1.0, None, "", "", False, True)


@pytest.fixture
def handlers(tmp_path, monkeypatch):
    """Over a machine that nobody has measured."""
    monkeypatch.setenv("DIA_CACHE", str(tmp_path))
    monkeypatch.setattr(system, "memory_bytes", lambda: 10**11)
    monkeypatch.setattr(system, "available_bytes", lambda: 10**11)
    synthesis = Synthesis(Settings(kept_folder=tmp_path / "kept"))
    return ExpectationHandlers(synthesis, parts_by_name(expectation.ExpectationPanel))


@pytest.fixture
def measured(handlers):
    handlers.synthesis.speed.learn_quick(QUICK)
    return handlers


ABOUT = r"about \d+( to \d+)? (s|min)"
DIA = "the original model by Nari Labs, which sounds like people"
# Of the precision that auto chooses here.
NEEDS = rf"({'|'.join(DIA_MEMORY.values())}) of memory, {DIA_DOWNLOAD} to download once"


def shown(handlers, key=None, **changes) -> dict[str, str]:
    """The texts of the panel."""
    values = dict(zip(FIELDS, FIRST, strict=True)) | changes
    updates = handlers.refresh(key, *values.values())
    return {
        name: re.sub("<[^>]+>", "", html) for name, html in updates.items() if isinstance(html, str)
    }


def test_the_line_says_who_speaks_and_what_dia_needs(measured):
    line = shown(measured)["speaker"]
    assert re.fullmatch(
        rf"Nano: a small synthetic voice for trying\. Dia-1\.6B is {DIA}: {ABOUT} for "
        rf"this script on this machine, {NEEDS}\. Use Dia-1\.6B",
        line,
    )


def test_the_line_of_dia_says_its_time_and_the_way_back(measured):
    line = shown(measured, model=DIA_NAME, max_tokens=3072)["speaker"]
    assert re.fullmatch(
        rf"Dia-1\.6B: {DIA}\. (?i:{ABOUT}) for this script on this machine, "
        rf"{NEEDS}\. Back to Nano",
        line,
    )


def test_the_time_of_a_model_that_is_here_is_beside_generate_alone(measured):
    assert re.match("about |under |less than ", shown(measured)["wait"])
    assert "for this script" not in shown(measured)["speaker"].split("Dia-1.6B")[0]


def test_a_model_that_is_not_here_has_no_time_beside_generate(measured):
    assert shown(measured, model=DIA_NAME, max_tokens=3072)["wait"] == ""


def test_a_script_that_cannot_be_made_has_no_time(measured):
    assert shown(measured, script=40 * SCRIPT, in_parts=False)["wait"] == ""


def test_a_script_in_parts_has_a_time_that_grows_with_it(measured):
    short, long = (shown(measured, script=times * SCRIPT)["wait"] for times in (40, 400))
    assert short and long and short != long


def test_a_model_that_is_not_loaded_takes_longer(measured, monkeypatch):
    before = shown(measured)["wait"]
    monkeypatch.setattr(Synthesis, "loading", lambda *_: TimeLeft(200, 210))
    assert before != shown(measured)["wait"] == "about 3 min 30 s"
    monkeypatch.setattr(Synthesis, "loading", lambda *_: None)
    assert shown(measured)["wait"] == ""


@pytest.mark.parametrize(
    "changes",
    [
        {"script": 3 * SCRIPT},
        {"precision": "bfloat16"},
        {"max_tokens": 100},
        {"pronunciations": "sleep = sleep as long and as well as anybody ever could"},
    ],
    ids=["script", "precision", "max tokens", "pronunciations"],
)
def test_the_time_follows_the_form(measured, changes):
    dia = {"model": DIA_NAME, "max_tokens": 3072}
    assert shown(measured, **dia)["speaker"] != shown(measured, **dia | changes)["speaker"]


def test_the_time_follows_the_speed_once_a_change_was_measured(measured):
    info, learn = measured.synthesis.models["nano"], measured.synthesis.speed.learn_take
    precision, _ = precision_here(info, RuntimeConfig())
    take = replace(FIGURES, precision=precision, codec_seconds=1.0)
    learn(info, take, 1, 80)
    learn(info, replace(take, codec_seconds=50.0), 1, 80, speed=0.5)
    assert shown(measured, speed=0.5)["wait"] != shown(measured)["wait"]


def test_a_machine_that_is_not_measured_has_no_times(handlers):
    here = shown(handlers)
    assert here["wait"] == "" and "this script" not in here["speaker"]
    assert re.search(rf"Dia-1\.6B is {DIA}: {NEEDS}\.", here["speaker"])


def test_the_time_is_that_of_a_take_with_the_chosen_kept_voice(measured):
    key = new_key()
    voices = KeptVoices.for_person(measured.synthesis.settings, key)
    words, fps = "[S1] Some words that were said.", NANO.frames_per_second
    for name, frames in (("Anna", 900), ("Ben", 1500)):
        codes = np.zeros((frames, NANO.config.decoder.num_channels), np.int16)
        voices.add(VoiceFile(name, codes, words, "", NANO.sample_rate, fps, "nano"))

    def expected(voice: str, owner: str | None = key):
        values = dict(zip(FIELDS, FIRST, strict=True)) | {"voice_s1": voice}
        return measured._expect(NANO, measured._complete(owner, list(values.values())))

    assert expected("Anna").audio_seconds < expected("").audio_seconds, "of the same max tokens"
    assert expected("Ben").left is None, "it leaves no room"
    assert expected("Anna", None) == expected(""), "another person's"
    assert shown(measured, key, voice_s1="Anna")["wait"]


def test_the_page_asks_again_while_the_machine_is_measured(handlers):
    handlers.synthesis.speed.measuring = True
    updates = handlers.refresh(None, *FIRST)
    assert "measuring this machine" in updates["wait"] and updates["timer"].active
    handlers.synthesis.speed.learn_quick(QUICK)
    handlers.synthesis.speed.measuring = False
    updates = handlers.refresh(None, *FIRST)
    assert "under 1 s" in updates["wait"] and not updates["timer"].active


def test_a_model_that_cannot_run_here_says_so(measured, monkeypatch):
    monkeypatch.setattr(system, "memory_bytes", lambda: 10**9)
    needs = f"it cannot run here: it needs {DIA_MEMORY['int8']} of memory in int8, and this"
    line = shown(measured, precision="int8")["speaker"]
    assert f"Dia-1.6B is {DIA}, but {needs} machine has 1.0 GB." in line
    assert "Use Dia" not in line
    here = shown(measured, model=DIA_NAME, precision="int8")
    assert "Back to Nano" in here["speaker"] and "this machine has 1.0 GB." in here["speaker"]
    assert here["wait"] == ""


@pytest.mark.parametrize(
    "incomplete", [{"max_tokens": ""}, {"max_tokens": None}, {"speed": None}, {"model": "/etc"}]
)
def test_nothing_changes_while_a_field_is_incomplete(measured, incomplete):
    assert shown(measured, **incomplete) == {}


def test_an_empty_script_has_no_time(measured):
    assert shown(measured, script=" ")["wait"] == ""


def test_a_model_of_ones_own_can_be_left_for_nano(folder):
    info = resolve(str(folder))
    line = expectation.speaker_html(info, Expectation(3.0), NANO)
    assert "a Dia checkpoint of your own." in line and "Back to Nano" in line


def test_a_name_is_escaped():
    info = NANO
    evil = Expectation(3.0, shortage="<img src=x>")
    assert "<img" not in expectation.speaker_html(info, evil, DIA_INFO, evil)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.2, "under 1 s"),
        (1.4, "about 1 s"),
        (12.6, "about 13 s"),
        (34.2, "about 35 s"),
        (98.0, "about 1 min 40 s"),
        (130.0, "about 2 min"),
        (1000.0, "about 17 min"),
        (7000.0, "about 1 h 55 min"),
    ],
)
def test_an_estimate_is_rounded(seconds, text):
    assert about_duration(seconds) == text


def test_a_time_that_has_loading_in_it_is_refreshed_after_the_loading(measured, monkeypatch):
    """The loading ends while the times are computed."""
    service = measured.synthesis
    warming = [True]
    monkeypatch.setattr(Synthesis, "is_warming_up", property(lambda _: warming[0]))

    def loading(*_):
        warming[0] = False
        return TimeLeft(3, 4)

    monkeypatch.setattr(service, "loading", loading)
    assert measured.refresh(None, *FIRST)["timer"].active
    assert not measured.refresh(None, *FIRST)["timer"].active
