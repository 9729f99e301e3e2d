"""The engine for other machines: a WebSocket whose client orders a run and reads its events.

See services/remote/wire.py for the messages. A client that goes away stops its run within a step.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Generator
from contextlib import aclosing, suppress

from fastapi import APIRouter, Depends, WebSocket, WebSocketDisconnect

from dia_demo.engine.events import Event
from dia_demo.errors import DiaDemoError, InputError, RunError
from dia_demo.server.remote.in_thread import iterate_in_thread
from dia_demo.server.tokens import caller_of, require_websocket_token
from dia_demo.services.people import Caller, Visitor
from dia_demo.services.remote.client import ROUTE
from dia_demo.services.remote.plain import requests_here
from dia_demo.services.remote.wire import STOP, RunOrder, pack_error, pack_event, unpack_order
from dia_demo.services.synthesis import Synthesis

# For the order of a client that is connected.
ORDER_SECONDS = 30.0
LONGEST_SESSION = 100

log = logging.getLogger(__name__)


def engine_router(synthesis: Synthesis) -> APIRouter:
    """The route for an application with `state.access` (server/tokens.py)."""
    router = APIRouter(dependencies=[Depends(require_websocket_token)])

    @router.websocket(ROUTE)
    async def engine(socket: WebSocket) -> None:
        await socket.accept()
        with suppress(WebSocketDisconnect, TimeoutError):
            async with asyncio.timeout(ORDER_SECONDS):
                text = await _next_text(socket)
            await _answer(socket, synthesis, text)
            await socket.close()

    return router


async def _answer(socket: WebSocket, synthesis: Synthesis, text: str) -> None:
    try:
        order = unpack_order(text)
        cancel = _caller(socket, order)
    except InputError as error:
        await socket.send_text(pack_error(error))
        return
    listening = asyncio.create_task(_listen(socket, cancel))
    try:
        async with aclosing(_messages(synthesis, order, cancel)) as messages:
            async for message in messages:
                await socket.send_text(message)
    finally:
        cancel.set()
        listening.cancel()


def _caller(socket: WebSocket, order: RunOrder) -> Caller:
    """The visitors of a page at the client's address wait in turn, as those of this server do."""
    visitor = caller_of(socket).visitor
    return Caller(Visitor(visitor.address, order.session[:LONGEST_SESSION], visitor.token))


async def _listen(socket: WebSocket, cancel: Caller) -> None:
    """Stop the run when its client says so, or goes away."""
    with suppress(WebSocketDisconnect, RuntimeError):
        while await _next_text(socket) != STOP:
            pass
    cancel.set()


async def _next_text(socket: WebSocket) -> str:
    """The next message, "" for one of bytes. Raises WebSocketDisconnect at the end."""
    message = await socket.receive()
    if message["type"] == "websocket.disconnect":
        raise WebSocketDisconnect(message.get("code", 1000))
    return message.get("text") or ""


async def _messages(
    synthesis: Synthesis, order: RunOrder, cancel: Caller
) -> AsyncGenerator[str, None]:
    """What the client is sent: the events, or after them what went wrong."""

    def make() -> Generator[Event, None, None]:
        with requests_here(order.requests, synthesis.models, synthesis.settings) as requests:
            yield from synthesis.stream_together(requests, cancel, order.in_int8_meanwhile)

    try:
        async with aclosing(iterate_in_thread(make, cancel)) as events:
            async for event in events:
                yield pack_event(event)
    except DiaDemoError as error:
        yield pack_error(error)
    except Exception:
        log.exception("a run for another machine failed")
        yield pack_error(RunError("The engine failed; its log says why. It is still usable."))
