"""What a stranger may send in: nothing is fetched, read or kept but an upload at its own route."""

from __future__ import annotations

import json

import gradio as gr
import pytest
from gradio import processing_utils, route_utils
from starlette.testclient import TestClient

from dia_demo.server.application import make_application
from dia_demo.server.incoming import BODY_BYTES
from dia_demo.services.settings import Settings
from dia_demo.services.synthesis import Synthesis
from dia_demo.ui.gradio_internals import ONLY_UPLOADS, refuse_foreign_files
from dia_demo.ui.page import build_ui
from tests.helpers.speech import speech_of

MARK = {"_type": "gradio.FileData"}
URL = "https://example.org/voice.wav"


@pytest.fixture(scope="module")
def page() -> gr.Blocks:
    return build_ui(Synthesis(Settings()))


@pytest.fixture
def client(page, tmp_path, monkeypatch):
    """The page's server, which must not fetch anything."""

    async def fetched(*given, **named):
        raise AssertionError(f"fetched {given}")

    monkeypatch.setattr(processing_utils, "async_ssrf_protected_get", fetched)
    monkeypatch.setattr(route_utils.safehttpx, "async_validate_url", fetched)
    monkeypatch.setenv("GRADIO_TEMP_DIR", str(tmp_path / "gradio"))
    settings = Settings(takes_folder=tmp_path)
    with TestClient(make_application(page, settings, speech_of(settings))) as client:
        yield client


FOREIGN = [
    {"path": URL, "meta": MARK},
    {"path": "http://127.0.0.1:1/a.wav", "meta": MARK, "is_stream": True},
    {"path": URL},
    {"path": "/etc/passwd", "meta": MARK},
    {"path": "dia_demo/__init__.py", "meta": MARK},
    {"path": "file:///etc/passwd", "meta": MARK},
    {"path": "data:audio/wav;base64,UklGRg==", "meta": MARK},
    {"path": "\0", "meta": MARK},
    {"path": "a" * 9_000, "meta": MARK},
    {"path": 3, "meta": MARK},
    {"url": URL, "meta": MARK},
    {"path": URL, "meta": "gradio.FileData"},
    [{"path": URL, "meta": MARK}],
    {"value": {"files": [{"name": {"path": URL, "meta": MARK}}]}},
]


def posted(page, client, number: int, data: list) -> str:
    """Why the server refuses a call of an event of the page."""
    body = {"fn_index": number, "data": data, "session_hash": "x"}
    answer = client.post("/gradio_api/run/predict", json=body)
    assert answer.status_code == 500, page.fns[number].name
    return answer.json()["error"]


def test_every_argument_of_every_event_refuses_what_was_not_uploaded_here(page, client, tmp_path):
    for number, event in page.fns.items():
        for place, component in enumerate(event.inputs if event.fn else ()):
            if not component.stateful:
                data = [None] * len(event.inputs)
                data[place] = FOREIGN[0]
                assert posted(page, client, number, data).startswith(ONLY_UPLOADS)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


@pytest.mark.parametrize("value", FOREIGN, ids=lambda value: str(value)[:40])
def test_a_file_is_refused_in_every_spelling(page, client, tmp_path, value):
    for number, event in page.fns.items():
        if any(isinstance(one, gr.Audio | gr.File | gr.UploadButton) for one in event.inputs):
            data = [value] * len(event.inputs)
            assert posted(page, client, number, data).startswith(ONLY_UPLOADS)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


@pytest.mark.parametrize("route", ["call/generate", "call/v2/generate"])
def test_a_program_is_told_why(client, route):
    file = {"path": URL, "meta": MARK}
    body: dict = {"script": "[S1] Hi.", "voice_prompt": file}
    if route == "call/generate":
        body = {"data": ["[S1] Hi.", *[None] * 7, file]}
    client.get("/gradio_api/startup-events")
    event = client.post(f"/gradio_api/{route}", json=body).json()["event_id"]
    lines = client.get(f"/gradio_api/call/generate/{event}").text.splitlines()
    assert lines[0] == "event: error"
    assert json.loads(lines[1].removeprefix("data: "))["error"].startswith(ONLY_UPLOADS)


def test_an_address_among_plain_values_is_refused_with_a_sentence(client):
    """gr.Audio and gr.File take no plain text, however it looks."""
    body = {"data": [URL], "session_hash": "x"}
    answer = client.post("/gradio_api/run/drop", json=body)
    assert answer.json()["error"]


@pytest.mark.parametrize("path", ["file=", "file/", "FILE=", "proxy="])
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_the_server_passes_no_address_on(client, path, method):
    answer = client.request(method, f"/gradio_api/{path}{URL}")
    assert answer.status_code == 403


def test_what_was_uploaded_here_is_accepted(client):
    files = {"files": ("a.txt", b"some bytes")}
    path = client.post("/gradio_api/upload", files=files).json()[0]
    refuse_foreign_files([{"path": path, "url": URL, "meta": MARK}])
    with pytest.raises(gr.Error):
        refuse_foreign_files([{"path": f"{path}/../../../x", "meta": MARK}])


def test_a_large_body_is_read_to_its_end_and_dropped(client, tmp_path):
    body = {"data": ["data:audio/wav;base64," + "A" * BODY_BYTES]}
    answer = client.post("/gradio_api/call/generate", json=body)
    assert answer.status_code == 413 and "/gradio_api/upload" in answer.text
    pieces = (b"A" * 2**16 for _ in range(40))
    kind = {"Content-Type": "application/json"}
    answer = client.post("/gradio_api/queue/join", content=pieces, headers=kind)
    assert answer.status_code == 413
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_a_login_is_a_form(client):
    form = {"username": (None, "a"), "password": (None, "b")}
    answer = client.post("/login", files=form, follow_redirects=False)
    assert answer.status_code == 302, "to the page, which asks for no login here"
