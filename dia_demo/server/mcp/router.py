"""The route of the Model Context Protocol beside the page, behind its gate and its tokens."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from inspect import getdoc
from typing import Any

from fastapi import APIRouter, FastAPI
from mcp.server.fastmcp import FastMCP
from mcp.server.fastmcp.exceptions import ToolError
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from mcp.types import ContentBlock, ToolAnnotations
from pydantic import ValidationError
from starlette.requests import ClientDisconnect, HTTPConnection, Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.types import Message, Receive, Scope, Send

from dia_demo.errors import DiaDemoError
from dia_demo.server.errors import first_mistake
from dia_demo.server.gate import until_disconnect
from dia_demo.server.incoming import BODY_BYTES
from dia_demo.server.mcp.files import ROUTE as FILES
from dia_demo.server.mcp.files import ToolFiles
from dia_demo.server.mcp.tools import CALLER, Tools
from dia_demo.server.tokens import access_of, caller_of
from dia_demo.services.synthesis import Synthesis

ROUTE = "/mcp"
INSTRUCTIONS = (
    "Text to speech on this machine. `speak` says a text in one voice, `dialogue` a script of two "
    "speakers; both return the address of an audio file. `list_voices` names voices and models."
)
FAILED = "Something went wrong in the server, and its log says what. Try again, or tell its owner."

log = logging.getLogger(__name__)


def mcp_router(synthesis: Synthesis) -> APIRouter:
    """The route of the protocol, and that of the files that its tools make."""
    files = ToolFiles(synthesis.settings.served_folder)
    manager = _manager(Tools(synthesis, files))

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        async with manager.run():
            yield

    router = APIRouter(lifespan=lifespan)
    endpoint = ToolEndpoint(manager)
    # Clients are configured with and without the slash.
    router.routes += [Route(path, endpoint) for path in (ROUTE, f"{ROUTE}/")]
    router.routes.append(Route(FILES, files.answer))
    return router


def _manager(tools: Tools) -> StreamableHTTPSessionManager:
    """What answers requests for these tools."""
    root = logging.getLogger()
    handlers = root.handlers[:]
    server = ToolServer(
        "dia-demo",
        INSTRUCTIONS,
        stateless_http=True,
        log_level="WARNING",
        max_request_body_size=BODY_BYTES,
        # The gate compares origins with the host as well, and knows DIA_ORIGINS.
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
    )
    root.handlers[:] = handlers  # The package adds one, for the logs of everything.
    makes = ToolAnnotations(destructiveHint=False, openWorldHint=False)
    reads = ToolAnnotations(readOnlyHint=True, openWorldHint=False)
    for tool, title, hints in (
        (tools.speak, "Say a text", makes),
        (tools.dialogue, "Say a script of two speakers", makes),
        (tools.list_voices, "List voices and models", reads),
    ):
        server.add_tool(tool, title=title, description=getdoc(tool), annotations=hints)
    server.streamable_http_app()  # Creates the manager.
    return server.session_manager


class ToolServer(FastMCP):
    """The server of the tools, whose errors are sentences."""

    async def call_tool(
        self, name: str, arguments: dict[str, Any]
    ) -> Sequence[ContentBlock] | dict[str, Any]:
        """Call a tool. Raises ToolError with what the client may read."""
        try:
            return await super().call_tool(name, arguments)
        except ToolError as error:
            raise ToolError(_sentence(error)) from error


def _sentence(error: ToolError) -> str:
    match error.__cause__:
        case None:
            return str(error)
        case DiaDemoError() as cause:
            return str(cause)
        case ValidationError() as cause:
            return str(first_mistake(cause).detail)
        case cause:
            log.error("A tool failed", exc_info=cause)
            return FAILED


class ToolEndpoint:
    """The ASGI application of the protocol: every request is a session of its own, since sessions
    that nobody ends would shut others out."""

    def __init__(self, manager: StreamableHTTPSessionManager) -> None:
        self._manager = manager

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] != "POST":  # There is no stream of news from the server.
            answer = PlainTextResponse("Send a POST request.", 405, {"Allow": "POST"})
            await answer(scope, receive, send)
            return
        connection = HTTPConnection(scope)
        if message := access_of(connection).refusal_of(connection):
            answer = PlainTextResponse(message, 401, {"WWW-Authenticate": "Bearer"})
            await answer(scope, receive, send)
            return
        try:
            body = await Request(scope, receive).body()
        except ClientDisconnect:
            return
        if _is_too_deep(body):
            answer = PlainTextResponse("The JSON of the request is nested too deeply.", 400)
            await answer(scope, receive, send)
            return
        received: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def receive_again() -> Message:
            return received.pop() if received else await receive()

        caller = scope[CALLER] = caller_of(connection)
        handle = self._manager.handle_request
        await until_disconnect(handle, scope, receive_again, send, caller.set)


def _is_too_deep(body: bytes) -> bool:
    """Whether the package, which has an answer for any other mistake, could not read this JSON."""
    try:
        json.loads(body)
    except RecursionError:
        return True
    except ValueError:
        pass
    return False
