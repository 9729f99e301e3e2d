"""The spellings of programs' paths, what is not there, and pages of other websites."""

from __future__ import annotations

import pytest
from starlette.testclient import TestClient

from dia_demo.server.application import make_application
from dia_demo.server.speech.api import SpeechApi
from dia_demo.server.speech.paths import EXPOSED, canonical_path
from tests.helpers.speech import HeldSpeaker, settings_in, speech_of

ORIGIN, OTHER = "https://chat.example", "https://evil.example"


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    settings = settings_in(tmp_path_factory.mktemp("paths"), origins=(ORIGIN,))
    speaker = HeldSpeaker()
    speaker.release()
    api = SpeechApi.with_speaker(speaker, settings)
    with TestClient(make_application(None, settings, api), base_url="http://localhost") as made:
        yield made


@pytest.mark.parametrize(
    ("asked", "meant"),
    [
        ("/v1/models/", "/v1/models"),
        ("/audio/speech", "/v1/audio/speech"),
        ("/audio/voices//", "/v1/audio/voices"),
        ("/health/", "/health"),
        ("/", "/"),
        ("/gradio_api/upload/", "/gradio_api/upload/"),
        ("/audio", "/audio"),
        ("/v1", "/v1"),
    ],
)
def test_a_path_has_one_spelling(asked, meant):
    assert canonical_path(asked) == meant


def test_lists_are_where_clients_look_for_them(client):
    for path in ("/audio/voices", "/v1/audio/voices/", "/audio/voices?limit=100"):
        assert client.get(path).json() == client.get("/v1/audio/voices").json()
    assert client.get("/audio/models/").json() == client.get("/v1/audio/models").json()


def test_head_is_get_without_the_body(client):
    head, get = client.head("/v1/models"), client.get("/v1/models")
    assert head.status_code == 200 and head.content == b"" and get.content
    assert head.headers["content-length"] == get.headers["content-length"]
    assert client.head("/v1/audio/speech").status_code == 405


def test_what_is_not_there_says_so_in_the_shape_of_the_api(client):
    for path in ("/v1/nothing", "/v1/test", "/dev/nothing", "/v1/audio/answers"):
        answer = client.get(path)
        assert answer.status_code == 404 and path in answer.json()["error"]["message"]
    for path in ("/readyz", "/test", "/nothing"):
        assert client.get(path).status_code == 404


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("GET", "/v1/audio/speech", "POST"),
        ("OPTIONS", "/v1/audio/speech/", "POST"),
        ("DELETE", "/v1/models", "GET"),
        ("PUT", "/v1/audio/voices", "GET, POST"),
        ("TRACE", "/v1/audio/voices/Anna", "DELETE"),
    ],
)
def test_another_method_is_told_which_are_allowed(client, method, path, allowed):
    answer = client.request(method, path)
    assert answer.status_code == 405
    if method != "TRACE":
        assert answer.headers["allow"] == allowed
        assert method in answer.json()["error"]["message"]


def test_a_page_of_a_listed_website_reads_answers_and_their_heads(client):
    asked = {"origin": ORIGIN, "access-control-request-method": "POST"}
    preflight = client.options(
        "/v1/audio/speech", headers=asked | {"access-control-request-headers": "authorization"}
    )
    assert preflight.status_code == 200
    assert preflight.headers["access-control-allow-origin"] == ORIGIN
    assert "POST" in preflight.headers["access-control-allow-methods"]
    assert preflight.headers["access-control-allow-headers"] == "authorization"
    answer = client.post("/v1/audio/speech", json={"input": "Hello."}, headers={"origin": ORIGIN})
    assert answer.status_code == 200 and answer.headers["access-control-allow-origin"] == ORIGIN
    assert "access-control-allow-credentials" not in answer.headers
    exposed = answer.headers["access-control-expose-headers"].split(", ")
    assert tuple(exposed) == EXPOSED
    assert {name for name in answer.headers if name.startswith("x-")} <= set(EXPOSED)
    mistake = client.post("/v1/audio/speech", json={}, headers={"origin": ORIGIN})
    assert mistake.status_code == 400
    assert mistake.headers["access-control-allow-origin"] == ORIGIN


def test_a_page_of_another_website_neither_sends_nor_reads(client):
    asked = {"origin": OTHER, "access-control-request-method": "POST"}
    preflight = client.options("/v1/audio/speech", headers=asked)
    assert preflight.status_code == 400
    assert "access-control-allow-origin" not in preflight.headers
    sent = client.post("/v1/audio/speech", json={"input": "Hello."}, headers={"origin": OTHER})
    assert sent.status_code == 403 and "DIA_ORIGINS" in sent.json()["error"]["message"]
    read = client.get("/v1/audio/voices", headers={"origin": OTHER})
    assert "access-control-allow-origin" not in read.headers


def test_the_page_itself_is_not_opened_to_listed_websites(client):
    """Its routes are not for programs; gradio answers other websites by its own rules."""
    answer = client.get("/openapi.json", headers={"origin": ORIGIN})
    assert answer.status_code == 200 and "access-control-allow-origin" not in answer.headers


def test_without_listed_websites_no_page_reads(tmp_path):
    settings = settings_in(tmp_path)
    application = make_application(None, settings, speech_of(settings))
    with TestClient(application, base_url="http://localhost") as client:
        answer = client.get("/v1/models", headers={"origin": ORIGIN})
        assert answer.status_code == 200 and "access-control-allow-origin" not in answer.headers
        asked = {"origin": ORIGIN, "access-control-request-method": "POST"}
        assert client.options("/v1/audio/speech", headers=asked).status_code == 405
