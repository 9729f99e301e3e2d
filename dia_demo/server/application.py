"""The ASGI application: FastAPI with the page mounted, and what stands in front of it."""

from __future__ import annotations

import asyncio
import gc
import mimetypes
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
from fastapi import FastAPI
from starlette.middleware import Middleware

from dia_demo.audio import FORMATS
from dia_demo.machine.system import exclude_from_collection, release_free_memory
from dia_demo.server.gate import Gate
from dia_demo.server.head import PageHead
from dia_demo.server.incoming import IncomingGuard
from dia_demo.services.scratch import Scratch
from dia_demo.services.settings import Settings
from dia_demo.ui.gradio_internals import Page, mount
from dia_demo.ui.page import page_options, threads

# Open pages. A program's call also has a session, which is dropped first.
MAX_SESSIONS = 200
TIDY_SECONDS = 10.0


def make_application(page: Page, settings: Settings) -> FastAPI:
    """The application that serves the page, for uvicorn or any other ASGI server."""
    # Content types of downloads: Python's own for a suffix depend on the system.
    for suffix, kind in FORMATS.items():
        mimetypes.add_type(kind.content_type, suffix)
    scratch = Scratch(settings.takes_folder, settings.temp_bytes)
    application = FastAPI(
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        lifespan=_lifespan(scratch),
        middleware=[
            Middleware(Gate, origins=settings.origins, stop=page.stop_session),
            Middleware(IncomingGuard, scratch=scratch, max_mb=settings.upload_mb),
            Middleware(PageHead),
        ],
    )
    mount(page, application, **mount_options(settings))
    return application


def mount_options(settings: Settings) -> dict[str, Any]:
    """How the page is mounted: see `gradio.mount_gradio_app` and `mount`."""
    return {
        **page_options(),
        "max_file_size": f"{settings.upload_mb}mb",
        "allowed_paths": [str(settings.served_folder)],
        "auth": list(settings.logins) or None,
        "max_sessions": MAX_SESSIONS,
        "max_threads": threads(settings),
    }


def _lifespan(scratch: Scratch) -> Callable:
    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        exclude_from_collection()
        gc.enable()  # See app.py.
        tidying = asyncio.create_task(_tidy_repeatedly(scratch))
        try:
            yield
        finally:
            tidying.cancel()

    return lifespan


async def _tidy_repeatedly(scratch: Scratch) -> None:
    while True:
        await anyio.to_thread.run_sync(scratch.trim)
        await anyio.to_thread.run_sync(release_free_memory)
        await asyncio.sleep(TIDY_SECONDS)
