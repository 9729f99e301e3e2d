"""Attacks on what a visitor must not reach: files of the server, takes of others. None of them has
ever succeeded."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
from pathlib import Path

from dia_demo.services.people import new_key
from tests.security.client import HOST, App, attack
from tests.security.files import make_comparison

PASSWD = b"root:"


@attack("files of the server by 12 spellings of their path", expected="none is served")
def server_paths(app: App) -> tuple[bool, str]:
    names = [
        "/etc/passwd",
        "//etc/passwd",
        "/etc/./passwd",
        "%2fetc%2fpasswd",
        "../../../../etc/passwd",
        "..%2f..%2f..%2f..%2fetc%2fpasswd",
        "/proc/self/environ",
        "file:///etc/passwd",
        f"{app.folder}/takes/../../../etc/passwd",
        f"{app.folder}/app.log",
        f"{app.folder}/kept",
        "app.py",
    ]
    found = [app.get(f"/gradio_api/file={name}") for name in names]
    leaks = [name for name, (status, body) in zip(names, found, strict=True) if status == 200]
    return not leaks, f"{len(leaks)} served"


@attack("raw requests that climb out of the folders", expected="none is served")
def traversal(app: App) -> tuple[bool, str]:
    lines = ["/../../../etc/passwd", "/static/../../../../etc/passwd"]
    lines += ["/assets/..%2f..%2f..%2f..%2fetc/passwd", "/gradio_api/file/../../etc/passwd"]
    lines += ["/custom_component/../../etc/passwd", "/static/%2e%2e/%2e%2e/etc/passwd"]
    leaks = 0
    for line in lines:
        with socket.create_connection((HOST, app.port), timeout=20) as raw:
            raw.sendall(f"GET {line} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
            answer = b""
            while piece := raw.recv(65536):
                answer += piece
        leaks += PASSWD in answer
    return leaks == 0, f"{leaks} served"


@attack("a server's file as voice prompt and dropped file", expected="refused")
def foreign_files(app: App) -> tuple[bool, str]:
    file = {"path": "/etc/passwd", "meta": {"_type": "gradio.FileData"}}
    _, answer = app.run("drop", file)
    ended, _ = app.wait(app.call("[S1] Hi.", *[None] * 7, file))
    return PASSWD.decode() not in str(answer) and ended == "error", f"the call: {ended}"


@attack("6 spellings of this machine as a file's address", expected="the server asks for none")
def requests_to_itself(app: App) -> tuple[bool, str]:
    asked: list[bytes] = []
    with socket.create_server((HOST, 0)) as listener:
        port = listener.getsockname()[1]

        def listen() -> None:
            with contextlib.suppress(OSError):
                while True:
                    asked.append(listener.accept()[0].recv(100))

        threading.Thread(target=listen, daemon=True).start()
        for name in ("127.0.0.1", "localhost", "0.0.0.0", "127.1", "2130706433", "0x7f000001"):
            url = f"http://{name}:{port}/x.wav"
            file = {"path": url, "url": url, "meta": {"_type": "gradio.FileData"}}
            with contextlib.suppress(OSError):
                app.wait(app.call("[S1] Hi.", *[None] * 7, file))
    return not asked, f"{len(asked)} requests"


@attack("another's take by its name, with another key", expected="refused")
def takes_of_others(app: App) -> tuple[bool, str]:
    ann = new_key()
    app.press_generate("[S1] Hello there, my friend. [S2]", "ann", ann)
    _, body = app.serve("earlier", {"do": "list", "key": ann})
    (kept,) = json.loads(body)["takes"]
    found = []
    for do in ("hear", "delete"):
        _, body = app.serve("earlier", {"do": do, "key": new_key(), "id": kept["id"]})
        found.append("error" in json.loads(body) or json.loads(body) == {})
    _, body = app.serve("earlier", {"do": "list", "key": ann})
    held = all(found) and len(json.loads(body)["takes"]) == 1
    return held, "refused" if held else "answered"


@attack("an uploaded .html and .svg, opened in a browser", expected="come as attachments")
def uploaded_pages(app: App) -> tuple[bool, str]:
    found = []
    for name in ("a.html", "a.svg"):
        _, path = app.upload(name, b"<svg onload=alert(1)></svg>")
        status, _ = app.get(f"/gradio_api/file={path}")
        found.append(status != 200 or "attachment" in app.headers.get("content-disposition", ""))
    return all(found), f"{sum(found)} of 2"


@attack("120 malformed calls", expected="the app goes on")
def malformed_calls(app: App) -> tuple[bool, str]:
    bodies = [b"", b"{", b"[]", b"null", b'{"data":', b'{"data": 1}', b'{"data": []}', b"\xff" * 99]
    bodies += [json.dumps({"data": [one] * 13}).encode() for one in (None, [], {}, -1, 1e300, "x")]
    bodies.append(b'{"data": ' + b"[" * 20_000 + b"]" * 20_000 + b"}")
    names = ("call/generate", "run/check", "run/enter", "run/drop", "run/restore", "queue/join")
    names += ("component_server/", "run/describe")
    for name in names:
        for body in bodies:
            with contextlib.suppress(OSError):
                app.post(f"/gradio_api/{name}", body, timeout=20)
    ended, _ = app.wait(app.call("[S1] Hi. [S2]"))
    return ended == "complete", f"the next take: {ended}"


@attack(
    "kill -9 after a take was kept and a vote acknowledged",
    expected="both are there after the start",
)
def kill_after_vote(home: Path) -> tuple[bool, str]:
    shared = make_comparison(home / "shared")
    key, answers = new_key(), []
    question = {"key": key, "id": json.loads((shared / "plan.json").read_text())["id"]}
    for first in (True, False):
        app = App(home, DIA_COMPARE=str(shared))
        try:
            app.wait_until_up()
            if first:
                app.press_generate("[S1] Hello there, my friend. [S2]", "one", key)
                _, body = app.serve("ask", {"do": "look"} | question)
                pair = question | {"trial": json.loads(body)["trial"]["id"]}
                seconds = dict.fromkeys("AB", json.loads(body)["trial"]["needed"])
                for letter in seconds:
                    app.serve("ask", pair | {"do": "clip", "letter": letter})
                time.sleep(sum(seconds.values()) + 0.5)
                vote = {"do": "vote", "vote": "A", "heard": seconds, "covered": seconds}
                app.serve("ask", pair | vote)
            _, body = app.serve("earlier", {"do": "list", "key": key})
            takes = len(json.loads(body)["takes"])
            _, body = app.serve("ask", {"do": "look"} | question)
            answers.append((takes, json.loads(body)["voted"]))
        finally:
            app.process.kill()
            app.process.wait()
    return answers == [(1, 1), (1, 1)], f"takes and votes, before and after: {answers}"


ALONE = (kill_after_vote,)
QUICK = (
    server_paths,
    traversal,
    foreign_files,
    requests_to_itself,
    takes_of_others,
    uploaded_pages,
    malformed_calls,
)
