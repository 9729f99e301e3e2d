"""The requests of other programs as they send them, with what each of them trips over.

They were read in the clients' own source: docs/serving.md lists the clients.
"""

from __future__ import annotations

import io
import itertools
import struct
import wave
from contextlib import contextmanager

import httpx
import numpy as np
import pytest
import soundfile

from dia_demo.engine.time_left import TimeLeft
from dia_demo.server.speech import questions, response
from dia_demo.services.speech.speaker import Promise
from tests.helpers.speech import (
    RATE,
    WORDS,
    HeldSpeaker,
    assert_speech,
    decode,
    serve_speech,
    settings_in,
)

SILLYTAVERN = "http://127.0.0.1:8000"
HOME_ASSISTANT = {"user-agent": "HomeAssistant-OpenAI-TTS", "content-type": "application/json"}


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    """A client of a server on this machine without tokens. Clients send no seed: this is drawn."""
    settings = settings_in(tmp_path_factory.mktemp("clients"), origins=(SILLYTAVERN,))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(questions, "random_seed", lambda: 5)
        with serve_speech(settings) as url, httpx.Client(base_url=url, timeout=180) as made:
            yield made


def any_key(key="sk-anything") -> dict[str, str]:
    return {"authorization": f"Bearer {key}"}


def test_open_webui_stores_what_it_gets_as_mp3(client):
    """It passes on the page's body with its own model, perhaps the names of its users, and no
    format; the answer becomes a file with the name .mp3."""
    body = {"input": WORDS, "voice": "alloy", "model": "tts-1"}
    headers = any_key("sk-any") | {"x-openwebui-user-name": "Ann"}
    answer = client.post("/v1/audio/speech", json=body, headers=headers)
    assert answer.status_code == 200 and answer.headers["content-type"] == "audio/mpeg"
    with soundfile.SoundFile(io.BytesIO(answer.content)) as file:
        assert file.format == "MP3"
    assert_speech(answer.content)
    assert "tts-1" in [model["id"] for model in client.get("/v1/audio/models").json()["models"]]
    voices = {
        voice["id"]: voice["name"] for voice in client.get("/v1/audio/voices").json()["voices"]
    }
    assert voices["alloy"] == "alloy" and voices["rms deep"] == "rms deep"


def test_open_webui_shows_what_is_wrong(client):
    answer = client.post("/v1/audio/speech", json={"input": WORDS, "voice": "x", "model": "tts-1"})
    assert answer.status_code == 400 and "no voice 'x'" in answer.json()["error"]["message"]


def test_sillytavern_speaks_at_the_speed_of_its_slider(client):
    """A full URL, a voice typed by hand, and a speed in steps of 0.05."""
    body = {"model": "tts-1", "voice": "rms deep", "response_format": "mp3", "input": WORDS}
    answer = client.post("/v1/audio/speech", json={**body, "speed": 1.05}, headers=any_key())
    assert answer.status_code == 200
    assert_speech(answer.content)


def test_sillytaverns_dia_extension(client):
    """A page of another address: the browser asks first, and sends its origin."""
    origin = {"origin": SILLYTAVERN}
    health = client.get("/health", headers=origin)
    assert health.is_success and health.headers["access-control-allow-origin"] == SILLYTAVERN
    asked = {"access-control-request-headers": "authorization,content-type"}
    asked |= {"access-control-request-method": "POST"} | origin
    for path in ("/v1/audio/speech", "/v1/audio_prompts/upload", "/v1/voice_mappings"):
        preflight = client.options(path, headers=asked)
        assert preflight.status_code == 200
        assert preflight.headers["access-control-allow-origin"] == SILLYTAVERN
        assert preflight.headers["access-control-allow-headers"] == "authorization,content-type"
    for tag, character in (("[S1]", "alloy"), ("[S2]", "onyx")):
        body = {"model": "dia", "input": f"{tag} {WORDS}", "voice": character}
        body |= {"response_format": "wav", "speed": 1.0}
        answer = client.post("/v1/audio/speech", json=body, headers=any_key() | origin)
        assert answer.status_code == 200
        assert answer.headers["access-control-allow-origin"] == SILLYTAVERN
        assert_speech(answer.content)


def test_home_assistant_drops_the_version_of_a_bare_address(client):
    """It asks for voices beside the path of speech, which may be /audio/speech."""
    listed = client.get("/audio/voices", params={"limit": 100}, headers=HOME_ASSISTANT).json()
    assert listed == client.get("/v1/audio/voices").json() and listed["voices"]
    body = {"model": "tts-1", "input": WORDS, "voice": "shimmer", "response_format": "mp3"}
    for path in ("/audio/speech", "/v1/audio/speech"):
        answer = client.post(path, json={**body, "speed": 1.0, "seed": 4}, headers=HOME_ASSISTANT)
        assert answer.status_code == 200
        assert_speech(answer.content)


def test_home_assistant_checks_a_key_with_a_full_stop(client):
    """Only an answer of 200 is taken as acceptance."""
    body = {"model": "tts-1", "input": ".", "voice": "alloy", "response_format": "mp3"}
    answer = client.post("/v1/audio/speech", json=body, headers=any_key())
    assert answer.status_code == 200
    samples, rate = decode(answer.content)
    assert 0.1 < len(samples) / rate < 0.5 and np.abs(samples).max() < 0.01


@contextmanager
def held_server(tmp_path, speaker: HeldSpeaker):
    with serve_speech(settings_in(tmp_path), speaker=speaker) as url:
        with httpx.Client(base_url=url, timeout=120, headers=HOME_ASSISTANT) as client:
            yield client


