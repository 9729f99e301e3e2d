"""The endpoints for programs: their arguments, what they refuse, the examples of docs/api.md."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import urllib.error
import urllib.request
from dataclasses import fields
from types import SimpleNamespace

import pytest
import soundfile

from dia_demo import audio
from dia_demo.engine.events import Figures
from dia_demo.errors import InputError
from dia_demo.files import ROOT
from dia_demo.machine import system
from dia_demo.services.settings import Settings
from dia_demo.services.synthesis import Synthesis
from dia_demo.ui.api import answers, endpoints
from dia_demo.ui.api.arguments import arguments_of_check, arguments_of_generate
from dia_demo.ui.page import build_ui
from tests.helpers.models.checkpoints import NANO_DEFAULTS
from tests.helpers.page.examples import example
from tests.helpers.stand_ins.bench_stubs import QUICK

ARGUMENTS = (
    "script temperature cfg_scale max_tokens top_p top_k seed speed voice_prompt voice_transcript "
    "model precision xpu normalise pronunciations format voice_s1 voice_s2 text_temperature"
).split()
MORE_ARGUMENTS = {
    "/audition": ["takes", "voices", "presets"],
    "/dialogue": ["join", "retries", "subtitles"],
}
OF_COMPARISONS = (
    "script settings kind pairs seed model voice_transcript normalise pronunciations voice_prompt "
    "precision format"
).split()
WITH_SCRIPT = ["/generate", "/audition", "/dialogue", "/check"]
WHOLE = {"seed", "top_k", "max_tokens"}


@pytest.fixture(scope="module")
def offered() -> dict:
    page = build_ui(Synthesis(Settings()))
    page.config = page.get_config_file()
    return page.get_api_info()["named_endpoints"]


def by_name(endpoint: dict) -> dict[str, dict]:
    return {parameter["parameter_name"]: parameter for parameter in endpoint["parameters"]}


def test_the_endpoints_are_these_and_no_other_event_is_public(offered):
    assert list(offered) == [
        "/generate", "/audition", "/dialogue", "/compare", "/check", "/models",
    ]  # fmt: skip


def test_the_arguments_keep_their_order(offered):
    """Programs may pass them by position: new arguments are added at the end."""
    assert list(by_name(offered["/generate"])) == ARGUMENTS
    for name, more in MORE_ARGUMENTS.items():
        assert list(by_name(offered[name])) == [*ARGUMENTS, *more]
    assert list(by_name(offered["/compare"])) == OF_COMPARISONS


@pytest.mark.parametrize("endpoint", WITH_SCRIPT)
def test_only_the_script_is_required(offered, endpoint):
    parameters = by_name(offered[endpoint])
    required = [name for name, one in parameters.items() if not one["parameter_has_default"]]
    assert required == ["script"]


def test_a_comparison_needs_settings_as_well(offered):
    parameters = by_name(offered["/compare"])
    required = [name for name, one in parameters.items() if not one["parameter_has_default"]]
    assert required == ["script", "settings"]
    assert len(parameters["settings"]["example_input"]) == 2


@pytest.mark.parametrize("endpoint", [*WITH_SCRIPT, "/compare"])
def test_every_argument_is_described(offered, endpoint):
    for name, parameter in by_name(offered[endpoint]).items():
        assert len(parameter["python_type"]["description"]) > 20, name
        assert parameter["type"]["description"] == parameter["python_type"]["description"]


def test_numbers_have_their_type(offered):
    for name, parameter in by_name(offered["/generate"]).items():
        if "minimum" in parameter["type"]:
            expected = "integer" if name in WHOLE else "number"
            assert parameter["type"]["type"] == expected, name


def test_numbers_have_their_range(offered):
    kinds = {name: one["type"] for name, one in by_name(offered["/generate"]).items()}
    ranges = {name: (kind["minimum"], kind["maximum"]) for name, kind in kinds.items()
              if "minimum" in kind}  # fmt: skip
    assert ranges == {
        "temperature": (0, 5), "cfg_scale": (0, 20), "max_tokens": (5, 3072), "top_p": (0.01, 1),
        "top_k": (1, 2050), "seed": (-1, 2**32 - 1), "speed": (0.25, 4), "text_temperature": (0, 5),
    }  # fmt: skip
    assert "1 to 260 with nano" in kinds["top_k"]["description"]


def test_the_snippets_of_gradio_are_within_range(offered):
    """Its page shows them with these values, to be copied."""
    for name, parameter in by_name(offered["/generate"]).items():
        value = parameter["parameter_default"]
        if not parameter["parameter_has_default"]:
            value = parameter["example_input"]
        arguments = arguments_of_generate(
            list(Synthesis(Settings()).models.values()), "nano", "auto"
        )
        arguments[name].check(value)
        low, high = (parameter["type"].get(end) for end in ("minimum", "maximum"))
        assert value is None or low is None or low <= value <= high


def test_the_figures_are_described_one_by_one(offered):
    _, figures = offered["/generate"]["returns"]
    assert list(figures["type"]["properties"]) == [
        *(field.name for field in fields(Figures)),
        "voices",
        "remarks",
        "words",
    ]
    assert all(field["description"] for field in figures["type"]["properties"].values())
    assert "audio_seconds: float (length of the audio)" in figures["python_type"]["type"]


def test_an_answer_has_the_keys_that_are_described(synthesis):
    info = list(synthesis.models.values())[0]
    report = endpoints.report_of(info.check("[S1] Hi.", 60), "[S1] Hi.", info)
    assert list(report) == list(answers.REPORT["properties"])
    assert list(endpoints.model_of(info, None)) == list(answers.MODELS["items"]["properties"])


def test_the_models_say_how_long_they_take_here(tmp_path, monkeypatch):
    monkeypatch.setenv("DIA_CACHE", str(tmp_path))
    monkeypatch.setattr(system, "available_bytes", lambda: 10**11)
    service = Synthesis(Settings())
    models = endpoints.make_models(service)
    assert [model["seconds_per_second"] for model in models()] == len(service.models) * [None]
    service.speed.learn_quick(QUICK)
    nano, dia, *_ = (model["seconds_per_second"] for model in models())
    assert 0 < nano < 0.2 < dia < 10


# What is refused


WRONG = {
    "script": [5, True, [], {}, ["[S1] Hi."]],
    "model": ["/etc", 5, "NANO"],
    "precision": ["int3", 8],
    "xpu": ["yes", 1],
    "normalise": ["no", 0],
    "pronunciations": [5, {}, ["a = b"]],
    "voice_transcript": [5, {}],
    "voice_prompt": ["/etc/passwd", {"path": "/etc/passwd"}, {"meta": {"_type": "x"}, "path": "a"}],
}


@pytest.mark.parametrize("name", WRONG)
def test_a_value_of_the_wrong_type_is_refused_in_words(name):
    arguments = arguments_of_generate(list(Synthesis(Settings()).models.values()), "nano", "auto")
    for value in WRONG[name]:
        with pytest.raises(InputError, match=f"^{name} must be .*not "):
            arguments[name].check(value)


def test_a_long_value_is_not_repeated_whole():
    arguments = arguments_of_check(list(Synthesis(Settings()).models.values()), "nano")
    with pytest.raises(InputError) as refusal:
        arguments["normalise"].check("x" * 10_000)
    assert len(str(refusal.value)) < 200


@pytest.mark.parametrize("tokens", [0, 10**9, 7.5, "many", True])
def test_a_check_refuses_impossible_tokens(synthesis, tokens):
    models = list(synthesis.models.values())
    arguments = arguments_of_check(models, models[0].name)
    check = endpoints.make_check(synthesis, arguments)
    values = {name: None for name in arguments} | {"script": "[S1] Hi.", "max_tokens": tokens}
    with pytest.raises(InputError, match="max_tokens must be a whole number from"):
        check(SimpleNamespace(), *values.values())


# Over HTTP


def call(home: str, path: str, body: dict) -> tuple[str, object]:
    """The last event of a call and its data; "refused" where the call itself was."""
    request = urllib.request.Request(
        f"{home}/gradio_api/call/{path}", json.dumps(body).encode(),
        {"Content-Type": "application/json"},
    )  # fmt: skip
    try:
        with urllib.request.urlopen(request, timeout=180) as answer:
            event = json.load(answer)["event_id"]
    except urllib.error.HTTPError as error:
        return "refused", json.load(error)
    url = f"{home}/gradio_api/call/{path.removeprefix('v2/')}/{event}"
    with urllib.request.urlopen(url, timeout=300) as answer:
        text = answer.read().decode()
    name, data = re.findall(r"event: (\w+)\ndata: (.*)", text)[-1]
    return name, json.loads(data)


@pytest.mark.parametrize("data", [[], [None]])
def test_a_call_without_a_script_is_refused_in_words(home, data):
    name, answer = call(home, "generate", {"data": data})
    assert name == "error" and "script is missing" in json.dumps(answer)


def test_a_call_by_names_without_a_script_is_refused_in_words(home):
    name, answer = call(home, "v2/generate", {"seed": 5})
    assert name == "refused" and "required argument: script" in answer["error"]


def test_a_script_that_is_a_number_is_not_spoken(home):
    name, answer = call(home, "v2/generate", {"script": 5})
    assert name == "error" and "script must be text, not 5" in json.dumps(answer)


def test_files_of_the_server_are_no_voice_prompts(home):
    for path in ("/etc/passwd", str(ROOT / "README.md")):
        for meta in ({"_type": "gradio.FileData"}, {}):
            prompt = {"path": path, "meta": meta}
            body = {"script": "[S1] Hi.", "max_tokens": 40, "voice_prompt": prompt}
            name, answer = call(home, "v2/generate", body)
            assert name == "error" and "Dia" not in json.dumps(answer)


def test_a_call_with_the_arguments_of_last_year_still_works(home):
    """13 arguments by position, before `normalise` was added."""
    values = ["[S1] Hi.", 0.2, 1.0, 40, 0.95, 30, 1, 1.0, None, "", "nano", "float32", False]
    assert len(values) == 13
    name, (take, figures) = call(home, "generate", {"data": values})
    assert (
        name == "complete" and figures["seed"] == 1 and take["path"].endswith("/hi_nano_seed1.wav")
    )


@pytest.mark.parametrize("suffix", audio.FORMATS)
def test_a_call_gets_the_format_that_it_names(home, tmp_path, suffix):
    """Its content type as well."""
    body = {"script": "[S1] Hi.", "max_tokens": 40, "seed": 1, "format": suffix[1:]}
    name, (take, _) = call(home, "v2/generate", body)
    assert name == "complete" and take["path"].endswith(f"/hi_nano_seed1{suffix}")
    with urllib.request.urlopen(take["url"], timeout=180) as answer:
        assert answer.headers["Content-Type"] == audio.FORMATS[suffix].content_type
        (tmp_path / f"a{suffix}").write_bytes(answer.read())
    assert soundfile.info(tmp_path / f"a{suffix}").format == audio.FORMATS[suffix].container
    assert audio.read_metadata(tmp_path / f"a{suffix}")["settings"]["seed"] == 1


def test_an_unknown_format_is_refused_before_anything_is_made(home):
    name, answer = call(home, "v2/generate", {"script": "[S1] Hi.", "format": "aac"})
    assert name == "error" and "format must be one of wav, flac, mp3, opus" in json.dumps(answer)


# docs/api.md


def run(command: list[str], folder) -> str:
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_the_python_example_runs(home, tmp_path):
    out = run([sys.executable, "-c", example("python", home, "/check")], tmp_path)
    assert "[S1] It's three dollars and fifty cents!" in out
    file = re.search(r"^(\S+\.wav) ", out, re.MULTILINE)[1]
    metadata = audio.read_metadata(file)
    own = NANO_DEFAULTS.temperature
    assert metadata["settings"]["seed"] == 7 and metadata["settings"]["temperature"] == 0.2
    assert f"\nnano {{'minimum': 0.0, 'maximum': 5.0, 'default': {own}}}" in "\n" + out


def test_the_example_of_several_takes_runs(home, tmp_path):
    out = run([sys.executable, "-c", example("python", home, "/audition")], tmp_path)
    assert re.findall(r"\.wav (\d) ", out) == ["7", "8", "9"]
    assert ".srt {'word': 'Welcome', 'start':" in out
    assert "temperature 0.2 [['pair-" in out and "temperature 1.0 [['pair-" in out


def test_the_curl_example_runs(home, tmp_path):
    out = run(["bash", "-ec", example("bash", home, "/generate")], tmp_path)
    assert soundfile.info(tmp_path / "hello.wav").subtype == "PCM_16"
    assert '"turns": 2' in out
