"""What the paths of programs have in common: their spellings, HEAD, and pages of other websites."""

from __future__ import annotations

from collections.abc import Sequence

from fastapi import FastAPI, Request
from starlette.middleware.cors import ALL_METHODS, CORSMiddleware
from starlette.responses import Response
from starlette.routing import BaseRoute, Match
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dia_demo.server.errors import PROGRAM_PATHS, ApiError

# Clients that were given an address without /v1 ask for these; the former is what they mean.
_WITHOUT_VERSION = ("/v1/audio/", "/audio/")
# Beside PROGRAM_PATHS, for pages of other websites.
_STATE_PATHS = ("/health", "/ready")
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
# Headers of answers that a page of another website may read.
EXPOSED = (
    "x-seed", "x-fingerprint", "x-format", "x-sample-rate", "x-answer", "x-resumed-from",
    "x-full-answer", "x-expected-seconds", "x-expected-audio-seconds", "retry-after",
)  # fmt: skip


class ProgramPaths:
    """ASGI middleware. Paths of programs are spelled in one way for all that follows: without a
    slash at the end, and with /v1. HEAD is answered like GET, without the body. Pages of `origins`
    may read the answers."""

    def __init__(self, app: ASGIApp, origins: Sequence[str] = ()) -> None:
        self.app = app
        self._for_pages = app
        if origins:
            self._for_pages = CORSMiddleware(
                app,
                allow_origins=origins,
                allow_methods=("GET", "HEAD", "POST", "DELETE"),
                allow_headers=("*",),
                expose_headers=EXPOSED,
            )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        root = scope.get("root_path", "")
        path = canonical_path(scope["path"].removeprefix(root))
        if not path.startswith(PROGRAM_PATHS) and path not in _STATE_PATHS:
            await self.app(scope, receive, send)
            return
        scope = {**scope, "path": root + path}
        if scope["type"] == "http" and scope["method"] == "HEAD":
            scope, send = {**scope, "method": "GET"}, _without_body(send)
        await self._for_pages(scope, receive, send)


def canonical_path(path: str) -> str:
    """The one spelling of a path of programs; other paths as they are."""
    with_version, without = _WITHOUT_VERSION
    path = with_version + path.removeprefix(without) if path.startswith(without) else path
    is_known = path.startswith(PROGRAM_PATHS) or path.rstrip("/") in _STATE_PATHS
    return path.rstrip("/") if is_known else path


def add_unknown_paths(application: FastAPI) -> None:
    """Answer what no route answers in the shape that programs read. Called after all routes of
    programs are added, and before the page is mounted, which would answer all paths."""
    known = list(application.router.routes)

    async def unknown(request: Request) -> Response:
        allowed = [method for method in METHODS if _is_answered(request.scope, method, known)]
        if not allowed:
            raise ApiError(404, f"There is no {request.url.path} here: see /openapi.json.")
        message = f"{request.url.path} is for {' and '.join(allowed)}, not {request.method}."
        raise ApiError(405, message, headers={"Allow": ", ".join(allowed)})

    for prefix in PROGRAM_PATHS:
        application.add_route(f"{prefix}{{rest:path}}", unknown, list(ALL_METHODS))


def _is_answered(scope: Scope, method: str, routes: Sequence[BaseRoute]) -> bool:
    asked = {**scope, "method": method}
    return any(route.matches(asked)[0] is Match.FULL for route in routes)


def _without_body(send: Send) -> Send:
    async def send_head(message: Message) -> None:
        if message["type"] == "http.response.body":
            message = {**message, "body": b""}
        await send(message)

    return send_head
