"""The requests of SillyTavern's Dia extension, and what it reads from the answers."""

from __future__ import annotations

import io

import numpy as np
import pytest
import soundfile
from starlette.testclient import TestClient

from dia_demo.server.application import make_application
from dia_demo.server.speech import sillytavern
from dia_demo.server.speech.api import SpeechApi
from dia_demo.services.settings import Settings
from dia_demo.services.voices.kept import KeptVoices
from tests.helpers.speech import HeldSpeaker, settings_in
from tests.server.speech.test_voices import HERE, voice_of

TOKEN = "a-token-of-somebody-0123456789"
ANY_KEY = {"authorization": "Bearer sk-anything"}


@pytest.fixture
def settings(tmp_path) -> Settings:
    return settings_in(tmp_path)


@pytest.fixture
def client(settings):
    return client_of(settings)


def client_of(settings: Settings) -> TestClient:
    api = SpeechApi.with_speaker(HeldSpeaker(), settings)
    application = make_application(None, settings, api)
    return TestClient(application, base_url="http://localhost", client=(HERE, 5000))


def upload(client: TestClient, name: str = "anna_voice", headers=ANY_KEY):
    """What the button "Create Custom Voice" sends first."""
    buffer = io.BytesIO()
    soundfile.write(buffer, np.zeros(48000), 16000, format="WAV")
    file = {"audio_file": ("anna.wav", buffer.getvalue(), "audio/wav")}
    data = {"prompt_id": name}
    return client.post("/v1/audio_prompts/upload", data=data, files=file, headers=headers)


def add_mapping(client: TestClient, voice: str = "anna_voice", prompt: str = "anna_voice"):
    """What it sends then."""
    body = {"voice_id": voice, "style": "natural", "primary_speaker": "S1", "audio_prompt": prompt}
    return client.post("/v1/voice_mappings", json=body, headers=ANY_KEY)


def test_a_recording_without_its_words_is_refused_with_what_to_do(client):
    """The extension shows `detail`."""
    answer = upload(client)
    assert answer.status_code == 400 and list(answer.json()) == ["detail"]
    for part in ("without its words", "'anna_voice'", "Keep a voice", "/v1/audio/voices"):
        assert part in answer.json()["detail"]
    mapping = add_mapping(client)
    assert mapping.status_code == 404 and "no kept voice" in mapping.json()["detail"]
    assert client.get("/v1/voice_mappings", headers=ANY_KEY).json() == []


def test_a_voice_that_was_kept_before_is_taken(client, settings):
    KeptVoices.for_user(settings).add(voice_of("anna_voice"))
    assert "anna_voice" in upload(client).json()["message"]
    assert add_mapping(client).json()["voice_config"]["voice_id"] == "anna_voice"
    mappings = client.get("/v1/voice_mappings", headers=ANY_KEY).json()
    assert [mapping["voice_id"] for mapping in mappings] == ["anna_voice"]


def test_a_take_of_this_app_has_its_words(client, settings, monkeypatch):
    monkeypatch.setattr(sillytavern, "take_in", lambda path: {"a": "take"})
    monkeypatch.setattr(sillytavern, "keep_take", lambda contents, name: voice_of(name))
    assert upload(client).status_code == add_mapping(client).status_code == 200
    assert KeptVoices.for_user(settings).find("anna_voice") is not None


def test_removing_a_mapping_loses_no_voice(client, settings):
    KeptVoices.for_user(settings).add(voice_of("anna_voice"))
    answer = client.delete("/v1/voice_mappings/anna_voice", headers=ANY_KEY)
    assert answer.status_code == 200 and "stays kept" in answer.json()["message"]
    assert KeptVoices.for_user(settings).find("anna_voice") is not None


def test_a_mapping_has_the_name_of_its_voice(client, settings):
    KeptVoices.for_user(settings).add(voice_of("anna_voice"))
    answer = add_mapping(client, voice="other")
    assert answer.status_code == 400 and "'anna_voice'" in answer.json()["detail"]
    missing = client.post("/v1/voice_mappings", json={}, headers=ANY_KEY)
    assert missing.status_code == 400 and "voice_id is missing" in missing.json()["detail"]


def test_a_wrong_key_is_told_so_in_detail(settings):
    client = client_of(Settings(**vars(settings) | {"tokens": (TOKEN,)}))
    for answer in (upload(client), add_mapping(client)):
        assert answer.status_code == 401 and "token" in answer.json()["detail"]
