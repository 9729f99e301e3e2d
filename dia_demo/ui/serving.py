"""How gradio serves the page: cheap sessions, and a bound on temporary files.

The one module that knows gradio's server from inside; requirements.txt pins the version it knows.
"""

from __future__ import annotations

import asyncio
import os
from collections import ChainMap
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from types import SimpleNamespace

import anyio
import gradio as gr
from gradio.blocks import BlocksConfig
from gradio.state_holder import SessionState, StateHolder
from starlette.datastructures import Headers
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from dia_demo.errors import InputError
from dia_demo.services.scratch import Scratch
from dia_demo.services.settings import Settings
from dia_demo.system import release_free_memory
from dia_demo.ui.gate import Gate, watch_connections

# Pages that are open at once. A program's call has a session too, which is forgotten first.
MAX_SESSIONS = 200
MAX_UPLOAD_MB = 100
# What a browser sends around the file itself.
FORM_BYTES = 100_000
TIDY_SECONDS = 10.0


def configure_gradio(settings: Settings) -> None:
    """What gradio takes from the environment alone. Before the page is built."""
    # Its uploads and copies lie beside the takes, below one bound.
    os.environ["GRADIO_TEMP_DIR"] = str(settings.takes_folder / "gradio")
    # Its statistics of the last 10,000 calls, which nobody reads, are made anew after every call.
    os.environ["GRADIO_ANALYTICS_MAX_EVENTS"] = "1"
    os.environ["GRADIO_ANALYTICS_CACHE_FREQUENCY"] = str(10**9)


def server_options(settings: Settings) -> dict:
    """What `launch` hands to the server below the page."""
    scratch = Scratch(settings.takes_folder, settings.temp_bytes)
    return {
        "max_file_size": f"{MAX_UPLOAD_MB}mb",
        "allowed_paths": [str(settings.served_folder)],
        "state_session_capacity": MAX_SESSIONS,
        "app_kwargs": {
            "lifespan": _lifespan(scratch),
            "middleware": [
                Middleware(Gate, origins=settings.origins),
                Middleware(UploadGuard, scratch=scratch),
            ],
        },
        "max_threads": threads(settings),
    }


def threads(settings: Settings) -> int:
    """A thread for every run that may wait, and some for everything else."""
    return settings.queue_size + 40


def _lifespan(scratch: Scratch) -> Callable:
    @asynccontextmanager
    async def lifespan(app) -> AsyncIterator[None]:
        app.state_holder = Sessions(app.get_blocks())
        beside = [
            asyncio.create_task(_tidy_now_and_then(scratch)),
            asyncio.create_task(watch_connections(app.get_blocks())),
        ]
        try:
            yield
        finally:
            for task in beside:
                task.cancel()

    return lifespan


async def _tidy_now_and_then(scratch: Scratch) -> None:
    while True:
        await anyio.to_thread.run_sync(scratch.trim)
        await anyio.to_thread.run_sync(release_free_memory)
        await asyncio.sleep(TIDY_SECONDS)


class Session(SessionState):
    """A session that shares the page's components until it changes one of them.

    gradio's own makes the configuration of all of them over again, 0.3 MB and 20 ms in which
    nothing else runs, and notes every value in it: for deep links, which this page does not offer.
    """

    def __init__(self, page: gr.Blocks) -> None:
        nothing = SimpleNamespace(blocks={})
        super().__init__(SimpleNamespace(default_config=nothing, blocks={}))
        self.blocks_config = BlocksConfig(page)
        self.blocks_config.blocks = ChainMap({}, page.default_config.blocks)
        self.blocks_config.fns = page.default_config.fns

    def _update_config(self, key: int) -> None:
        """Nothing to note."""

    def _update_value_in_config(self, key: int, value: object) -> None:
        """Nothing to note."""

    @property
    def is_spare(self) -> bool:
        """Whether nothing is lost with it: its page is closed, or it never changed anything."""
        return self.is_closed or not (self.state_data or self.blocks_config.blocks.maps[0])


class Sessions(StateHolder):
    """The latest sessions; where there are too many, one that is spare goes before any other."""

    def __init__(self, page: gr.Blocks) -> None:
        super().__init__()
        self.set_blocks(page)

    def __getitem__(self, session_id: str) -> Session:
        if session_id not in self.session_data:
            self.session_data[session_id] = Session(self.blocks)
        return super().__getitem__(session_id)

    def update(self, session_id: str) -> None:
        """Note that a session was used, and forget another one beyond the bound."""
        with self.lock:
            self.session_data.move_to_end(session_id)
            if len(self.session_data) <= self.capacity:
                return
            older = list(self.session_data)[:-1]
            spare = (name for name in older if self.session_data[name].is_spare)
            name = next(spare, older[0])
            del self.session_data[name]
            self.time_last_used.pop(name, None)


class UploadGuard:
    """Lets files in at one place and only as far as there is room, before they are written.

    gradio writes a file wherever a form is posted, keeps the part of an upload that breaks off, and
    saves a session's values for whoever asks for a deep link, which this page does not offer.
    """

    def __init__(self, app: ASGIApp, scratch: Scratch) -> None:
        self.app = app
        self.scratch = scratch

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers, path = Headers(scope=scope), scope["path"].rstrip("/")
        if path.endswith("/deep_link"):
            await _refuse("This page has no deep links.", 404)(scope, receive, send)
        elif not headers.get("content-type", "").lower().startswith("multipart/"):
            await self.app(scope, receive, send)
        elif not path.endswith("/upload"):
            await _refuse("Files are uploaded at /gradio_api/upload.", 415)(scope, receive, send)
        else:
            await self._upload(scope, receive, send, headers.get("content-length", ""))

    async def _upload(self, scope: Scope, receive: Receive, send: Send, length: str) -> None:
        if not length.isdecimal():
            await _refuse("An upload must name its length.", 411)(scope, receive, send)
            return
        if (size := int(length)) > MAX_UPLOAD_MB * 2**20 + FORM_BYTES:
            message = f"An upload may have at most {MAX_UPLOAD_MB} MB."
            await _refuse(message, 413)(scope, receive, send)
            return
        try:
            await anyio.to_thread.run_sync(self.scratch.reserve, size)
        except InputError as error:
            # Read to its end: a browser shows no answer that comes before.
            while (await receive()).get("more_body"):
                pass
            await _refuse(str(error), 507)(scope, receive, send)
            return
        try:
            await self.app(scope, receive, send)
        except ClientDisconnect:
            pass  # what came of it goes with the other temporary files
        finally:
            self.scratch.release(size)


def _refuse(message: str, status: int) -> PlainTextResponse:
    return PlainTextResponse(message, status, headers={"Connection": "close"})
