"""Middleware in front of the page: foreign origins, timeouts, disconnected clients.

Other websites must not use a visitor's browser to reach this app. A connection without a request,
or with a request that is never completed, is closed. A program that disconnects while its take is
generated stops the take, as closing the page does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from contextlib import suppress
from functools import partial
from typing import Any
from urllib.parse import parse_qs, urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dia_demo.machine.system import descriptor_limit
from dia_demo.server.errors import refusal

# A started request without new data; a connection without a request.
SILENT_SECONDS = 30.0
IDLE_SECONDS = 15.0
WATCH_SECONDS = 0.5
# File descriptors reserved for files and pipes.
SPARE_DESCRIPTORS = 256
LOOPBACK = ("localhost", "127.0.0.1", "::1")


class Gate:
    """ASGI middleware. origins: other websites that may use this app. stop: is called with the
    session of a client that disconnects before its last event; None without a page."""

    def __init__(
        self, app: ASGIApp, stop: Callable[[str], None] | None, origins: tuple[str, ...] = ()
    ) -> None:
        self.app = app
        self.stop = stop
        self.origins = origins

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket" and _is_foreign(scope, self.origins):
            await send({"type": "websocket.close", "code": 1008})
        elif scope["type"] != "http":
            await self.app(scope, receive, send)
        elif _is_foreign(scope, self.origins):
            message = "This app accepts no requests from other websites (see DIA_ORIGINS)."
            await refusal(scope, message, 403)(scope, receive, send)
        elif self.stop is not None and (session := _session_of(scope)):
            stop = partial(self.stop, session)
            await until_disconnect(self.app, scope, receive, send, stop)
        else:
            await _with_timeout(self.app, scope, receive, send)


async def _with_timeout(app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
    """Answer a request; give up one that stalls before it is complete."""
    incomplete, answered = True, False

    async def receive_in_time() -> Message:
        nonlocal incomplete
        async with asyncio.timeout(SILENT_SECONDS if incomplete else None):
            message = await receive()
        incomplete = message.get("more_body", False)
        return message

    async def send_answer(message: Message) -> None:
        nonlocal answered
        answered = True
        await send(message)

    try:
        await app(scope, receive_in_time, send_answer)
    except TimeoutError:
        if not incomplete or answered:
            raise
        answer = refusal(scope, "The request was not completed in time.", 408)
        await answer(scope, receive, send)


async def until_disconnect(
    app: ASGIApp, scope: Scope, receive: Receive, send: Send, stop: Callable[[], None]
) -> None:
    """Answer with events, and call `stop` as soon as the client disconnects.

    gradio notices that only when it has something to send, possibly at the end of the take.
    """
    messages: asyncio.Queue[Message] = asyncio.Queue()

    async def listen() -> None:
        message = await receive()
        while message["type"] != "http.disconnect":
            messages.put_nowait(message)
            message = await receive()
        messages.put_nowait(message)
        stop()

    listening = asyncio.create_task(listen())
    try:
        await app(scope, messages.get, send)
    finally:
        # After the last event a disconnect stops nothing.
        listening.cancel()


def _session_of(scope: Scope) -> str | None:
    """The session whose events a request reads, by gradio's two routes for events."""
    path: str = scope["path"].rstrip("/")
    if path.endswith("/queue/data"):
        query = parse_qs(scope.get("query_string", b"").decode("latin-1"))
        return query.get("session_hash", [None])[0]
    # For a call without a session, the ID of its event is the session.
    *_, call, _, event = ["", "", "", *path.split("/")]
    return event if call == "call" and scope["method"] == "GET" else None


def _is_foreign(scope: Scope, origins: tuple[str, ...]) -> bool:
    """Whether a page of another website sent this request.

    Reading is allowed: a browser shows the answer only to a page of the same website. A WebSocket
    it opens for any page.
    """
    headers = Headers(scope=scope)
    origin = headers.get("origin")
    if origin is None or origin in origins or _only_reads(scope):
        return False
    # Browsers report this themselves, also behind a proxy with another host name.
    if headers.get("sec-fetch-site") in ("same-origin", "none"):
        return False
    ours = [headers.get(name, "") for name in ("host", "x-forwarded-host")]
    try:
        theirs = urlsplit(origin)
    except ValueError:
        return True
    if theirs.netloc and theirs.netloc in ours:
        return False
    # "localhost" and "127.0.0.1" are the same machine, but another port is another program.
    with suppress(ValueError):
        own = urlsplit(f"//{ours[0]}")
        both = {theirs.hostname, own.hostname} <= set(LOOPBACK)
        return not (both and theirs.port == own.port)
    return True


def _only_reads(scope: Scope) -> bool:
    return scope["type"] == "http" and scope["method"] in ("GET", "HEAD", "OPTIONS")


async def watch_connections(opened: Collection[Any]) -> None:
    """Close idle ones of uvicorn's open connections: those idle for too long, also those that never
    sent a request, and, above the limit of the process, the ones that have been idle longest. Runs
    beside the server until it is cancelled."""
    limit = max(1, descriptor_limit() - SPARE_DESCRIPTORS)
    # Idle time in checks, not in seconds: while the server itself is blocked, nobody is idle.
    checks: dict[Any, int] = {}
    while True:
        await asyncio.sleep(WATCH_SECONDS)
        connections = list(opened)
        checks = {idle: checks.get(idle, 0) + 1 for idle in connections if _is_idle(idle)}
        excess = len(connections) - limit
        longest_first = sorted(checks, key=checks.__getitem__, reverse=True)
        for index, connection in enumerate(longest_first):
            if index < excess or checks[connection] * WATCH_SECONDS > IDLE_SECONDS:
                connection.transport.close()


def _is_idle(connection: Any) -> bool:
    """Whether uvicorn's connection has no request, or has answered its last one. A WebSocket is
    never idle."""
    if not hasattr(connection, "cycle"):
        return False
    return connection.cycle is None or connection.cycle.response_complete
