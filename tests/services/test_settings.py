"""Settings: every mistake is reported at the start, and every limit holds."""

from __future__ import annotations

import os
import subprocess
import sys
import traceback
from dataclasses import replace

import pytest

from dia_demo.config import RuntimeConfig
from dia_demo.disclosure.notice import Notice
from dia_demo.errors import InputError
from dia_demo.files import ROOT
from dia_demo.server.application import mount_options
from dia_demo.services.models import Models
from dia_demo.services.people import Caller, Visitor
from dia_demo.services.queue import Queue
from dia_demo.services.settings import Settings, read_notice
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


def test_all_mistakes_are_in_one_message():
    """In the order of the variables, and of the entries of a list."""
    wrong = {
        "DIA_NOTICE": "loud",
        "DIA_ENGINE": "10.0.0.5/",
        "DIA_ORIGINS": "https://example.org http://a/ {name}",
        "DIA_UPLOAD_MB": "9" * 20,
        "DIA_LOGIN": "ada:secret bob: :hidden",
        "DIA_MODELS": "nano {0} ?",
        "DIA_THREADS": "1025",
    }
    with pytest.raises(InputError) as caught:
        Settings.from_env(wrong)
    model = "is neither 'nano', nor a folder on this machine, nor a hub name like"
    login = "DIA_LOGIN lists logins as NAME:PASSWORD with spaces between them; entry"
    origin = (
        "DIA_ORIGINS must list websites separated by spaces, such as https://example.org, without "
        "a path or a slash at the end, not"
    )
    assert str(caught.value).splitlines() == [
        "DIA_THREADS must be a whole number from 1 to 1024, not '1025'.",
        f"DIA_MODELS: Model '{{0}}' {model} nari-labs/Dia-1.6B-0626.",
        f"DIA_MODELS: Model '?' {model} nari-labs/Dia-1.6B-0626.",
        f"DIA_UPLOAD_MB must be a whole number from 1 to 1024, not '{'9' * 20}'.",
        f"{login} 2 has no name, colon or password.",
        f"{login} 3 has no name, colon or password.",
        f"{origin} 'http://a/'.",
        f"{origin} '{{name}}'.",
        "DIA_ENGINE must be the address of a running server, such as http://10.0.0.5:7860, not "
        "'10.0.0.5'.",
        "DIA_NOTICE must be one of off, tone, spoken, not 'loud'.",
    ]


def test_an_empty_variable_is_not_set():
    names = (*MISTAKES, "DIA_LOGIN", "DIA_TOKENS", "DIA_ENGINE", "DIA_TAKES", "DIA_COMPARE")
    assert Settings.from_env(dict.fromkeys(names, "")) == Settings.from_env({})
    assert read_notice({"DIA_NOTICE": ""}) is Notice.OFF


def test_the_notice_is_read_alone():
    assert read_notice({"DIA_NOTICE": "tone", "DIA_QUEUE": "x"}) is Notice.TONE
    with pytest.raises(InputError, match="^DIA_NOTICE must be one of off, tone, spoken, not 'x'.$"):
        read_notice({"DIA_NOTICE": "x", "DIA_QUEUE": "x"})


def test_gigabytes_and_switches_have_the_values_of_their_texts():
    texts = {"DIA_TEMP_GB": "7", "DIA_MEASURE": "off", "DIA_OPEN_API": "on", "DIA_MODELS": " "}
    settings = Settings.from_env(texts | {"DIA_ENGINE": "http://10.0.0.5:7860//"})
    assert settings.temp_bytes == 7 * 10**9 and settings.models == Settings.models
    assert settings.open_api and not settings.measure
    assert settings.engine == "http://10.0.0.5:7860"


def test_no_secret_is_shown_with_a_mistake():
    """Neither in the message nor in a log of the error with its causes."""
    given = {"DIA_LOGIN": "ada:hidden hidden", "DIA_TOKENS": "hidden", "DIA_QUEUE": "x"}
    given["DIA_ENGINE_TOKEN"] = "hidden"
    with pytest.raises(InputError) as caught:
        Settings.from_env(given)
    logged = "".join(traceback.format_exception(caught.value))
    assert "DIA_QUEUE" in logged and "hidden" not in logged
    given = {"DIA_LOGIN": "ada:hidden", "DIA_TOKENS": "hidden" * 4, "DIA_ENGINE_TOKEN": "hidden"}
    assert "hidden" not in repr(Settings.from_env(given))


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


@pytest.mark.long
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
