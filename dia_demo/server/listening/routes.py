"""The routes of listening tests for invited people: `/listen/LINK` and what its page asks.

Whoever has the link may use them, without a token and without a login. They lead to this one test
and to nothing else of the app.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import anyio
from anyio import to_thread
from fastapi import APIRouter, Request
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response

from dia_demo.errors import DiaDemoError, InputError, printable
from dia_demo.server.errors import ApiError, api_error
from dia_demo.server.listening.limits import AddressLimits
from dia_demo.services.listening.link.guest import Guest, about
from dia_demo.services.listening.link.page import INDEX, SCRIPT, STYLE, page_files
from dia_demo.services.listening.panel.panel import Panel
from dia_demo.services.listening.panel.store import PanelStore
from dia_demo.services.people import network_of
from dia_demo.services.settings import Settings

BODY_BYTES = 100_000
# Of all addresses together: the other routes keep threads of their own.
THREADS = 8
_TYPES = {SCRIPT: "text/javascript", STYLE: "text/css", INDEX: "text/html"}
# Its scripts are this server's, with their modules inside; it speaks to nobody else.
_POLICY = (
    "default-src 'none'; script-src 'self' data:; style-src 'self'; img-src data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": _POLICY,
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Robots-Tag": "noindex, nofollow",
}


def listening_router(settings: Settings) -> APIRouter:
    """The routes of the panel tests that are kept on this server."""
    router = APIRouter(include_in_schema=False)
    ListeningRoutes(PanelStore.from_settings(settings)).add_to(router)
    return router


class ListeningRoutes:
    """The handlers of the routes."""

    def __init__(self, panels: PanelStore) -> None:
        self._panels = panels
        self._limits = AddressLimits()
        self._threads: anyio.CapacityLimiter | None = None

    def add_to(self, router: APIRouter) -> None:
        """Add the routes to a router."""
        for name in (SCRIPT, STYLE):
            router.get(f"/listen/{name}")(_file(name))
        router.get("/listen/{link}")(self.page)
        router.get("/listen/{link}/")(self.without_slash)
        for name in ("about", "enter", "clip", "answers", "finish"):
            router.post(f"/listen/{{link}}/{name}")(self._handler(getattr(self, f"_{name}")))

    async def page(self, link: str, request: Request) -> Response:
        """The page of a test."""
        return await self._answer(request, lambda: self._page_of(link))

    async def without_slash(self, link: str, request: Request) -> Response:
        """The page's own addresses are relative to the one without a slash at its end."""
        query = f"?{request.url.query}" if request.url.query else ""
        return RedirectResponse(f"../{link}{query}")

    def _page_of(self, link: str) -> Response:
        self._find(link)
        return _respond(INDEX)

    def _find(self, link: str) -> Panel:
        try:
            return self._panels.by_link(link)
        except InputError as error:
            raise ApiError(404, str(error)) from error

    def _handler(self, work: Callable[[Panel, dict, str], Response]) -> Callable:
        async def handle(link: str, request: Request) -> Response:
            body = await request.body()
            return await self._answer(
                request, lambda: work(self._find(link), _parse(body), _address(request))
            )

        return handle

    async def _answer(self, request: Request, work: Callable[[], Response]) -> Response:
        """Do the work in a thread; errors are one sentence, which the page shows."""
        self._threads = self._threads or anyio.CapacityLimiter(THREADS)
        try:
            with self._limits.place(_address(request)):
                return await to_thread.run_sync(work, limiter=self._threads)
        except (DiaDemoError, ApiError) as error:
            refused = api_error(error) if isinstance(error, DiaDemoError) else error
            headers = _HEADERS | dict(refused.headers or {})
            return PlainTextResponse(
                printable(str(refused.detail)), refused.status_code, headers=headers
            )

    # -- what the page asks ---------------------------------------------------------------------

    def _about(self, panel: Panel, _: dict, __: str) -> Response:
        return _json(about(panel))

    def _enter(self, panel: Panel, asked: dict, address: str) -> Response:
        known = {rater.id for rater in panel.raters()}
        if asked.get("rater") not in known:
            self._limits.check_new(address)
        guest = Guest.enter(
            panel, asked.get("rater"), asked.get("name", ""), asked.get("recruitment")
        )
        state = guest.state()
        if state["rater"] not in known:
            self._limits.note_new(address)
        return _json(state)

    def _clip(self, panel: Panel, asked: dict, _: str) -> Response:
        content, receipt = Guest(panel, asked.get("rater")).clip(asked.get("clip"))
        headers = _HEADERS | {"X-Receipt": receipt}
        return Response(content, media_type="application/octet-stream", headers=headers)

    def _answers(self, panel: Panel, asked: dict, _: str) -> Response:
        results = Guest(panel, asked.get("rater")).add_answers(asked.get("answers"))
        return _json({"results": results})

    def _finish(self, panel: Panel, asked: dict, _: str) -> Response:
        return _json(Guest(panel, asked.get("rater")).finish(asked.get("headphones")))


def _file(name: str) -> Callable[[], Response]:
    def respond() -> Response:
        return _respond(name)

    return respond


def _respond(name: str) -> Response:
    return Response(page_files()[name], media_type=_TYPES[name], headers=_HEADERS)


def _json(content: dict[str, Any]) -> Response:
    return JSONResponse(content, headers=_HEADERS)


def _address(request: Request) -> str:
    return network_of(request.client.host) if request.client else ""


def _parse(body: bytes) -> dict[str, Any]:
    """The JSON object of a request. Raises ApiError for anything else."""
    if len(body) > BODY_BYTES:
        raise ApiError(413, f"A request of this page has at most {BODY_BYTES // 1000} kB.")
    try:
        asked = json.loads(body)
        json.dumps(asked, ensure_ascii=False).encode()  # Raises for half of a surrogate pair.
    except (ValueError, RecursionError):
        raise InputError("This page sent something that is not JSON: reload it.") from None
    if not isinstance(asked, dict):
        raise InputError("This page sent no JSON object: reload it.")
    return asked
