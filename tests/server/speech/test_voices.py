"""Voices that programs upload: with consent, within limits, and for whom."""

from __future__ import annotations

import io
import queue
import threading

import numpy as np
import pytest
import soundfile
from starlette.testclient import TestClient

from dia_demo.prompt.voice_file import VoiceFile
from dia_demo.server.address import LOCAL, Address
from dia_demo.server.application import make_application
from dia_demo.server.speech import voices
from dia_demo.server.speech.api import SpeechApi
from dia_demo.services.people import key_of_token
from dia_demo.services.settings import Settings
from dia_demo.services.voices.kept import KeptVoices
from tests.helpers.speech import HeldSpeaker, settings_in

FIRST, SECOND = "first-token-0123456789", "second-token-0123456789"
HERE, ELSEWHERE = "127.0.0.1", "10.0.0.7"
WORDS = "What is said in it."


@pytest.fixture
def settings(tmp_path) -> Settings:
    return settings_in(tmp_path)


@pytest.fixture(autouse=True)
def kept_at_once(monkeypatch) -> list[dict]:
    """The encoder is a stand-in: what it was asked for."""
    asked = []

    def keep_recording(path, name, transcript, model, *, has_consent):
        samples, rate = soundfile.read(path)
        asked.append({"name": name, "words": transcript, "seconds": len(samples) / rate})
        return voice_of(name, transcript)

    monkeypatch.setattr(voices, "keep_recording", keep_recording)
    return asked


def voice_of(name: str, words: str = WORDS) -> VoiceFile:
    return VoiceFile(
        name=name, codes=np.zeros((60, 9), np.int16), transcript=f"[S1] {words}", codec="",
        sample_rate=16000, fps=20.0, model="nano", source="recording",
        consent="The person heard agreed.",
    )  # fmt: skip


def client_of(settings: Settings, address: Address = LOCAL, host: str = HERE) -> TestClient:
    api = SpeechApi.with_speaker(HeldSpeaker(), settings)
    application = make_application(None, settings, api, address)
    return TestClient(application, base_url="http://localhost", client=(host, 5000))


def wav(seconds: float = 5.0) -> bytes:
    buffer = io.BytesIO()
    soundfile.write(buffer, np.zeros(round(16000 * seconds)), 16000, format="WAV")
    return buffer.getvalue()


def upload(client: TestClient, token: str = "", sample: bytes | None = None, **fields):
    """fields: None for one that is left out."""
    given = {"name": "Anna", "consent": "true", "ref_text": WORDS} | fields
    data = {name: value for name, value in given.items() if value is not None}
    file = {"audio_sample": ("../anna.wav", wav() if sample is None else sample, "audio/wav")}
    headers = {"authorization": f"Bearer {token}"} if token else {}
    return client.post("/v1/audio/voices", data=data, files=file, headers=headers)


def names(client: TestClient, token: str = "") -> set[str]:
    headers = {"authorization": f"Bearer {token}"} if token else {}
    listed = client.get("/v1/audio/voices", headers=headers).json()["voices"]
    return {voice["name"] for voice in listed} & {"Anna", "Bert"}


def error(answer) -> dict:
    return answer.json()["error"]


def test_an_upload_is_kept_and_removed(settings, kept_at_once):
    client = client_of(settings)
    answer = upload(client)
    assert answer.status_code == 200
    told = answer.json()
    assert told["success"] and told["voice"]["name"] == told["id"] == told["name"] == "Anna"
    assert told["voice"]["mime_type"] == "audio/wav" and told["voice"]["file_size"] == len(wav())
    assert kept_at_once == [{"name": "Anna", "words": WORDS, "seconds": 5.0}]
    assert names(client) == {"Anna"} and KeptVoices.for_user(settings).get("anna").speakers == (1,)
    assert not list(settings.takes_folder.glob("voice-*")), "the upload itself is removed"
    removed = client.delete("/v1/audio/voices/Anna")
    assert removed.json() | {"message": ""} == {
        "success": True, "deleted": True, "id": "Anna", "message": ""
    }  # fmt: skip
    assert client.delete("/v1/audio/voices/Anna").status_code == 404
    assert names(client) == set()


@pytest.mark.parametrize(
    ("fields", "param", "says"),
    [
        (dict(consent=None), "consent", "only if the person heard has agreed"),
        (dict(consent="False"), "consent", "only if the person heard has agreed"),
        (dict(ref_text=" "), "ref_text", "exactly what is said"),
        (dict(name=None), None, "Give the voice a name"),
        (dict(name="../../etc"), None, "may not contain /"),
        (dict(name="x" * 61), None, "at most 60 characters"),
        (dict(model="gpt-9"), None, "There is no model 'gpt-9'"),
        (dict(sample=b""), "audio_sample", "audio_sample is missing"),
    ],
)
def test_what_cannot_be_kept_is_refused_in_a_sentence(settings, kept_at_once, fields, param, says):
    answer = upload(client_of(settings), **fields)
    assert answer.status_code == 400
    assert says in error(answer)["message"] and error(answer)["param"] == param
    assert not kept_at_once and not KeptVoices.for_user(settings).list()


