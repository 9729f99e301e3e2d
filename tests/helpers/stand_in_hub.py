"""A stand-in for the hub on loopback: what it has, what it was asked for, and how it fails."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from huggingface_hub import constants

NAME = "owner/Dia-small"
COMMIT = "c" * 40


class Hub:
    """What the stand-in holds and was asked for.

    files: path below the repository NAME -> bytes; others: the same of other repositories by their
    names. status: path -> (status, X-Error-Code) to answer instead. `hold` stops an answer of GET
    half-way until it is set.
    """

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.others: dict[str, dict[str, bytes]] = {}
        self.status: dict[str, tuple[int, str]] = {}
        self.asked: list[tuple[str, str]] = []
        self.hold: threading.Event | None = None

    def upload(self, folder: Path, name: str = NAME) -> None:
        files = self.files if name == NAME else self.others.setdefault(name, {})
        files |= {
            path.relative_to(folder).as_posix(): path.read_bytes()
            for path in folder.rglob("*")
            if path.is_file()
        }

    def requests(self) -> list[tuple[str, str]]:
        """Without our question whether the hub is there, and the client's about its own user."""
        own = ("/", "/api/agent-harnesses")
        return [(method, path) for method, path in self.asked if path not in own]

    def fetched(self) -> list[str]:
        return [path.rpartition("/")[2] for method, path in self.requests() if method == "GET"]


def answer_as(hub: Hub) -> type[http.server.BaseHTTPRequestHandler]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            hub.asked.append((self.command, self.path))
            name, _, file = self.path[1:].partition("/resolve/main/")
            files = hub.files if name == NAME else hub.others.get(name, {})
            content = files.get(file)
            status, code = hub.status.get(file, (200, "") if content else (404, "EntryNotFound"))
            if name != NAME and name not in hub.others:
                status, code = (200, "") if self.path == "/" else (404, "RepoNotFound")
            body = content if status == 200 and content else b""
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("X-Repo-Commit", COMMIT)
            self.send_header("ETag", f'"{file.replace("/", "-")}-{len(body)}"')
            if code:
                self.send_header("X-Error-Code", code)
            self.end_headers()
            if self.command == "GET":
                self._send(body)

        def _send(self, body: bytes) -> None:
            half = len(body) // 2
            self.wfile.write(body[:half])
            if hub.hold is not None:
                self.wfile.flush()
                hub.hold.wait(timeout=30)
            self.wfile.write(body[half:])

        do_HEAD = do_GET

        def log_message(self, *_) -> None: ...

    return Handler


def point_at(monkeypatch, url: str) -> None:
    monkeypatch.setattr(constants, "ENDPOINT", url)
    template = url + "/{repo_id}/resolve/{revision}/{filename}"
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)


@contextmanager
def running_hub(stand_in: Hub) -> Iterator[str]:
    """The address at which `stand_in` answers."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), answer_as(stand_in))
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        if stand_in.hold is not None:
            stand_in.hold.set()
        server.shutdown()
        server.server_close()


def isolate(monkeypatch, cache: Path) -> None:
    """An empty cache, and nobody to ask."""
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(cache))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_PROGRESS_BARS", None)
    monkeypatch.setattr("dia_demo.hub.POLL_SECONDS", 0.005)
    monkeypatch.delenv("HF_TOKEN", raising=False)
    point_at(monkeypatch, "http://127.0.0.1:9")
