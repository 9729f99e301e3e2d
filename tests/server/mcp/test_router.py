"""The route of the tools behind the gate: tokens, other websites, clients that leave, files."""

from __future__ import annotations

import http.client
import json
import logging
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from fastapi import FastAPI
from starlette.middleware import Middleware
from starlette.testclient import TestClient

pytest.importorskip("mcp", reason="pip install -r requirements-mcp.txt")

import uvicorn  # noqa: E402

from dia_demo.engine.events import Cancelled  # noqa: E402
from dia_demo.errors import BusyError  # noqa: E402
from dia_demo.server.address import LOCAL, Address  # noqa: E402
from dia_demo.server.gate import Gate  # noqa: E402
from dia_demo.server.mcp.files import GONE, ToolFiles  # noqa: E402
from dia_demo.server.mcp.router import FAILED, mcp_router  # noqa: E402
from dia_demo.server.tokens import NO_TOKEN, Access  # noqa: E402
from dia_demo.services.settings import Settings  # noqa: E402

TOKEN = "a-token-of-this-server-0123456789"
ACCEPTED = {"Accept": "application/json, text/event-stream"}


def make_application(synthesis, settings: Settings, address: Address = LOCAL) -> FastAPI:
    application = FastAPI(middleware=[Middleware(Gate, stop=None, origins=settings.origins)])
    application.state.access = Access(settings, address)
    application.include_router(mcp_router(synthesis))
    return application


@contextmanager
def client_of(synthesis, address: Address = LOCAL, **given: Any) -> Iterator[TestClient]:
    settings = Settings(**given)
    with TestClient(make_application(synthesis, settings, address)) as client:
        client.headers |= ACCEPTED
        yield client


def body_of(method: str, **params: Any) -> dict:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


def call(tool: str, **arguments: Any) -> dict:
    return body_of("tools/call", name=tool, arguments=arguments)


def result_of(answer) -> dict:
    """The result in a stream of events."""
    (data,) = [line[6:] for line in answer.text.splitlines() if line.startswith("data: {")]
    return json.loads(data)["result"]


# Who may use it


def test_the_tools_need_a_token_where_the_other_routes_do(synthesis):
    with client_of(synthesis, tokens=(TOKEN,)) as client:
        refused = client.post("/mcp", json=body_of("tools/list"))
        assert refused.status_code == 401 and refused.text == NO_TOKEN
        assert refused.headers["www-authenticate"] == "Bearer"
        client.headers["Authorization"] = f"Bearer {TOKEN}"
        assert len(result_of(client.post("/mcp", json=body_of("tools/list")))["tools"]) == 3
    with client_of(synthesis, Address("0.0.0.0")) as client:
        assert client.post("/mcp", json=body_of("tools/list")).status_code == 401


def test_other_websites_cannot_call_tools(synthesis):
    with client_of(synthesis) as client:
        for path in ("/mcp", "/mcp/"):
            foreign = {"Origin": "https://evil.example"}
            assert client.post(path, json=call("list_voices"), headers=foreign).status_code == 403
            assert client.post(path, json=call("list_voices")).status_code == 200


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT"])
def test_only_post_is_answered(synthesis, method):
    with client_of(synthesis) as client:
        answer = client.request(method, "/mcp")
        assert answer.status_code == 405 and answer.headers["allow"] == "POST"


def test_the_logs_of_the_program_stay_as_they_are(synthesis):
    before = logging.getLogger().handlers[:]
    mcp_router(synthesis)
    assert logging.getLogger().handlers == before


# What goes wrong


def test_a_full_queue_is_told_in_its_sentence(synthesis, monkeypatch):
    def full(*_, **__):
        raise BusyError("The queue is full. Try again in a moment.", 5)
        yield

    monkeypatch.setattr(synthesis, "stream_together", full)
    with client_of(synthesis) as client:
        result = result_of(client.post("/mcp", json=call("speak", text="Hello.")))
    assert result["isError"]
    assert result["content"][0]["text"] == "The queue is full. Try again in a moment."


