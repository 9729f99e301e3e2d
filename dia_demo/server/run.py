"""uvicorn, which serves the application: its port, its connections, its end."""

from __future__ import annotations

import asyncio
import socket
import sys

import uvicorn

from dia_demo.server.address import Address
from dia_demo.server.application import make_application
from dia_demo.server.gate import IDLE_SECONDS, watch_connections
from dia_demo.services.settings import Settings
from dia_demo.ui.gradio_internals import Page, end_streams
from dia_demo.ui.space import zero_gpu

# For answers in progress when the program ends. Takes are saved afterwards.
END_SECONDS = 3


def serve(page: Page, settings: Settings) -> None:
    """Serve the page until the program ends.

    Ctrl-C and SIGTERM end it, and reach the caller as uvicorn raises them again.
    """
    zero_gpu.report_start()
    config = uvicorn.Config(
        make_application(page, settings),
        log_level="warning",
        timeout_keep_alive=round(IDLE_SECONDS),
        timeout_graceful_shutdown=END_SECONDS,
    )
    # Last: requests that come before the server starts would wait instead of being refused.
    with Address.from_env().listen() as listening:
        Server(config, page).run([listening])


def address_of(listening: socket.socket) -> str:
    """Where a browser on this machine finds what listens."""
    host, port, *_ = listening.getsockname()
    if host in ("0.0.0.0", "::"):
        host = "localhost"
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"


class Server(uvicorn.Server):
    """uvicorn with our bound on connections.

    `limit_concurrency` is not used: it refuses new requests, while here idle connections make room.
    """

    def __init__(self, config: uvicorn.Config, page: Page) -> None:
        super().__init__(config)
        self.page = page

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started and sockets:
            address = address_of(sockets[0])
            sys.stdout.write(f"Open {address} in a browser. Ctrl+C ends the program.\n")
            sys.stdout.flush()

    async def main_loop(self) -> None:
        watching = asyncio.create_task(watch_connections(self.server_state.connections))
        try:
            await super().main_loop()
        finally:
            watching.cancel()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        end_streams(self.page)
        await super().shutdown(sockets)
