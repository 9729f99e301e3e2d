"""The ASGI application: FastAPI with the page mounted, and what stands in front of it."""

from __future__ import annotations

import asyncio
import gc
import mimetypes
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import anyio
from fastapi import APIRouter, FastAPI
from starlette.middleware import Middleware

from dia_demo.audio import FORMATS
from dia_demo.machine.system import exclude_from_collection, release_free_memory
from dia_demo.server.address import LOCAL, Address
from dia_demo.server.errors import add_error_handlers
from dia_demo.server.gate import Gate
from dia_demo.server.head import PageHead
from dia_demo.server.incoming import IncomingGuard
from dia_demo.server.speech.answers import Answers
from dia_demo.server.speech.api import SpeechApi
from dia_demo.server.speech.paths import ProgramPaths, add_unknown_paths
from dia_demo.server.status import RequestCounts, status_routes
from dia_demo.server.tokens import Access
from dia_demo.services.scratch import Scratch
from dia_demo.services.settings import Settings
from dia_demo.services.synthesis import Synthesis
from dia_demo.ui.gradio_internals import Page, mount
from dia_demo.ui.page import page_options, threads

# Open pages. A program's call also has a session, which is dropped first.
MAX_SESSIONS = 200
TIDY_SECONDS = 10.0


def make_application(
    page: Page | None,
    settings: Settings,
    speech: SpeechApi,
    address: Address = LOCAL,
    routers: Sequence[APIRouter] = (),
    synthesis: Synthesis | None = None,
) -> FastAPI:
    """The application that serves the page, if there is one, and the routes for programs at
    `address`, for uvicorn or any other ASGI server. routers: further routes. synthesis: makes the
    speech in this process, so its status has routes, and its model is unloaded when it is idle.
    """
    # Content types of downloads: Python's own for a suffix depend on the system.
    for suffix, kind in FORMATS.items():
        mimetypes.add_type(kind.content_type, suffix)
    scratch = Scratch(settings.takes_folder, settings.temp_bytes)
    tidying = [speech.answers.tidy, scratch.trim, release_free_memory]
    if synthesis is not None:
        tidying.insert(0, synthesis.unload_if_idle)
        routers = [*routers, status_routes(synthesis)]
    application = FastAPI(
        docs_url=None,
        redoc_url=None,
        title="dia-demo",
        description="Speech from words and scripts, in the shape of OpenAI's API.",
        lifespan=_lifespan(speech.answers, tidying),
        middleware=[
            Middleware(ProgramPaths, origins=settings.origins),
            *([Middleware(RequestCounts, metrics=synthesis.metrics)] if synthesis else []),
            Middleware(Gate, origins=settings.origins, stop=page.stop_session if page else None),
            Middleware(IncomingGuard, scratch=scratch, max_mb=settings.upload_mb),
            *([Middleware(PageHead)] if page else []),
        ],
    )
    application.state.access = Access(settings, address)
    add_error_handlers(application)
    speech.add_to(application)
    for router in routers:
        application.include_router(router)
    add_unknown_paths(application)
    if page is not None:
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


def _lifespan(answers: Answers, tidying: Sequence[Callable[[], object]]) -> Callable:
    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        exclude_from_collection()
        gc.enable()  # See app.py.
        task = asyncio.create_task(_tidy_repeatedly(tidying))
        try:
            yield
        finally:
            task.cancel()
            await anyio.to_thread.run_sync(answers.close)

    return lifespan


async def _tidy_repeatedly(tidying: Sequence[Callable[[], object]]) -> None:
    while True:
        for tidy in tidying:
            await anyio.to_thread.run_sync(tidy)
        await asyncio.sleep(TIDY_SECONDS)
