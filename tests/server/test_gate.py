"""What stands before the server: other websites, silent connections, programs that hang up."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest

from dia_demo.machine import system
from dia_demo.server import gate
from dia_demo.server.gate import Gate, watch_connections
from tests.helpers.asynchronous import run_async

OWN = "http://127.0.0.1:7860"


def request(method="POST", path="/gradio_api/upload", query=b"", **headers) -> dict:
    given = {"host": "127.0.0.1:7860"} | {k.replace("_", "-"): v for k, v in headers.items()}
    return {
        "type": "http",
        "method": method,
        "path": path,
        "query_string": query,
        "headers": [(name.encode(), value.encode()) for name, value in given.items()],
    }


def answered(scope: dict, messages: list[dict], app=None, origins=(), stopped=None) -> int | None:
    """The status with which the gate, or the app behind it, answers. stopped: gets the sessions of
    those that hung up."""
    sent: list[dict] = []
    waiting = iter(messages)

    async def receive() -> dict:
        for message in waiting:
            return message
        await asyncio.sleep(10)
        raise AssertionError("the gate waits although nothing more is sent")

    async def send(message: dict) -> None:
        sent.append(message)

    async def reads_all(scope, receive, send) -> None:
        while (await receive()).get("more_body"):
            pass
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    stop = [].append if stopped is None else stopped.append
    run_async(Gate(app or reads_all, stop, origins)(scope, receive, send))
    return next((one["status"] for one in sent if one["type"] == "http.response.start"), None)


WHOLE = [{"type": "http.request", "body": b"", "more_body": False}]


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),  # A program, which sends no Origin.
        ({"origin": OWN}, 200),
        ({"origin": "http://localhost:7860"}, 200),
        ({"origin": "https://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "http://127.0.0.1:3000"}, 403),  # Another app on this machine.
        ({"origin": "http://127.0.0.1.evil.example:7860"}, 403),
        ({"origin": "http://[bad"}, 403),
        ({"origin": "https://evil.example", "sec_fetch_site": "cross-site"}, 403),
        # Behind a proxy: one that passes its name on, and one that does not.
        ({"origin": "https://dia.example", "x_forwarded_host": "dia.example"}, 200),
        ({"origin": "https://dia.example", "sec_fetch_site": "same-origin"}, 200),
        ({"origin": "https://friend.example"}, 200),
    ],
)
def test_other_websites_are_refused(headers, status):
    assert answered(request(**headers), WHOLE, origins=("https://friend.example",)) == status


@pytest.mark.parametrize(
    ("headers", "accepted"), [({}, True), ({"origin": OWN}, True), ({"origin": "null"}, False)]
)
def test_other_websites_open_no_websocket(headers, accepted):
    """A browser lets every page open one to any server, and read what it answers."""
    scope = request("GET", "/v1/audio/speech/stream", **headers) | {"type": "websocket"}
    del scope["method"]
    sent, reached = [], []

    async def app(scope, receive, send) -> None:
        reached.append(scope)

    async def send(message: dict) -> None:
        sent.append(message)

    run_async(Gate(app, [].append)(scope, None, send))
    assert reached == ([scope] if accepted else [])
    assert sent == ([] if accepted else [{"type": "websocket.close", "code": 1008}])


def test_reading_is_not_refused():
    """A browser shows the answer to its own website alone."""
    assert answered(request("GET", origin="https://evil.example"), WHOLE) == 200


def test_a_request_that_does_not_go_on_is_given_up(monkeypatch):
    monkeypatch.setattr(gate, "SILENT_SECONDS", 0.05)
    begun = [{"type": "http.request", "body": b"half", "more_body": True}]
    assert answered(request(), begun) == 408


def streams(seen: list):
    """An app that tells events until its reader is gone."""

    async def app(scope, receive, send) -> None:
        await receive()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        seen.append((await receive())["type"])

    return app


@pytest.mark.parametrize(
    ("path", "query", "session"),
    [
        ("/gradio_api/call/generate/abc", b"", "abc"),
        ("/sub/gradio_api/call/generate/abc/", b"", "abc"),
        ("/gradio_api/queue/data", b"session_hash=xyz", "xyz"),
        ("/gradio_api/queue/data", b"", None),
        ("/config", b"", None),
    ],
)
def test_who_hangs_up_stops_the_take(path, query, session):
    stopped, seen = [], []
    messages = [*WHOLE, {"type": "http.disconnect"}]
    answered(request("GET", path, query), messages, streams(seen), stopped=stopped)
    assert seen == ["http.disconnect"]
    assert stopped == ([session] if session else [])


def test_who_has_the_whole_answer_stops_nothing():
    stopped: list[str] = []

    async def app(scope, receive, send) -> None:
        await receive()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"all"})

    answered(request("GET", "/gradio_api/call/generate/abc"), WHOLE, app, stopped=stopped)
    assert stopped == []


def connection(busy: bool):
    cycle = SimpleNamespace(response_complete=False) if busy else None
    closed: list[bool] = []
    transport = SimpleNamespace(close=lambda: closed.append(True))
    return SimpleNamespace(cycle=cycle, transport=transport, closed=closed)


def watched(connections: list, looks: int, monkeypatch) -> list[bool]:
    """Which of them are closed after so many looks."""
    monkeypatch.setattr(gate, "WATCH_SECONDS", 0.001)
    left = iter(range(looks))

    async def sleep(seconds: float) -> None:
        if next(left, None) is None:
            raise TimeoutError

    monkeypatch.setattr(gate, "asyncio", SimpleNamespace(sleep=sleep))
    named = [type("Connection", (), vars(one))() for one in connections]
    with pytest.raises(TimeoutError):
        run_async(watch_connections(named))
    return [bool(one.closed) for one in connections]


def test_a_connection_that_asks_for_nothing_is_closed(monkeypatch):
    monkeypatch.setattr(gate, "IDLE_SECONDS", 0.005)
    assert watched([connection(busy=False), connection(busy=True)], 20, monkeypatch) == [
        True,
        False,
    ]


def test_a_websocket_is_never_idle(monkeypatch):
    monkeypatch.setattr(gate, "IDLE_SECONDS", 0.0)
    socket = SimpleNamespace(transport=connection(busy=False).transport, closed=[])
    assert not hasattr(socket, "cycle")
    assert watched([socket, connection(busy=False)], 5, monkeypatch) == [False, True]


def test_beyond_what_the_process_can_hold_the_oldest_idle_ones_go(monkeypatch):
    monkeypatch.setattr(gate, "descriptor_limit", lambda: gate.SPARE_DESCRIPTORS + 3)
    found = watched([connection(busy=n == 0) for n in range(5)], 5, monkeypatch)
    assert not found[0] and sum(found) == 2


def test_the_descriptors_that_are_granted_are_used():
    import resource

    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (512, before[1]))
        system.raise_descriptor_limit()
        assert system.descriptor_limit() == min(system.MOST_DESCRIPTORS, before[1])
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
