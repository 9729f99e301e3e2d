"""A reverse proxy that serves an app under a path, as nginx does: streams pass piece by piece."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import anyio
import httpx
import uvicorn
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send

from tools.app_process import HOST, START_SECONDS

# Headers of one connection, not of the message.
HOP_BY_HOP = {b"connection", b"keep-alive", b"transfer-encoding", b"upgrade"}


class Proxy:
    """Passes what is asked below `prefix` on to `target`, without the prefix. ASGI."""

    def __init__(self, target: str, prefix: str) -> None:
        self.target, self.prefix = httpx.URL(target), prefix.encode()
        self.client = httpx.AsyncClient(timeout=None, trust_env=False)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        if not scope["raw_path"].startswith(self.prefix + b"/"):
            message = f"Nothing is served outside {self.prefix.decode()}/."
            await PlainTextResponse(message, 404)(scope, receive, send)
            return
        try:
            answer = await self.client.send(
                self._forwarded_request(Request(scope, receive)), stream=True
            )
        except httpx.TransportError as error:
            message = f"The app does not answer: {error}"
            await PlainTextResponse(message, 502)(scope, receive, send)
            return
        await _pass_on(answer, receive, send)

    def _forwarded_request(self, request: Request) -> httpx.Request:
        path = request.scope["raw_path"].removeprefix(self.prefix)
        query = request.scope["query_string"]
        own = {
            "x-forwarded-host": request.headers["host"],
            "x-forwarded-proto": request.url.scheme,
            "x-forwarded-for": request.client.host if request.client else HOST,
            "x-forwarded-prefix": self.prefix.decode(),
        }
        headers = [(k, v) for k, v in request.headers.raw if k not in HOP_BY_HOP]
        has_body = int(request.headers.get("content-length", 0)) > 0
        return httpx.Request(
            request.method,
            self.target.copy_with(raw_path=path + (b"?" + query if query else b"")),
            headers=[*headers, *((k.encode(), v.encode()) for k, v in own.items())],
            content=request.stream() if has_body else None,
        )


async def _pass_on(answer: httpx.Response, receive: Receive, send: Send) -> None:
    """Send each piece of the answer as it comes; give it up when the visitor goes away."""
    fields = [(k.lower(), v) for k, v in answer.headers.raw if k.lower() not in HOP_BY_HOP]

    async def watch(group: anyio.abc.TaskGroup) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        group.cancel_scope.cancel()

    async with anyio.create_task_group() as group:
        group.start_soon(watch, group)
        try:
            start = {
                "type": "http.response.start",
                "status": answer.status_code,
                "headers": fields,
            }
            await send(start)
            async for piece in answer.aiter_raw():
                await send({"type": "http.response.body", "body": piece, "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        except httpx.TransportError:
            pass  # The app is gone, so the answer stays incomplete.
        finally:
            with anyio.CancelScope(shield=True):
                await answer.aclose()
        group.cancel_scope.cancel()


@contextmanager
def running_proxy(target: str, port: int, prefix: str) -> Iterator[str]:
    """Serve the proxy in a thread; yields the address of the app behind it."""
    config = uvicorn.Config(
        Proxy(target, prefix), HOST, port, log_level="critical", lifespan="off", ws="none"
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, name="proxy", daemon=True)
    thread.start()
    deadline = time.monotonic() + START_SECONDS
    while not server.started:
        if not thread.is_alive() or time.monotonic() > deadline:
            raise RuntimeError(f"the proxy could not be started on port {port}")
        time.sleep(0.01)
    try:
        yield f"http://{HOST}:{port}{prefix}/"
    finally:
        server.should_exit = True
        thread.join(timeout=10)
