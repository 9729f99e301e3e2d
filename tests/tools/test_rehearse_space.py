"""The rehearsal of a Space: its parts, and the whole in its short form."""

from __future__ import annotations

import http.server
import select
import subprocess
import sys
import threading
from contextlib import contextmanager

import httpx
import pytest

from dia_demo.files import ROOT
from tools.app_process import HOST, free_port
from tools.rehearsal.isolation import why_impossible
from tools.rehearsal.proxy import running_proxy
from tools.rehearsal.space import downloaded_bytes
from tools.rehearsal.table import Mismatch, Table

PREFIX = "/spaces/dia"
WAIT = 30


@pytest.mark.long
def test_no_step_of_the_rehearsal_fails():
    if reason := why_impossible():
        pytest.skip(reason)
    command = [sys.executable, "-m", "tools.rehearse_space", "--short"]
    out = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=900)
    assert out.returncode == 0, out.stdout + out.stderr


# The proxy


class Upstream:
    """What an app behind the proxy was asked, and an answer in two pieces: the second comes when
    `go_on` is set. gone: set when the client of that answer has left."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, dict, bytes]] = []
        self.go_on, self.gone = threading.Event(), threading.Event()


@contextmanager
def behind_proxy():
    """Yields an Upstream, and the address of the proxy in front of it."""
    upstream = Upstream()

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            headers = {name.lower(): text for name, text in self.headers.items()}
            upstream.asked.append((self.command, self.path, headers, body))
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Connection", "close")
            self.end_headers()
            self.wfile.write(b"first")
            self.wfile.flush()
            while not upstream.go_on.wait(0.05):
                if select.select([self.connection], [], [], 0)[0]:  # The client has left.
                    upstream.gone.set()
                    return
            self.wfile.write(b" second")

        do_GET = do_POST

        def log_message(self, *_) -> None: ...

    server = http.server.ThreadingHTTPServer((HOST, 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    target = f"http://{HOST}:{server.server_port}"
    try:
        with running_proxy(target, free_port(), PREFIX) as url:
            yield upstream, url
    finally:
        upstream.go_on.set()
        server.shutdown()
        server.server_close()


def test_a_piece_passes_before_the_next_is_there():
    with behind_proxy() as (upstream, url):
        with httpx.stream("GET", f"{url}events", timeout=WAIT) as answer:
            pieces = answer.iter_raw()
            assert next(pieces) == b"first"
            upstream.go_on.set()
            assert b"".join(pieces) == b" second"


def test_a_visitor_who_leaves_is_gone_for_the_app():
    with behind_proxy() as (upstream, url):
        with httpx.stream("GET", f"{url}events", timeout=WAIT) as answer:
            assert next(answer.iter_raw()) == b"first"
        assert upstream.gone.wait(WAIT)


def test_the_app_is_asked_below_its_root():
    with behind_proxy() as (upstream, url):
        upstream.go_on.set()
        httpx.post(f"{url}file=a%2Fb?x=%20y", content=b"body", timeout=WAIT)
    method, path, headers, body = upstream.asked[0]
    assert (method, path, body) == ("POST", "/file=a%2Fb?x=%20y", b"body")
    assert url == f"http://{headers['x-forwarded-host']}{PREFIX}/"


def test_nothing_is_served_outside_the_path():
    with behind_proxy() as (upstream, url):
        assert httpx.get(url.replace(PREFIX, ""), timeout=WAIT).status_code == 404
        assert upstream.asked == []


# The build


def test_what_pip_fetches_is_counted_without_metadata(tmp_path):
    wheel = tmp_path / "torch-2.13.0-cp311-none-any.whl"
    wheel.write_bytes(bytes(1000))
    printed = f"""
Collecting numpy
  Downloading numpy-2.4.6-cp312-cp312-manylinux_2_28_x86_64.whl.metadata (60 kB)
Processing {wheel} (from -r requirements.txt (line 3))
  Downloading numpy-2.4.6-cp312-cp312-manylinux_2_28_x86_64.whl (16.4 MB)
Downloading six-1.17.0-py2.py3-none-any.whl (11 kB)
"""
    assert downloaded_bytes(printed) == pytest.approx(16.4e6 + 11e3 + 1000)


# The table


def test_a_step_that_does_not_hold_is_counted(capsys):
    def refuse() -> str:
        raise Mismatch("nothing")

    table = Table()
    assert table.step("a", "something", lambda: "something")
    assert not table.step("b", "something", refuse)
    assert not table.step("c", "something", lambda: str(1 / 0))
    assert table.failed == 2
    lines = capsys.readouterr().out.splitlines()
    assert [line[:2] for line in lines[1:]] == ["ok", "!!", "!!"]
