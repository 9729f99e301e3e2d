"""How gradio serves the page: cheap sessions, and a bound on temporary files.

The one module that knows gradio's server from inside; requirements.txt pins the version it knows.
"""

from __future__ import annotations

import asyncio
import os
from collections import ChainMap
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from types import SimpleNamespace

import anyio
import gradio as gr
from gradio.blocks import BlocksConfig
from gradio.state_holder import SessionState, StateHolder
from starlette.datastructures import Headers
from starlette.middleware import Middleware
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from dia_demo.errors import InputError
from dia_demo.services.scratch import Scratch
from dia_demo.services.settings import Settings

# Pages that are open at once. A program's call has a session too, which is forgotten first.
MAX_SESSIONS = 200
MAX_UPLOAD_MB = 100
# What a browser sends around the file itself.
FORM_BYTES = 100_000
TRIM_SECONDS = 30.0


def use_own_folder(settings: Settings) -> None:
    """Let gradio keep its uploads and copies beside the takes. Before the page is built."""
    os.environ["GRADIO_TEMP_DIR"] = str(settings.takes_folder / "gradio")


def server_options(settings: Settings) -> dict:
    """What `launch` hands to the server below the page."""
    scratch = Scratch(settings.takes_folder, settings.temp_bytes)
    return {
        "max_file_size": f"{MAX_UPLOAD_MB}mb",
        "allowed_paths": [str(settings.served_folder)],
        "state_session_capacity": MAX_SESSIONS,
        "app_kwargs": {
            "lifespan": _lifespan(scratch),
            "middleware": [Middleware(UploadGuard, scratch=scratch)],
        },
    }


def _lifespan(scratch: Scratch) -> Callable:
    @asynccontextmanager
    async def lifespan(app) -> AsyncIterator[None]:
        app.state_holder = Sessions(app.get_blocks())
        trimming = asyncio.create_task(_trim_now_and_then(scratch))
        try:
            yield
        finally:
            trimming.cancel()

    return lifespan


async def _trim_now_and_then(scratch: Scratch) -> None:
    while True:
        await anyio.to_thread.run_sync(scratch.trim)
        await asyncio.sleep(TRIM_SECONDS)


class Session(SessionState):
    """A session that shares the page's configuration until it changes something in it.

    gradio's own copies all of it: 0.3 MB, and 20 ms in which nothing else runs.
    """

    def __init__(self, page: gr.Blocks) -> None:
        nothing = SimpleNamespace(blocks={})
        super().__init__(SimpleNamespace(default_config=nothing, blocks={}))
        self.blocks_config = BlocksConfig(page)
        self.blocks_config.blocks = ChainMap({}, page.default_config.blocks)
        self.blocks_config.fns = page.default_config.fns

    @property
    def components(self) -> Iterator[dict]:
        """The configuration of every component, as this session has it."""
        for key, block in self.blocks_config.blocks.items():
            yield self.config_values.get(key) or self.blocks_config.config_for_block(key, [], block)

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
        finally:
            self.scratch.release(size)


def _refuse(message: str, status: int) -> PlainTextResponse:
    return PlainTextResponse(message, status, headers={"Connection": "close"})
