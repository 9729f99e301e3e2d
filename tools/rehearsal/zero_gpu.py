"""A stand-in for the service that ZeroGPU's package `spaces` reports to at the start of an app."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from tools.app_process import HOST


class DeviceApi:
    """posts: the paths that were posted to it."""

    def __init__(self, port: int) -> None:
        self.address = f"http://{HOST}:{port}"
        self.posts: list[str] = []


@contextmanager
def running_device_api() -> Iterator[DeviceApi]:
    """Serve it on a free port. It agrees with everything, and has no GPU to lend."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            api.posts.append(self.path.partition("?")[0])
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_GET = do_POST

        def log_message(self, *_: object) -> None:
            """Silent."""

    server = http.server.ThreadingHTTPServer((HOST, 0), Handler)
    api = DeviceApi(server.server_port)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield api
    finally:
        server.shutdown()
        server.server_close()
