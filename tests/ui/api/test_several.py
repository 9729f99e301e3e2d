"""The endpoints that make more than one take, with gradio_client against the real app: auditions,
dialogues, comparisons, and what they refuse."""

from __future__ import annotations

import json
import urllib.request
from pathlib import Path
from zipfile import ZipFile

import pytest
import soundfile
from gradio_client import Client, handle_file
from gradio_client.exceptions import AppError

from dia_demo import audio
from dia_demo.services.listening.archive import import_zip
from dia_demo.services.listening.comparison import Comparison
from dia_demo.ui.api import answers

SCRIPT = "[S1] Hello there."
TWO = [{"temperature": 0.2}, {"temperature": 1.2}]
ENDPOINTS = ["/generate", "/audition", "/dialogue", "/compare", "/check", "/models"]


@pytest.fixture(scope="module")
def client(home, tmp_path_factory) -> Client:
    return Client(home, download_files=str(tmp_path_factory.mktemp("answers")), verbose=False)


def test_the_running_app_offers_these_endpoints_and_no_other(client):
    offered = client.view_api(print_info=False, return_format="dict")
    assert list(offered["named_endpoints"]) == ENDPOINTS and offered["unnamed_endpoints"] == {}


# Auditions


def test_an_audition_has_the_seeds_that_follow(client):
    files, figures = client.predict(SCRIPT, seed=2**32 - 2, takes=3, api_name="/audition")
    assert [one["seed"] for one in figures["takes"]] == [2**32 - 2, 2**32 - 1, 0]
    described = answers.AUDITION["properties"]["takes"]["items"]["properties"]
    assert set(figures["takes"][0]) == set(described) and figures["problems"] == []
    for file, one in zip(files, figures["takes"], strict=True):
        assert audio.read_metadata(file)["settings"]["seed"] == one["seed"]
        assert soundfile.info(file).duration == pytest.approx(one["audio_seconds"], abs=0.05)


def test_an_audition_of_voices_has_one_take_in_each(client):
    files, figures = client.predict(
        SCRIPT, seed=5, voices=["rms deep", "awb high"], format="mp3", api_name="/audition"
    )
    assert [one["voices"][0] for one in figures["takes"]] == ["rms deep", "awb high"]
    assert {one["seed"] for one in figures["takes"]} == {5}
    assert [Path(file).suffix for file in files] == [".mp3", ".mp3"]


def test_an_audition_of_presets_has_one_take_with_each(client):
    files, figures = client.predict(
        SCRIPT, presets=["Expressive", "Consistent"], api_name="/audition"
    )
    assert [one["preset"] for one in figures["takes"]] == ["Expressive", "Consistent"]
    one, two = (audio.read_metadata(file)["settings"] for file in files)
    assert one["seed"] == two["seed"] and one["temperature"] > two["temperature"]


# Dialogues


def test_a_dialogue_has_its_pause_words_and_subtitles(client):
    script = "[S1] Hello there, how are you? (pause 2) [S2] I am fine, thank you."
    file, subtitles, figures = client.predict(
        script, voice_s1="rms deep", voice_s2="awb high", seed=3, format="opus", subtitles="srt",
        api_name="/dialogue",
    )  # fmt: skip
    assert set(figures) == set(answers.DIALOGUE["properties"])
    assert [part["verdict"] for part in figures["chunks"]] == ["good", "good"]
    assert figures["voices"][0] == "rms deep"
    words = figures["words"]
    first = next(word for word in words if word["speaker"] == "S2")
    assert words[0]["word"] == "Hello" and first["start"] - words[4]["end"] > 1.5
    assert Path(subtitles).suffix == ".srt" and "S2: I am fine" in Path(subtitles).read_text()
    assert soundfile.info(file).duration == pytest.approx(figures["audio_seconds"], abs=0.1)


def test_a_dialogue_without_subtitles_has_none(client):
    file, subtitles, figures = client.predict(SCRIPT, api_name="/dialogue")
    assert Path(file).suffix == ".wav" and subtitles is None and len(figures["chunks"]) == 1


def test_a_dialogue_takes_a_voice_prompt(client):
    prompt, _ = client.predict("[S1] Hello there, my good old friend. I am glad to see you.",
                               seed=1, api_name="/generate")  # fmt: skip
    _, _, figures = client.predict(
        SCRIPT, voice_prompt=handle_file(prompt), voice_transcript="", api_name="/dialogue"
    )
    assert figures["chunks"][0]["verdict"] and figures["audio_seconds"] > 0.5


# Comparisons


def test_a_sighted_comparison_names_its_takes(client):
    archive, summary = client.predict(
        "[S1] Hello there.\n---\n[S1] Good evening.", TWO, pairs=2, seed=7, format="flac",
        api_name="/compare",
    )  # fmt: skip
    assert set(summary) == set(answers.COMPARISON["properties"])
    assert summary["seeds"] == [7] and summary["pairs_made"] == 2 and summary["problems"] == []
    assert [one["name"] for one in summary["settings"]] == ["temperature 0.2", "temperature 1.2"]
    with ZipFile(archive) as files:
        assert len(files.namelist()) == 4
        for setting, side in zip(summary["settings"], TWO, strict=True):
            assert [take["script"] for take in setting["takes"]] == [0, 1]
            for take in setting["takes"]:
                (name,) = take["files"]
                path = files.extract(name, Path(archive).parent)
                settings = audio.read_metadata(path)["settings"]
                assert settings["temperature"] == side["temperature"] and settings["seed"] == 7


