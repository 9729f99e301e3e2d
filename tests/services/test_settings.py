"""Settings: every mistake is reported at the start, and every limit holds."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace

import pytest

from dia_demo.config import RuntimeConfig
from dia_demo.errors import InputError
from dia_demo.files import ROOT
from dia_demo.server.application import mount_options
from dia_demo.services.models import Models
from dia_demo.services.people import Caller, Visitor
from dia_demo.services.queue import Queue
from dia_demo.services.settings import Settings
from dia_demo.services.synthesis import Synthesis
from dia_demo.services.take import VoicePrompt
from dia_demo.ui.generate import expectation
from dia_demo.ui.generate.expectation import ExpectationHandlers
from dia_demo.ui.page import build_ui
from tests.helpers.models.known import DIA_NAME
from tests.helpers.page.page_stubs import expectation_values, parts_by_name
from tests.helpers.synthesis_requests import make_request, refusal, runtime
from tests.helpers.voices import write_voice

MISTAKES = {
    "DIA_CPU": "pentium",
    "DIA_PRECISION": "float16",
    "DIA_THREADS": "two",
    "DIA_QUEUE": "-1",
    "DIA_PLACES": "0",
    "DIA_SCRIPT": "20001",
    "DIA_PROMPT_SECONDS": "1.5",
    "DIA_UPLOAD_MB": "9999999999999999999999",
    "DIA_KEPT_GB": "0",
    "DIA_TEMP_GB": "²",
    "DIA_MEASURE": "no",
    "DIA_MODELS": "nano no-such-model",
    "DIA_ORIGINS": "example.org",
}


def test_every_mistake_has_a_line_of_its_own():
    with pytest.raises(InputError) as caught:
        Settings.from_env(MISTAKES)
    lines = str(caught.value).splitlines()
    assert len(lines) == len(MISTAKES)
    for name, value in MISTAKES.items():
        (line,) = [line for line in lines if line.startswith(name)]
        assert value.split()[-1] in line


def test_a_password_is_not_shown():
    with pytest.raises(InputError, match="entry 2") as caught:
        Settings.from_env({"DIA_LOGIN": "ada:secret hidden"})
    assert "hidden" not in str(caught.value) and "secret" not in str(caught.value)


def test_tokens_are_never_shown():
    good = "0123456789abcdef"
    assert Settings.from_env({"DIA_TOKENS": f"{good} {good[::-1]}"}).tokens == (good, good[::-1])
    for bad in ("too-short", "à-letter-that-is-not-ascii"):
        with pytest.raises(InputError, match="DIA_TOKENS.*entry 2") as caught:
            Settings.from_env({"DIA_TOKENS": f"{good} {bad}"})
        assert bad not in str(caught.value) and good not in str(caught.value)


@pytest.mark.slow
def test_the_app_prints_a_line_for_each_mistake(tmp_path):
    environment = os.environ | {"DIA_QUEUE": "many", "DIA_PLACES": "0", "DIA_KEPT": str(tmp_path)}
    ran = subprocess.run(
        [sys.executable, "app.py"], cwd=ROOT, env=environment, capture_output=True, text=True
    )
    assert ran.returncode == 2
    starts = [line.split(" must")[0] for line in ran.stderr.splitlines()]
    assert starts == ["error: DIA_QUEUE", "error: DIA_PLACES"]


# Limits


def test_only_the_listed_models_can_be_chosen(folder):
    settings = Settings.from_env({"DIA_MODELS": f"nano {folder}"})
    assert list(Synthesis(settings).models) == ["nano", str(folder)]


def test_the_start_model_can_always_be_chosen(folder):
    assert list(Models(("nano",), str(folder))) == ["nano", str(folder)]


def test_a_page_without_dia_offers_no_switch_to_it():
    synthesis = Synthesis(Settings.from_env({"DIA_MODELS": "nano"}))
    build_ui(synthesis)
    handlers = ExpectationHandlers(synthesis, parts_by_name(expectation.ExpectationPanel))
    line = handlers.refresh(*expectation_values())["speaker"]
    assert "Nano" in line and "Dia" not in line and "button" not in line


def test_a_script_above_the_limit_is_refused(folder, tmp_path):
    settings = Settings(runtime(folder), takes_folder=tmp_path, script_characters=40)
    synthesis = Synthesis(settings)
    long = make_request(synthesis, script="[S1] " + 36 * "a")
    with pytest.raises(InputError, match="41 characters; 40 are allowed"):
        synthesis.validate(long)
    synthesis.validate(replace(long, script=long.script[:-1]))


def test_a_voice_prompt_above_the_limit_is_refused(synthesis, tmp_path, monkeypatch):
    write_voice(tmp_path / "voice.wav", 1.5)
    limited = replace(synthesis.settings, prompt_seconds=1)
    monkeypatch.setattr(synthesis, "settings", limited)
    voice = VoicePrompt(audio=tmp_path / "voice.wav", transcript="[S1] Hello.")
    request = make_request(synthesis, voice=voice, max_tokens=600)
    assert "1.9 s long, and at most 1.0 s" in refusal(synthesis, request)


def test_a_visitor_has_the_places_of_the_settings():
    queue, visitor = Queue(20, runs=1), Visitor("10.0.0.1", "a page")
    with queue.enter(Caller(visitor)):
        with pytest.raises(InputError, match="You have 1 take"):
            with queue.enter(Caller(visitor)):
                pass


def test_an_upload_has_the_size_of_the_settings():
    assert mount_options(Settings.from_env({"DIA_UPLOAD_MB": "7"}))["max_file_size"] == "7mb"


def test_without_a_login_the_page_is_open():
    assert mount_options(Settings())["auth"] is None


def test_logins_are_asked_for():
    settings = Settings.from_env({"DIA_LOGIN": "ada:a:b bob:c"})
    assert mount_options(settings)["auth"] == [("ada", "a:b"), ("bob", "c")]


def test_the_default_models_are_nano_with_the_published_ones():
    known = RuntimeConfig.model, DIA_NAME, "nari-labs/Dia2-1B", "nari-labs/Dia2-2B"
    assert Settings().models == known