def test_a_note_about_the_consent_is_stored(settings):
    client = client_of(settings)
    upload(client, consent="signed on paper\n" + "x" * 900)
    consent = KeptVoices.for_user(settings).get("Anna").consent
    assert "signed on paper" in consent and len(consent) < 500


def test_a_name_is_taken_once(settings):
    client = client_of(settings)
    assert upload(client).status_code == 200
    again = upload(client, name="ANNA")
    assert again.status_code == 400 and "already a voice" in error(again)["message"]


def test_a_voice_belongs_to_whoever_has_the_token(settings):
    settings = Settings(**vars(settings) | {"tokens": (FIRST, SECOND)})
    client = client_of(settings, host=ELSEWHERE)
    assert upload(client, FIRST).status_code == 200
    assert (names(client, FIRST), names(client, SECOND), names(client)) == ({"Anna"}, set(), set())
    assert not KeptVoices.for_user(settings).list()
    assert KeptVoices.for_person(settings, key_of_token(FIRST)).find("Anna") is not None
    other = {"authorization": f"Bearer {SECOND}"}
    assert client.delete("/v1/audio/voices/Anna", headers=other).status_code == 404
    assert upload(client, "wrong").status_code == upload(client).status_code == 401


def test_shared_voices_are_not_for_tokens_to_remove(settings):
    KeptVoices.for_user(settings).add(voice_of("Bert"))
    settings = Settings(**vars(settings) | {"tokens": (FIRST,)})
    headers = {"authorization": f"Bearer {FIRST}"}
    answer = client_of(settings).delete("/v1/audio/voices/Bert", headers=headers)
    assert answer.status_code == 400 and "shared voice" in error(answer)["message"]


@pytest.mark.parametrize(
    ("address", "host"),
    [(Address("0.0.0.0"), HERE), (Address("0.0.0.0"), ELSEWHERE), (LOCAL, ELSEWHERE)],
)
def test_nobody_uploads_where_everybody_would_have_the_voice(settings, address, host):
    """An open server, or one behind a proxy: neither has tokens."""
    settings = Settings(**vars(settings) | {"open_api": True})
    client = client_of(settings, address, host)
    for answer in (upload(client), client.delete("/v1/audio/voices/Anna")):
        assert answer.status_code == 403 and "DIA_TOKENS" in error(answer)["message"]


def test_an_upload_has_a_limit(settings, kept_at_once):
    client = client_of(Settings(**vars(settings) | {"upload_mb": 1}))
    answer = upload(client, sample=wav(60))
    assert answer.status_code == 413 and "at most 1 MB" in error(answer)["message"]
    assert not kept_at_once


def test_a_form_has_one_file_and_small_fields(settings, kept_at_once):
    client = client_of(settings)
    files = [("audio_sample", ("a.wav", wav())), ("more", ("b.wav", wav()))]
    assert client.post("/v1/audio/voices", files=files).status_code == 400
    assert upload(client, ref_text="x" * 70_000).status_code == 400
    assert client.post("/v1/audio/voices", json={"name": "Anna"}).status_code == 400
    assert not kept_at_once


def test_whoever_has_no_token_is_refused_before_the_form_is_read(settings, monkeypatch):
    def unread(request):
        raise AssertionError("the form was read")

    monkeypatch.setattr(voices, "form_of", unread)
    client = client_of(Settings(**vars(settings) | {"tokens": (FIRST,)}))
    assert upload(client).status_code == 401


def test_one_voice_is_encoded_at_a_time_and_few_wait(settings, monkeypatch):
    running, most, begun, go_on = [], [], threading.Event(), threading.Event()

    def keep_recording(path, name, transcript, model, *, has_consent):
        running.append(name)
        most.append(len(running))
        begun.set()
        assert go_on.wait(10)
        running.remove(name)
        return voice_of(name)

    monkeypatch.setattr(voices, "keep_recording", keep_recording)
    monkeypatch.setattr(voices, "MOST_WAITING", 1)
    answers: queue.Queue = queue.Queue()
    with client_of(settings) as client:

        def keep(name: str) -> None:
            answers.put(upload(client, name=name))

        threads = [threading.Thread(target=keep, args=(name,)) for name in ("Anna", "Bert", "Carl")]
        threads[0].start()
        assert begun.wait(10)
        for thread in threads[1:]:
            thread.start()
        refused = answers.get(timeout=10)  # One of them waits for the first, the other may not.
        assert refused.status_code == 429 and refused.headers["retry-after"] == "5"
        assert client.get("/v1/models").status_code == 200, "the server answers meanwhile"
        go_on.set()
        assert [answers.get(timeout=10).status_code for _ in range(2)] == [200, 200]
        for thread in threads:
            thread.join()
    assert set(most) == {1}