@pytest.mark.parametrize("opening", ["[", '{"a":'])
def test_json_that_is_nested_too_deeply_is_refused(synthesis, opening, caplog):
    with client_of(synthesis) as client:
        headers = {"Content-Type": "application/json"}
        answer = client.post("/mcp", content=200_000 * opening, headers=headers)
        assert answer.status_code == 400 and "nested too deeply" in answer.text
        assert client.post("/mcp", json=body_of("tools/list")).status_code == 200
    assert "Traceback" not in caplog.text


def test_a_bug_is_logged_and_not_shown(synthesis, monkeypatch, caplog):
    def broken(*_, **__):
        raise KeyError("/secret/path")
        yield

    monkeypatch.setattr(synthesis, "stream_together", broken)
    with client_of(synthesis) as client:
        result = result_of(client.post("/mcp", json=call("speak", text="Hello.")))
    assert result["isError"] and result["content"][0]["text"] == FAILED
    assert "/secret/path" in caplog.text


# A client that leaves


@contextmanager
def served(application: FastAPI) -> Iterator[int]:
    """The port at which uvicorn serves an application."""
    listening = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(application, log_level="warning"))
    thread = threading.Thread(target=server.run, args=([[listening]]), daemon=True)
    thread.start()
    try:
        yield listening.getsockname()[1]
    finally:
        server.should_exit = True
        thread.join(timeout=120)


@pytest.mark.parametrize("tool", ["speak", "dialogue"])
def test_a_client_that_disconnects_stops_its_call(synthesis, monkeypatch, tool):
    started, stopped = threading.Event(), threading.Event()

    def waiting(requests, cancel, *_, **__):
        started.set()
        assert cancel.wait(60), "nobody stopped it"
        stopped.set()
        yield from (Cancelled(None, row) for row in range(len(requests)))

    monkeypatch.setattr(synthesis, "stream_together", waiting)
    said = {"speak": {"text": "Hello there."}, "dialogue": {"script": "[S1] Hello there."}}[tool]
    with served(make_application(synthesis, Settings())) as port:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=180)
        body = json.dumps(call(tool, **said))
        connection.request("POST", "/mcp", body, ACCEPTED | {"Content-Type": "application/json"})
        assert started.wait(60)
        connection.close()
        assert stopped.wait(60)


# Files


def test_only_files_of_the_tools_are_handed_out(synthesis):
    home = synthesis.settings.served_folder
    folder = ToolFiles(home).new_folder()
    (folder / "a.mp3").write_bytes(b"sound")
    (home / "other").mkdir(exist_ok=True)
    (home / "other" / "a.mp3").write_bytes(b"of somebody else")
    name = folder.name.removeprefix("mcp-")
    with client_of(synthesis, tokens=(TOKEN,)) as client:
        answer = client.get(f"/mcp/files/{name}/a.mp3")
        assert answer.content == b"sound" and answer.headers["content-type"] == "audio/mpeg"
        for path in (
            f"{name}/b.mp3", f"{name}/..", f"{name}/%2e%2e", f"{name}/..%2fother%2fa.mp3",
            f"{name}/{'x' * 5000}", f"{name}/%00", "other/a.mp3", f"../mcp-{name}/a.mp3",
            f"{'0' * 40}/a.mp3",
        ):  # fmt: skip
            answer = client.get(f"/mcp/files/{path}")
            assert answer.status_code == 404, path
        assert client.get(f"/mcp/files/{name}/b.mp3").text == GONE


def test_an_address_is_that_of_the_proxy(synthesis, monkeypatch):
    headers = {"Host": "127.0.0.1:7860", "X-Forwarded-Host": "dia.example"}
    with client_of(synthesis) as client:
        said = call("speak", text="Hello there.")
        result = result_of(client.post("/mcp", json=said, headers=headers))
    assert result["structuredContent"]["url"].startswith("http://dia.example/mcp/files/")
