"""Attacks by the routes for programs: bodies, tokens, other websites, clients that do not read."""

from __future__ import annotations

import io
import json
import re
import socket
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import soundfile

from tests.security.client import HOST, App, attack

SPEECH = "/v1/audio/speech"
ROUTES = (
    SPEECH,
    "/v1/audio/speech/batch",
    "/v1/dialogue",
    "/dev/dialogue",
    "/dev/captioned_speech",
)
LONG = "Hello there, my good old friend. " * 100
MOST_SECONDS = 20.0
OTHER_SITE = "https://evil.example"
TOKEN = "a-token-that-nobody-may-see"


def raw(method: str, path: str, body: bytes = b"", **headers: str) -> bytes:
    """A request as it is sent."""
    named = {"Host": HOST, "Content-Length": str(len(body)), "Content-Type": "application/json"}
    named |= {name.replace("_", "-"): value for name, value in headers.items()}
    lines = "".join(f"{name}: {value}\r\n" for name, value in named.items())
    return f"{method} {path} HTTP/1.1\r\n{lines}\r\n".encode() + body


def rows(app: App) -> float:
    """How many rows are being generated, or wait."""
    text = app.get("/metrics")[1].decode()
    return sum(
        float(value) for value in re.findall(r"^dia_(?:rows|queue_length) (\S+)", text, re.M)
    )


def happens(condition: Callable[[], bool]) -> bool:
    """Whether it does within MOST_SECONDS."""
    end = time.monotonic() + MOST_SECONDS
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.1)
    return False


def hostile_bodies() -> list[bytes]:
    """Bodies that JSON's readers dislike, or take for something."""
    values = (
        "NaN", "Infinity", "-1", "1e999", "9" * 5000, "null", '""', "[]", "{}", "true",
        '"\\ud800"', '"\\u0000"', "[" * 50_000, '{"a":' * 50_000, "[" * 500 + "]" * 500,
    )  # fmt: skip
    fields = (
        "input",
        "voice",
        "speed",
        "seed",
        "max_tokens",
        "resume_from",
        "model",
        "turns",
        "items",
    )
    bodies = [value.encode() for value in values]
    for field in fields:
        for value in values:
            body = f'"{field}": {value}'
            rest = '"input": "Hi.", ' if field != "input" else ""
            bodies.append(f"{{{rest}{body}}}".encode())
    return [*bodies, b"\xff\xfe", b"", b'{"input": "Hi."', b'{"input": "Hi.", "input": []}']


@attack("140 hostile bodies to each route for programs", expected="one sentence each, no traceback")
def hostile_json(app: App) -> tuple[bool, str]:
    odd = []
    for route in ROUTES:
        for body in hostile_bodies():
            status, answer = app.post(route, body)
            if status == 200:
                continue
            message = json.loads(answer)["error"]["message"]
            if not 400 <= status < 500 or "Traceback" in message or not message:
                odd.append((route, body[:40], status))
    traceback = "Traceback" in app.log.read_text()
    return not odd and not traceback, f"{len(odd)} other answers {odd[:2]}"


@attack("a body of 2 MB to a route for programs", expected="413 in the shape that programs read")
def large_body(app: App) -> tuple[bool, str]:
    status, answer = app.post(SPEECH, {"input": "a" * 2 * 2**20})
    kind = json.loads(answer)["error"]["type"]
    return status == 413 and kind == "invalid_request_error", f"{status}, {kind}"


@attack("a form to a route for programs", expected="415, nothing is kept")
def form(app: App) -> tuple[bool, str]:
    body = b'--x\r\nContent-Disposition: form-data; name="f"; filename="f"\r\n\r\nx\r\n--x--\r\n'
    status, _ = app.post(SPEECH, body, Content_Type="multipart/form-data; boundary=x")
    return status == 415, f"{status}"


def silence(hours: float) -> bytes:
    """A FLAC of some hundred kilobytes that is hours long."""
    file = io.BytesIO()
    with soundfile.SoundFile(file, "w", 8000, 1, "PCM_16", format="FLAC") as sound:
        for _ in range(round(60 * hours)):
            sound.write(np.zeros(60 * 8000, np.int16))
    return file.getvalue()


def voice_form(recording: bytes) -> bytes:
    """A voice to keep, as a form whose parts end with "edge"."""
    fields = {"name": "a bomb", "consent": "true", "ref_text": "[S1] Hello."}
    part = '--edge\r\nContent-Disposition: form-data; name="{}"{}\r\n\r\n'
    texts = "".join(f"{part.format(name, '')}{value}\r\n" for name, value in fields.items())
    head = texts + part.format("audio_sample", '; filename="voice.flac"')
    return head.encode() + recording + b"\r\n--edge--\r\n"


