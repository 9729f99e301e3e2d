"""A stand-in for the hub on loopback: what it has, what it was asked for, and how it fails.

Also a program, for an app in a process of its own: see `tests/browser/test_download.py`.
"""

from __future__ import annotations

import hashlib
import http.server
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from huggingface_hub import constants

NAME = "owner/Dia-small"
COMMIT = "c" * 40
LARGE = (".safetensors", ".pth", ".bin")
# Of a model's weights, where a test needs nothing but bytes.
CONTENT = bytes(range(256)) * 1171


class Hub:
    """What the stand-in holds and was asked for.

    files: path below the repository NAME -> bytes; others: the same of other repositories by their
    names. status: path -> (status, X-Error-Code) to answer instead, times: how often, by path (for
    ever where it is not named); retry_after: seconds that such an answer asks to wait. damaged:
    path -> the bytes that arrive in place of those that the hub describes. cuts: path -> after how
    many bytes the next answers to GET end early, each once. `hold` stops an answer of GET half-way
    until it is set; rate: bytes a second of every answer.
    storage: large files are redirected there. ignores_ranges: every answer is the whole file.
    url: the address, once it is running.
    """

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.others: dict[str, dict[str, bytes]] = {}
        self.status: dict[str, tuple[int, str]] = {}
        self.times: dict[str, int] = {}
        self.retry_after: int | None = None
        self.damaged: dict[str, bytes] = {}
        self.cuts: dict[str, list[int]] = {}
        self.asked: list[tuple[str, str]] = []
        # Of every GET: the file, and from which byte.
        self.ranges: list[tuple[str, int]] = []
        self.tokens: list[tuple[str, str | None]] = []
        self.hold: threading.Event | None = None
        self.rate: int | None = None
        self.storage = ""
        self.url = ""
        self.ignores_ranges = False

    def upload(self, folder: Path, name: str = NAME) -> None:
        files = self.files if name == NAME else self.others.setdefault(name, {})
        files |= {
            path.relative_to(folder).as_posix(): path.read_bytes()
            for path in folder.rglob("*")
            if path.is_file()
        }

    def requests(self) -> list[tuple[str, str]]:
        """Without the client's about its own user."""
        return [(method, path) for method, path in self.asked if path != "/api/agent-harnesses"]

    def fetched_files(self) -> list[str]:
        return [path.rpartition("/")[2] for method, path in self.requests() if method == "GET"]

    def starts(self, file: str) -> list[int]:
        """From which byte each GET asked for a file."""
        return [start for name, start in self.ranges if name == file]


def etag_of(file: str, content: bytes) -> str:
    """As the hub's: SHA-256 of large files, git's checksum of others."""
    if file.endswith(LARGE):
        return hashlib.sha256(content).hexdigest()
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


def answer_as(hub: Hub) -> type[http.server.BaseHTTPRequestHandler]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = re.sub("^http://[^/]+", "", self.path)  # As a proxy is asked.
            hub.asked.append((self.command, path))
            hub.tokens.append((path, self.headers.get("Authorization")))
            name, revision, file = self._parts(path)
            files = hub.files if name == NAME else hub.others.get(name, {})
            content = files.get(file)
            status, code = 200, ""
            if content is None:
                status, code = 404, "EntryNotFound"
            if revision not in ("main", COMMIT):
                status, code = 404, "RevisionNotFound"
            if name != NAME and name not in hub.others:
                status, code = 404, "RepoNotFound"
            if file in hub.status and hub.times.get(file, 1):
                status, code = hub.status[file]
                if file in hub.times:
                    hub.times[file] -= 1
            self._answer(path, file, status, code, content or b"")

        def _parts(self, path: str) -> tuple[str, str, str]:
            path = path.removeprefix("/storage")
            name, _, rest = path[1:].partition("/resolve/")
            revision, _, file = rest.partition("/")
            return name, revision, file

        def _answer(self, path: str, file: str, status: int, code: str, content: bytes) -> None:
            away = hub.storage and file.endswith(LARGE) and not path.startswith("/storage")
            if status == 200 and away:
                self.send_response(302)
                self.send_header("Location", f"{hub.storage}/storage{path}")
                self.send_header("X-Linked-Size", str(len(content)))
                self.send_header("X-Linked-Etag", f'"{etag_of(file, content)}"')
                self.send_header("X-Repo-Commit", COMMIT)
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            etag = etag_of(file, content)
            start, body = 0, hub.damaged.get(file, content) if status == 200 else b""
            if status == 200 and (asked := re.fullmatch(r"bytes=(\d+)-", self._range())):
                start, whole = int(asked[1]), len(body)
                status, body = 206, body[start:]
            self.send_response(status)
            if status == 206:
                self.send_header("Content-Range", f"bytes {start}-{whole - 1}/{whole}")
            self.send_header("Content-Length", str(len(body)))
            self.send_header("X-Repo-Commit", COMMIT)
            self.send_header("ETag", f'"{etag}"')
            if code:
                self.send_header("X-Error-Code", code)
            if hub.retry_after is not None and status == 429:
                self.send_header("Retry-After", str(hub.retry_after))
            self.end_headers()
            if self.command == "GET":
                hub.ranges.append((file, start))
                with suppress(ConnectionError):  # The client cancelled, or was killed.
                    self._send(file, body)

        def _range(self) -> str:
            return "" if hub.ignores_ranges else self.headers.get("Range", "")

        def _send(self, file: str, body: bytes) -> None:
            if hub.cuts.get(file):
                self.wfile.write(body[: hub.cuts[file].pop(0)])
                self.close_connection = True
                return
            start = 0
            while (rate := hub.rate) is not None and start < len(body):
                piece = max(1, rate // 20)
                self.wfile.write(body[start : start + piece])
                start += piece
                time.sleep(piece / rate)
            body = body[start:]
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
    stand_in.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield stand_in.url
    finally:
        if stand_in.hold is not None:
            stand_in.hold.set()
        server.shutdown()
        server.server_close()


def isolate(monkeypatch, cache: Path) -> None:
    """An empty cache, nobody to ask, and no patience with a hub in trouble."""
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(cache))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_PROGRESS_BARS", None)
    monkeypatch.setattr("dia_demo.hub.fetch.POLL_SECONDS", 0.005)
    monkeypatch.setattr("dia_demo.hub.transfer.FIRST_WAIT", 0.001)
    monkeypatch.delenv("HF_TOKEN", raising=False)
    point_at(monkeypatch, "http://127.0.0.1:9")


@contextmanager
def hub_of_this_process(monkeypatch, cache: Path) -> Iterator[Hub]:
    """A stand-in without files that this process asks, and an empty cache."""
    isolate(monkeypatch, cache)
    stand_in = Hub()
    with running_hub(stand_in) as url:
        point_at(monkeypatch, url)
        yield stand_in