def test_home_assistant_hears_opus_while_it_is_made(tmp_path):
    """It plays from the first 1,024 bytes on."""
    speaker = HeldSpeaker(chunks=20)
    body = {"model": "tts-1", "input": WORDS, "voice": "alloy", "response_format": "opus"}
    with held_server(tmp_path, speaker) as client:
        speaker.release(5)
        with client.stream("POST", "/v1/audio/speech", json={**body, "speed": 1.0}) as answer:
            assert answer.headers["content-type"] == "audio/ogg"
            blocks = answer.iter_raw(256)
            first = b"".join(itertools.islice(blocks, 4))
            assert first[:4] == b"OggS" and not speaker.stopped
            speaker.release()
            whole = first + b"".join(blocks)
    samples, rate = decode(whole)
    assert len(samples) / rate == pytest.approx(2.0, abs=0.1)


def test_home_assistants_second_request_joins_the_first(tmp_path, monkeypatch):
    """Without data for 30 s it gives up and asks once more: for the take that is being made."""
    monkeypatch.setattr(response, "HEAD_SECONDS", 0.01)
    speaker = HeldSpeaker()
    body = {"model": "tts-1", "input": WORDS, "voice": "alloy", "response_format": "mp3"}
    with held_server(tmp_path, speaker) as client:
        with client.stream("POST", "/v1/audio/speech", json={**body, "speed": 1.0}) as first:
            with client.stream("POST", "/v1/audio/speech", json={**body, "speed": 1.0}) as second:
                speaker.release()
                assert first.read() == second.read()
    assert len(speaker.started) == 1


def test_home_assistant_is_told_what_takes_too_long(tmp_path):
    speaker = HeldSpeaker()
    speaker.promised = Promise(TimeLeft(90.0, 120.0), 60.0, RATE, "stand-in")
    body = {"model": "tts-1", "input": WORDS, "voice": "alloy", "response_format": "opus"}
    with held_server(tmp_path, speaker) as client:
        answer = client.post("/v1/audio/speech", json={**body, "speed": 1.0})
    assert answer.status_code == 503 and int(answer.headers["retry-after"]) > 0
    assert not speaker.started


def test_wyoming_openai_finds_no_other_server(client):
    """It takes these for signs of LocalAI, Kokoro-FastAPI and Speaches."""
    assert client.get("/readyz").status_code == 404
    assert client.get("/v1/readyz").status_code == 404
    assert client.get("/v1/test").status_code == 404
    assert client.get("/health").json()["status"] == "ok"


def test_wyoming_openai_reads_the_head_of_a_wav(client):
    """It tries the first blocks until the head is whole; an open size means that nothing is cut."""
    body = {"model": "tts-1", "voice": "alloy", "input": WORDS, "response_format": "wav"}
    with client.stream("POST", "/v1/audio/speech", json=body | {"speed": 1.0}) as answer:
        whole = b"".join(answer.iter_raw())
    sizes = range(512, 65536, 512)
    rate, offset = next(filter(None, (head_of(whole[:size]) for size in sizes)))
    assert str(rate) == answer.headers["x-sample-rate"]
    riff, data = (struct.unpack_from("<I", whole, at)[0] for at in (4, offset - 4))
    assert riff == data == 0xFFFFFFFF
    assert_speech(whole)


def head_of(data: bytes) -> tuple[int, int] | None:
    """Rate and where the samples begin; None as long as the head is not whole."""
    source = io.BytesIO(data)
    try:
        with wave.open(source) as file:
            return file.getframerate(), source.tell()
    except (wave.Error, EOFError):
        return None


def test_librechat_joins_the_chunks_of_a_long_text(client):
    """Above 4,096 characters it sends pieces of 1,000 one after another, with no format, and pipes
    the answers into one; a `backend` may be among the fields."""
    body = {"input": WORDS, "model": "tts-1", "voice": "alloy", "backend": "x"}
    parts = [client.post("/v1/audio/speech", json=body, headers=any_key()) for _ in range(3)]
    assert {part.status_code for part in parts} == {200}
    assert_speech(b"".join(part.content for part in parts), times=3)


@pytest.mark.parametrize("voice", ["alloy", "echo", "fable", "nova", "onyx", "shimmer"])
def test_n8n_names_six_voices(client, voice):
    body = {"model": "tts-1-hd", "input": "Hello there.", "voice": voice, "speed": 1}
    answer = client.post("/v1/audio/speech", json=body | {"response_format": "mp3"})
    assert answer.status_code == 200 and answer.headers["content-type"] == "audio/mpeg"
    samples, rate = decode(answer.content)
    assert 0.4 < len(samples) / rate < 3.0


def test_n8n_reads_why_there_is_no_aac(client):
    body = {"model": "tts-1", "input": WORDS, "voice": "alloy", "speed": 1}
    answer = client.post("/v1/audio/speech", json=body | {"response_format": "aac"})
    assert answer.status_code == 400 and answer.json()["error"]["param"] == "response_format"


def test_naris_benchmark_gets_pcm_of_24_khz(client):
    """It sends fields of several servers, and compares the rate in the head with its own."""
    body = {"model": "nano", "input": WORDS, "voice": "alloy", "language": "English"}
    body |= {"stream": True, "non_streaming_mode": False, "response_format": "pcm"}
    for more in ({}, {"stream_format": "audio"}):
        answer = client.post("/v1/audio/speech", json=body | more)
        assert answer.headers["content-type"].split(";")[0] == "audio/pcm"
        assert answer.headers["x-sample-rate"] == "24000"
        assert_speech(answer.content)