@pytest.mark.parametrize("kind", ["preference", "abx"])
def test_a_blind_comparison_can_be_opened_and_hides_its_sides(client, tmp_path, kind):
    archive, summary = client.predict(SCRIPT, TWO, kind=kind, pairs=2, api_name="/compare")
    assert summary["settings"] is None and summary["pairs_made"] == 2
    assert "loudness" not in json.dumps(summary) and "seconds" not in summary["can_show"]
    import_zip(Path(archive), tmp_path / "opened")
    comparison = Comparison.open(tmp_path / "opened")
    assert comparison.plan.kind == kind and not comparison.is_unblinded
    assert comparison.next_trial() is not None


# What is refused


REFUSED = [
    ("/audition", {"takes": 9}, "takes must be a whole number from 2 to 8, not 9"),
    ("/audition", {"takes": 2.5}, "takes must be a whole number"),
    ("/audition", {"takes": True}, "takes must be a whole number"),
    ("/audition", {"takes": "many"}, "takes must be a whole number"),
    ("/audition", {"seed": "x"}, "seed must be a whole number"),
    ("/audition", {"voices": "rms deep"}, "voices must be a list of texts"),
    ("/audition", {"voices": [1, 2]}, "voices must be a list of texts"),
    ("/audition", {"voices": ["rms deep"]}, "2 to 8 different voices"),
    ("/audition", {"voices": ["rms deep"] * 2}, "2 to 8 different voices"),
    ("/audition", {"voices": ["rms deep", "nobody"]}, "There is no voice 'nobody'"),
    ("/audition", {"presets": ["Loud", "Balanced"]}, "has no preset 'Loud'"),
    ("/audition", {"presets": ["Balanced"] * 9}, "2 to 8 different presets"),
    ("/audition", {"voices": ["a", "b"], "presets": ["c", "d"]}, "not both"),
    ("/audition", {"script": "[S1] One. (pause 2) Two."}, "use /dialogue"),
    ("/dialogue", {"join": "loose"}, "join must be one of steady, flowing"),
    ("/dialogue", {"retries": 11}, "from 0 to 10, not 11"),
    ("/dialogue", {"retries": None, "subtitles": "ass"}, "subtitles must be one of none, srt, vtt"),
    ("/dialogue", {"script": "x" * 20_001}, "20,000 are allowed"),
    ("/dialogue", {"script": " "}, ""),
    ("/dialogue", {"voice_prompt": "/etc/passwd"}, "voice_prompt must be an uploaded audio file"),
    ("/dialogue", {"max_tokens": 10**9}, "must be a whole number"),
    ("/compare", {"settings": []}, "from 2 to 6 settings, not 0"),
    ("/compare", {"settings": [{}] * 2}, "identical"),
    ("/compare", {"settings": {"temperature": 1}}, "settings must be a list of objects"),
    ("/compare", {"settings": ["temperature"] * 2}, "settings must be a list of objects"),
    ("/compare", {"settings": [{"temperature": [1]}, {}]}, "'temperature' cannot be [1]"),
    ("/compare", {"settings": [{"temperature": 99}, {}]}, "from 0 to 5, not 99"),
    ("/compare", {"settings": [{"temperature": "hot"}, {}]}, "temperature must be a number"),
    ("/compare", {"settings": [{"heat": 1}, {}]}, "No setting is called 'heat'"),
    ("/compare", {"settings": [{"model": "/etc"}, {}]}, "must be one of nano"),
    ("/compare", {"settings": [{"model": 5}, {}]}, "must be one of nano"),
    ("/compare", {"settings": [{"voice_s1": "nobody"}, {}]}, "no voice 'nobody'"),
    ("/compare", {"settings": [{"device": "toaster"}, {}]}, "must be one of cpu"),
    ("/compare", {"pairs": 0}, "multiple of the number of scripts"),
    ("/compare", {"pairs": 10**9}, "from 1 to 200"),
    ("/compare", {"pairs": "2"}, "pairs must be a whole number"),
    ("/compare", {"seed": 2**32}, "seed must be a whole number"),
    ("/compare", {"kind": "deaf"}, "kind must be one of preference, abx, sighted"),
    ("/compare", {"script": "---"}, "script is empty"),
    ("/compare", {"format": "aac"}, "format must be one of"),
]


@pytest.mark.parametrize(("name", "given", "message"), REFUSED)
def test_what_cannot_be_used_is_refused_in_words(client, name, given, message):
    values = {"script": SCRIPT} | ({"settings": TWO} if name == "/compare" else {}) | given
    with pytest.raises(AppError) as refusal:
        client.predict(**values, api_name=name)
    said = str(refusal.value)
    assert message.casefold() in said.casefold() and "Traceback" not in said and len(said) < 500


def test_files_of_the_server_are_no_settings(home):
    """Whatever claims to be a file in a call has to be an upload."""
    file = {"path": "/etc/passwd", "meta": {"_type": "gradio.FileData"}}
    body = {"script": SCRIPT, "settings": [file, {}]}
    call = f"{home}/gradio_api/call"
    kind = {"Content-Type": "application/json"}
    request = urllib.request.Request(f"{call}/v2/compare", json.dumps(body).encode(), kind)
    with urllib.request.urlopen(request, timeout=180) as answer:
        event = json.load(answer)["event_id"]
    with urllib.request.urlopen(f"{call}/compare/{event}", timeout=180) as answer:
        assert "Only files that were uploaded to this app" in answer.read().decode()