@attack(
    "10 hours of silence in a small FLAC, and a WAV of 4 GB in words", expected="400, no memory"
)
def voice_bombs(app: App) -> tuple[bool, str]:
    huge = b"RIFF\xff\xff\xff\xffWAVEfmt \x10\0\0\0\x01\0\x01\0\x40\x1f\0\0\x80\x3e\0\0\x02\0\x10\0"
    bombs = (silence(10), huge + b"data\xff\xff\xff\xff" + bytes(1000))
    kind, before, found = "multipart/form-data; boundary=edge", app.memory_bytes(), []
    for bomb in bombs:
        found.append(app.post("/v1/audio/voices", voice_form(bomb), Content_Type=kind)[0])
    grown = (app.memory_bytes() - before) / 1e6
    return set(found) == {400} and grown < 100, f"{found}, {grown:+.0f} MB"


@attack("8 clients that read nothing of a long answer", expected="no memory; others are served")
def slow_readers(app: App) -> tuple[bool, str]:
    body = json.dumps({"input": LONG, "response_format": "wav"}).encode()
    before, opened = app.memory_bytes(), []
    try:
        for _ in range(8):
            opened.append(socket.create_connection((HOST, app.port)))
            opened[-1].sendall(raw("POST", SPEECH, body))
        begun = happens(lambda: rows(app) > 0)
        status, _ = app.post(SPEECH, {"input": "Hi.", "response_format": "pcm"})
        grown = (app.memory_bytes() - before) / 1e6
    finally:
        for one in opened:
            one.close()
    stopped = happens(lambda: rows(app) == 0)
    said = f"{grown:+.0f} MB, status {status}, {'stopped' if stopped else 'they go on'}"
    return begun and stopped and status == 200 and grown < 100, said


@attack("programs hang up on each route", expected="their takes stop")
def hang_up(app: App) -> tuple[bool, str]:
    turns = [{"text": LONG}]
    bodies = {
        SPEECH: {"input": LONG},
        "/v1/dialogue": {"turns": turns},
        "/dev/captioned_speech": {"input": LONG},
        "/v1/audio/speech/batch": {"items": [{"input": LONG}] * 4},
    }
    going_on = []
    for route, body in bodies.items():
        with socket.create_connection((HOST, app.port)) as caller:
            caller.sendall(raw("POST", route, json.dumps(body).encode()))
            begun = happens(lambda: rows(app) > 0)
        if not begun or not happens(lambda: rows(app) == 0):
            going_on.append(route)
    return not going_on, f"going on: {going_on}"


@attack("another website asks for speech, and opens a WebSocket", expected="403")
def other_website(app: App) -> tuple[bool, str]:
    status, _ = app.post(SPEECH, {"input": "Hi."}, Origin=OTHER_SITE)
    with socket.create_connection((HOST, app.port), timeout=MOST_SECONDS) as caller:
        upgrade = {"Upgrade": "websocket", "Connection": "Upgrade", "Origin": OTHER_SITE}
        key = {"Sec_WebSocket_Key": "dGhlIHNhbXBsZSBub25jZQ==", "Sec_WebSocket_Version": "13"}
        caller.sendall(raw("GET", f"{SPEECH}/stream", **upgrade, **key))
        line = caller.recv(100).split(b"\r\n")[0].decode()
    return status == 403 and " 403 " in line, f"{status}, {line}"


@attack("wrong tokens, and what is said of the right one", expected="401; it is in no log")
def tokens(home: Path) -> tuple[bool, str]:
    app = App(home, DIA_TOKENS=TOKEN)
    try:
        app.wait_until_up()
        wrong = {}, {"Authorization": f"Bearer {TOKEN}x"}, {"Authorization": TOKEN}
        closed = [app.post(route, {}, **given)[0] for route in ROUTES for given in wrong]
        closed.append(app.get("/metrics")[0])
        right = {"Authorization": f"Bearer {TOKEN}"}
        status, _ = app.post(SPEECH, {"input": "Hi.", "response_format": "wav"}, **right)
        shown = TOKEN.encode() in app.get("/metrics", **right)[1]
    finally:
        app.end()
    kept = [
        path for path in home.rglob("*") if path.is_file() and TOKEN.encode() in path.read_bytes()
    ]
    held = set(closed) == {401} and status == 200 and not shown and not kept
    return held, f"{set(closed)}, then {status}, found in {len(kept)} files"


QUICK = (hostile_json, large_body, form, voice_bombs, slow_readers, hang_up, other_website)
ALONE = (tokens,)
