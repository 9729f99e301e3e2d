"""Routes for whoever watches the server: /health, /ready and /metrics; and the count of requests.

/health and /ready are open to everybody, since those who probe a server have no token. /metrics
needs one where the routes under /v1 do.
"""

from __future__ import annotations

from fastapi import APIRouter, Depends
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dia_demo.server.errors import PROGRAM_PATHS
from dia_demo.server.tokens import require_token
from dia_demo.services.monitoring.metrics import Metrics
from dia_demo.services.synthesis import Synthesis

# Seconds after which a client may ask again whether the app is ready.
RETRY_SECONDS = 1
# Routes by which requests are counted, besides those of these prefixes; all others are the page's.
COUNTED = ("/health", "/ready", "/metrics", *PROGRAM_PATHS)
PAGE = "page"
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")


def status_routes(synthesis: Synthesis) -> APIRouter:
    """The routes of an app."""
    router = APIRouter(tags=["status"])

    @router.get("/health", summary="Whether the server answers")
    async def health() -> dict[str, str]:
        return {"status": "ok", "model": synthesis.settings.runtime.model}

    @router.get(
        "/ready",
        summary="Whether the start model is loaded, so that a take begins at once",
        responses={503: {"description": "It is being loaded."}},
    )
    async def ready() -> JSONResponse:
        if synthesis.is_warming_up:
            return JSONResponse({"ready": False}, 503, {"Retry-After": str(RETRY_SECONDS)})
        return JSONResponse({"ready": True})

    @router.get(
        "/metrics",
        summary="Counts for Prometheus",
        response_class=Response,
        responses={200: {"content": {"text/plain": {}}}},
        dependencies=[Depends(require_token)],
    )
    def metrics() -> Response:
        return Response(generate_latest(synthesis.metrics.registry), media_type=CONTENT_TYPE_LATEST)

    return router


class RequestCounts:
    """ASGI middleware, in front of all that refuse requests: counts answers."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self.app, self.metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        status = 500

        async def send_answer(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self.app(scope, receive, send_answer)
        finally:
            method = scope["method"] if scope["method"] in METHODS else "other"
            self.metrics.add_request(_route(scope), method, status)


def _route(scope: Scope) -> str:
    """The route that a request reached, as it was declared: nobody can add names to the metrics."""
    path = getattr(scope.get("route"), "path", "")
    return path if path.startswith(COUNTED) else PAGE
