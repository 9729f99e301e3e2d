"""What requests may bring into the server: files at the upload route, other bodies only if small.

Middleware in front of gradio, which writes a file for any posted form, reads bodies of any size,
keeps the data of an interrupted upload, and fetches addresses for whoever asks.
"""

from __future__ import annotations

import re

import anyio
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dia_demo.errors import InputError
from dia_demo.server.errors import refusal
from dia_demo.services.scratch import Scratch

# Form data that a browser sends with the file.
FORM_BYTES = 100_000
# The body of any other request: the values of a call. Files are uploaded instead.
BODY_BYTES = 2**20
# What is read and dropped of a body that is too large, so that the client reads the answer.
DROPPED_BYTES = 2**30
# The routes that receive files: the page's, and those where programs upload voices.
UPLOADS = ("/upload", "/v1/audio/voices")
# gradio's routes that fetch an address: a file "of" the server, its older form, and the proxy.
_FETCHES = re.compile(r"/file[=/]+(https?|ftp):|/proxy=", re.IGNORECASE)


class IncomingGuard:
    """ASGI middleware. scratch: the space that uploads share; max_mb: the largest upload."""

    def __init__(self, app: ASGIApp, scratch: Scratch, max_mb: int) -> None:
        self.app, self.scratch, self.max_mb = app, scratch, max_mb

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers, path = Headers(scope=scope), scope["path"].rstrip("/")
        is_form = headers.get("content-type", "").lower().startswith("multipart/")
        if path.endswith("/deep_link"):
            # It would save a session's values for anyone who asks; this page has no use for it.
            await _refuse(scope, receive, send, "This page has no deep links.", 404)
        elif _FETCHES.search(path):
            message = "This app does not fetch files from a URL."
            await _refuse(scope, receive, send, message, 403)
        elif is_form and path.endswith(UPLOADS):
            await self._upload(scope, receive, send, headers.get("content-length", ""))
        elif is_form and not path.endswith("/login"):
            await _refuse(scope, receive, send, "Upload files at /gradio_api/upload.", 415)
        elif scope["method"] in ("GET", "HEAD", "OPTIONS"):
            await self.app(scope, receive, send)
        else:
            await self._call(scope, receive, send)

    async def _call(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on a request whose body is small."""
        body, complete = await _body_of(receive)
        if len(body) > BODY_BYTES:
            if not complete:
                await _drop(receive)
            message = (
                f"A request may have at most {BODY_BYTES // 2**20} MB. Upload files at "
                "/gradio_api/upload and pass the path that it returns."
            )
            await _refuse(scope, receive, send, message, 413)
            return
        messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def replay() -> Message:
            return messages.pop() if messages else await receive()

        if complete:
            await self.app(scope, replay, send)

    async def _upload(self, scope: Scope, receive: Receive, send: Send, length: str) -> None:
        if not length.isdecimal():
            message = "An upload needs a Content-Length header."
            await _refuse(scope, receive, send, message, 411)
            return
        if (size := int(length)) > self.max_mb * 2**20 + FORM_BYTES:
            message = f"An upload may have at most {self.max_mb} MB."
            await _drop(receive)
            await _refuse(scope, receive, send, message, 413)
            return
        try:
            await anyio.to_thread.run_sync(self.scratch.reserve, size)
        except InputError as error:
            await _drop(receive)
            await _refuse(scope, receive, send, str(error), 507)
            return
        try:
            await self.app(scope, receive, send)
        except ClientDisconnect:
            pass  # the incomplete file is removed with the other temporary files
        finally:
            self.scratch.release(size)


async def _body_of(receive: Receive) -> tuple[bytes, bool]:
    """A request's body, read until it exceeds BODY_BYTES, and whether that is all of it."""
    body, more = bytearray(), True
    while more and len(body) <= BODY_BYTES:
        message = await receive()
        if message["type"] == "http.disconnect":
            return b"", False
        body += message.get("body", b"")
        more = message.get("more_body", False)
    return bytes(body), not more


async def _drop(receive: Receive) -> None:
    """Read on without keeping anything: clients do not read an answer that comes earlier."""
    dropped, more = 0, True
    while more and dropped < DROPPED_BYTES:
        message = await receive()
        dropped += len(message.get("body", b""))
        more = message.get("more_body", False)


async def _refuse(scope: Scope, receive: Receive, send: Send, message: str, status: int) -> None:
    await refusal(scope, message, status, {"Connection": "close"})(scope, receive, send)
