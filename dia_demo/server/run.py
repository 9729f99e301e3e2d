"""uvicorn, which serves the application: its port, its connections, its end."""

from __future__ import annotations

import asyncio
import signal
import socket
import sys

import uvicorn
from fastapi import FastAPI

from dia_demo.kernels.precompile import Precompilation
from dia_demo.machine.system import prepare_to_serve
from dia_demo.server.address import Address
from dia_demo.server.application import make_application
from dia_demo.server.gate import IDLE_SECONDS, watch_connections
from dia_demo.server.listening.programs import compare_router
from dia_demo.server.listening.routes import listening_router
from dia_demo.server.remote.route import engine_router
from dia_demo.server.speech.api import SpeechApi
from dia_demo.server.speech.response import STALLED_SECONDS
from dia_demo.services.folders import app_folders
from dia_demo.services.remote.synthesis import open_synthesis
from dia_demo.services.settings import Settings
from dia_demo.services.speech.speaker import LocalSpeaker
from dia_demo.services.synthesis import Synthesis
from dia_demo.ui.gradio_internals import Page, configure_gradio, end_streams
from dia_demo.ui.page import build_ui
from dia_demo.ui.space import zero_gpu

# For answers in progress when the program ends. Takes are saved afterwards.
END_SECONDS = 3


def serve_app(precompilation: Precompilation | None = None, with_mcp: bool = False) -> None:
    """The app: the page and the routes for programs where GRADIO_SERVER_NAME and
    GRADIO_SERVER_PORT say, until the program ends. precompilation: kernels that are being compiled
    already; with_mcp: see `serve`."""
    prepare_to_serve()
    # SIGTERM ends the app as Ctrl-C does: what is temporary is removed.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with app_folders(Settings.from_env()) as settings:
            configure_gradio(settings)
            synthesis = open_synthesis(settings)
            try:
                synthesis.warm_up(precompilation)
                serve(build_ui(synthesis), synthesis, with_mcp)
            finally:
                synthesis.close()
    finally:
        if precompilation is not None:
            precompilation.close()


def serve(page: Page, synthesis: Synthesis, with_mcp: bool = False) -> None:
    """Serve the page and the routes for programs until the program ends.

    with_mcp: and tools for agents, which need the package mcp.

    Ctrl-C and SIGTERM end it, and reach the caller as uvicorn raises them again.
    """
    zero_gpu.report_start()
    address = Address.from_env()
    settings = synthesis.settings
    speech = SpeechApi.with_speaker(LocalSpeaker(synthesis), settings)
    routers = [engine_router(synthesis), compare_router(synthesis), listening_router(settings)]
    if with_mcp:
        from dia_demo.server.mcp.router import mcp_router

        routers.append(mcp_router(synthesis))
    application = make_application(page, settings, speech, address, routers, synthesis)
    # Last: requests that come before the server starts would wait instead of being refused.
    with address.listen() as listening:
        Server(configuration(application), page).run([listening])


def configuration(application: FastAPI) -> uvicorn.Config:
    """How uvicorn serves an application: its limits."""
    return uvicorn.Config(
        application,
        log_level="warning",
        # Where no descriptor is left, new connections wait; uvloop, if installed, refuses them.
        loop="asyncio",
        # Python 3.11 then writes an error into the log for each, every second.
        backlog=512,
        timeout_keep_alive=round(IDLE_SECONDS),
        timeout_graceful_shutdown=END_SECONDS,
        # Pings are answered behind the audio, which a client may read as slowly as it plays it.
        ws_ping_timeout=STALLED_SECONDS,
    )


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
            sys.stdout.write(f"Open {address} in a browser. Press Ctrl+C to quit.\n")
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
