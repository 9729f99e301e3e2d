"""What stands before gradio's server: whom it answers, how long it waits, who has hung up.

Other websites must not use a visitor's browser to reach this app. A connection that asks for
nothing, or never comes to the end of its question, is closed. A program that hangs up while its
take is made stops it, as a page does that is closed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from urllib.parse import parse_qs, urlsplit
from weakref import WeakKeyDictionary

import gradio as gr
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dia_demo.system import descriptor_limit

# Without a byte, of a request that has begun; a connection without a request.
SILENT_SECONDS = 30.0
IDLE_SECONDS = 15.0
WATCH_SECONDS = 0.5
# Descriptors that stay for files and pipes, of those that the process may open.
SPARE_DESCRIPTORS = 256
LOOPBACK = ("localhost", "127.0.0.1", "::1")

_on_disconnect: WeakKeyDictionary[gr.Blocks, Callable[[str], None]] = WeakKeyDictionary()


def on_disconnect(page: gr.Blocks, stop: Callable[[str], None]) -> None:
    """Call `stop` with the session of whoever leaves while a take's events are still told."""
    _on_disconnect[page] = stop


class Gate:
    """ASGI middleware. origins: other websites whose pages may use this app."""

    def __init__(self, app: ASGIApp, origins: tuple[str, ...] = ()) -> None:
        self.app = app
        self.origins = origins

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
        elif _is_foreign(scope, self.origins):
            message = "This app takes no requests from other websites (see DIA_ORIGINS)."
            await PlainTextResponse(message, 403)(scope, receive, send)
        elif session := _session_of(scope):
            await _told_until_gone(self.app, scope, receive, send, session)
        else:
            await _within_time(self.app, scope, receive, send)


async def _within_time(app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
    """Answer a request; one that begins and does not go on is given up."""
    asking, begun = True, False

    async def receive_soon() -> Message:
        nonlocal asking
        async with asyncio.timeout(SILENT_SECONDS if asking else None):
            message = await receive()
        asking = message.get("more_body", False)
        return message

    async def send_noted(message: Message) -> None:
        nonlocal begun
        begun = True
        await send(message)

    try:
        await app(scope, receive_soon, send_noted)
    except TimeoutError:
        if not asking or begun:
            raise
        answer = PlainTextResponse("The request did not come to its end.", 408)
        await answer(scope, receive, send)


async def _told_until_gone(
    app: ASGIApp, scope: Scope, receive: Receive, send: Send, session: str
) -> None:
    """Answer with events, and stop the session's takes at once where nobody listens any more.

    gradio itself looks when it has something to say, which may be at the end of the take.
    """
    messages: asyncio.Queue[Message] = asyncio.Queue()

    async def listen() -> None:
        message = await receive()
        while message["type"] != "http.disconnect":
            messages.put_nowait(message)
            message = await receive()
        messages.put_nowait(message)
        if stop := _on_disconnect.get(scope["app"].get_blocks()):
            stop(session)

    listening = asyncio.create_task(listen())
    try:
        await app(scope, messages.get, send)
    finally:
        # Whoever has heard the end may go.
        listening.cancel()


def _session_of(scope: Scope) -> str | None:
    """Whose events an open answer tells: gradio's names of the two ways to listen."""
    path = scope["path"].rstrip("/")
    if path.endswith("/queue/data"):
        query = parse_qs(scope.get("query_string", b"").decode("latin-1"))
        return query.get("session_hash", [None])[0]
    # A call without a session of its own has its event's name for one.
    *_, call, _, event = ["", "", "", *path.split("/")]
    return event if call == "call" and scope["method"] == "GET" else None


def _is_foreign(scope: Scope, origins: tuple[str, ...]) -> bool:
    """Whether another website's page sends this. Reading needs no refusal: a browser shows the
    answer to its own website alone."""
    headers = Headers(scope=scope)
    origin = headers.get("origin")
    if scope["method"] in ("GET", "HEAD", "OPTIONS") or origin is None or origin in origins:
        return False
    # Browsers say it themselves, whatever name a proxy calls us by.
    if headers.get("sec-fetch-site") in ("same-origin", "none"):
        return False
    ours = [headers.get(name, "") for name in ("host", "x-forwarded-host")]
    try:
        theirs = urlsplit(origin)
    except ValueError:
        return True
    if theirs.netloc and theirs.netloc in ours:
        return False
    # "localhost" and "127.0.0.1" are one machine, but each port is somebody else's.
    with suppress(ValueError):
        own = urlsplit(f"//{ours[0]}")
        both = {theirs.hostname, own.hostname} <= set(LOOPBACK)
        return not (both and theirs.port == own.port)
    return True


async def watch_connections(page: gr.Blocks) -> None:
    """Close connections that ask for nothing: those idle too long and, of more than the process
    can hold, the oldest idle ones. Runs beside the server until it is cancelled."""
    most = max(1, descriptor_limit() - SPARE_DESCRIPTORS)
    # In looks, not in seconds: while the server itself is held up, nobody is idle.
    looks: dict[object, int] = {}
    while True:
        await asyncio.sleep(WATCH_SECONDS)
        server = getattr(page, "server", None)
        if server is None:
            continue
        connections = list(server.server_state.connections)
        looks = {one: looks.get(one, 0) + 1 for one in connections if _is_idle(one)}
        excess = len(connections) - most
        for place, one in enumerate(sorted(looks, key=looks.__getitem__, reverse=True)):
            if place < excess or looks[one] * WATCH_SECONDS > IDLE_SECONDS:
                one.transport.close()


def _is_idle(connection) -> bool:
    """Whether uvicorn's connection has no request, or has answered its last."""
    return connection.cycle is None or connection.cycle.response_complete
