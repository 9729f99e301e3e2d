"""How gradio serves the page: cheap sessions, a quiet queue, and a limit on temporary files.

The only module that relies on the internals of gradio's server; requirements.txt pins the version.
"""

from __future__ import annotations

import asyncio
import gc
import os
from collections import ChainMap, OrderedDict
from collections.abc import AsyncIterator, Callable, Coroutine, Generator
from contextlib import asynccontextmanager, closing, nullcontext
from types import SimpleNamespace
from typing import Any

import anyio
import gradio as gr
from gradio import utils as gradio_utils
from gradio.blocks import BlocksConfig
from gradio.queueing import Queue
from gradio.state_holder import SessionState, StateHolder
from starlette.datastructures import Headers
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from dia_demo.errors import InputError
from dia_demo.services.scratch import Scratch
from dia_demo.services.settings import Settings
from dia_demo.system import exclude_from_collection, release_free_memory
from dia_demo.ui.gate import Gate, watch_connections
from dia_demo.ui.head import PageHead

# Open pages. A program's call also has a session, which is dropped first.
MAX_SESSIONS = 200
# Form data that a browser sends with the file.
FORM_BYTES = 100_000
TIDY_SECONDS = 10.0
# How often gradio's queue looks again for a free place, and without events for its own end.
BUSY_SECONDS, IDLE_SECONDS = 0.02, 60.0


def configure_gradio(settings: Settings) -> None:
    """Settings that gradio reads only from the environment. Call before building the page."""
    # Uploads and copies are stored with the takes, under the same limit.
    os.environ["GRADIO_TEMP_DIR"] = str(settings.takes_folder / "gradio")
    # Otherwise it computes statistics of the last 10,000 calls, which nobody reads, at every call.
    os.environ["GRADIO_ANALYTICS_MAX_EVENTS"] = "1"
    os.environ["GRADIO_ANALYTICS_CACHE_FREQUENCY"] = str(10**9)
    # Otherwise every event sets a backend of matplotlib, which the first one imports. The page has
    # no plots.
    vars(gradio_utils)["MatplotlibBackendMananger"] = nullcontext


def server_options(settings: Settings) -> dict:
    """The arguments of `launch` that concern the server."""
    scratch = Scratch(settings.takes_folder, settings.temp_bytes)
    return {
        "max_file_size": f"{settings.upload_mb}mb",
        "allowed_paths": [str(settings.served_folder)],
        "state_session_capacity": MAX_SESSIONS,
        "auth": list(settings.logins) or None,
        "app_kwargs": {
            "lifespan": _lifespan(scratch),
            "exception_handlers": {TypeError: _refuse_arguments},
            "middleware": [
                Middleware(Gate, origins=settings.origins),
                Middleware(UploadGuard, scratch=scratch, max_mb=settings.upload_mb),
                Middleware(PageHead),
            ],
        },
        "max_threads": threads(settings),
        # No request of gradio's own to the page: it ends the app where the answer takes 3 s.
        "_frontend": False,
    }


def threads(settings: Settings) -> int:
    """The number of threads: one for every run that may wait, and some for other events."""
    return settings.queue_size + 40


def _lifespan(scratch: Scratch) -> Callable:
    @asynccontextmanager
    async def lifespan(app) -> AsyncIterator[None]:
        app.state_holder = SessionStore(app.get_blocks())
        app.get_blocks()._queue.__class__ = WakingQueue
        exclude_from_collection()
        gc.enable()  # See app.py.
        tasks = [
            asyncio.create_task(_tidy_repeatedly(scratch)),
            asyncio.create_task(watch_connections(app.get_blocks())),
        ]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()

    return lifespan


async def _tidy_repeatedly(scratch: Scratch) -> None:
    while True:
        await anyio.to_thread.run_sync(scratch.trim)
        await anyio.to_thread.run_sync(release_free_memory)
        await asyncio.sleep(TIDY_SECONDS)


class SharedSession(SessionState):
    """A session that shares the page's components until it changes one of them.

    gradio's own session copies the configuration of all components, which takes 0.3 MB and blocks
    the server for 20 ms, and stores every value for deep links, which this page does not offer.
    """

    def __init__(self, page: gr.Blocks) -> None:
        empty: Any = SimpleNamespace(default_config=SimpleNamespace(blocks={}), blocks={})
        super().__init__(empty)
        self.changed: dict[int, Any] = {}
        components: Any = ChainMap(self.changed, page.default_config.blocks)
        self.blocks_config = BlocksConfig(page)
        self.blocks_config.blocks = components
        self.blocks_config.fns = page.default_config.fns

    def _update_config(self, key: int) -> None:
        """Values are not stored."""

    def _update_value_in_config(self, key: int, value: object) -> None:
        """Values are not stored."""

    @property
    def is_spare(self) -> bool:
        """Whether it can be dropped: its page is closed, or it never changed a component."""
        return self.is_closed or not (self.state_data or self.changed)


class SessionStore(StateHolder):
    """The latest sessions. Above the limit, spare sessions are dropped first."""

    session_data: OrderedDict[str, Any]

    def __init__(self, page: gr.Blocks) -> None:
        super().__init__()
        self.set_blocks(page)

    def __getitem__(self, session_id: str) -> SharedSession:
        if session_id not in self.session_data:
            self.session_data[session_id] = SharedSession(self.blocks)
        super().__getitem__(session_id)
        return self.session_data[session_id]

    def update(self, session_id: str) -> None:
        """Record that a session was used, and drop another one above the limit."""
        with self.lock:
            self.session_data.move_to_end(session_id)
            if len(self.session_data) <= self.capacity:
                return
            older = list(self.session_data)[:-1]
            spare = (name for name in older if self.session_data[name].is_spare)
            name = next(spare, older[0])
            del self.session_data[name]
            self.time_last_used.pop(name, None)


class WakingQueue(Queue):
    """gradio's queue, woken by an event that arrives.

    gradio's own looks for one every millisecond, which takes 5% of a core for as long as the app
    runs, and interrupts the threads of a take.
    """

    _sleep: asyncio.Future | None = None
    # Nothing here sends gr.Progress, which it would look for every 10 ms.
    progress_update_sleep_when_free = property(lambda self: IDLE_SECONDS)
    sleep_when_free = property(lambda self: BUSY_SECONDS if len(self) else IDLE_SECONDS)

    async def push(self, *args: Any, **options: Any) -> Any:
        """Add an event, as gradio's; then wake up."""
        answer = await super().push(*args, **options)
        if self._sleep is not None and not self._sleep.done():
            self._sleep.set_result(None)
        return answer

    async def start_processing(self) -> None:
        """gradio's loop. Without an event, all it waits for is the end of a sleep."""
        await _Observed(super().start_processing(), self._note)

    def _note(self, waiting: asyncio.Future | None) -> None:
        self._sleep = None if len(self) else waiting


class _Observed:
    """Awaits a coroutine and passes on every future that it waits for."""

    def __init__(self, work: Coroutine, note: Callable[[asyncio.Future | None], None]) -> None:
        self._work, self._note = work, note

    def __await__(self) -> Generator[asyncio.Future | None, None, None]:
        with closing(self._work):
            while True:
                try:
                    waiting = self._work.send(None)
                except StopIteration:
                    return
                self._note(waiting)
                yield waiting


class UploadGuard:
    """Accepts files only at the upload route and only if there is space, before they are written.

    gradio writes a file for any posted form, keeps the data of an interrupted upload, and saves a
    session's values for anyone who requests a deep link, which this page does not offer.
    """

    def __init__(self, app: ASGIApp, scratch: Scratch, max_mb: int) -> None:
        self.app, self.scratch, self.max_mb = app, scratch, max_mb

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
            await _refuse("An upload must state its length.", 411)(scope, receive, send)
            return
        if (size := int(length)) > self.max_mb * 2**20 + FORM_BYTES:
            message = f"An upload may have at most {self.max_mb} MB."
            await _refuse(message, 413)(scope, receive, send)
            return
        try:
            await anyio.to_thread.run_sync(self.scratch.reserve, size)
        except InputError as error:
            # Read to the end: a browser does not show an answer that comes earlier.
            while (await receive()).get("more_body"):
                pass
            await _refuse(str(error), 507)(scope, receive, send)
            return
        try:
            await self.app(scope, receive, send)
        except ClientDisconnect:
            pass  # the incomplete file is removed with the other temporary files
        finally:
            self.scratch.release(size)


async def _refuse_arguments(request: Request, error: Exception) -> JSONResponse:
    """The answer to a call by names whose arguments are incomplete or unknown: gradio raises
    TypeError with the name."""
    if "/call/v2/" not in request.url.path:
        raise error
    return JSONResponse({"error": str(error)}, 422)


def _refuse(message: str, status: int) -> PlainTextResponse:
    return PlainTextResponse(message, status, headers={"Connection": "close"})
