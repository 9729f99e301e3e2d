"""An answer on its way to a client: audio as it is made, or server-sent events."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
from collections.abc import AsyncGenerator, Coroutine, Mapping
from contextlib import aclosing
from typing import Any, TypeVar

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from dia_demo.errors import DiaDemoError
from dia_demo.server.errors import ApiError, error_body, error_response
from dia_demo.server.speech.answers import Answer, AnswerReader
from dia_demo.services.speech.speaker import Promise

# Without sound for so long, the head of an answer is sent alone: the client knows what to expect.
# What fails before still gets a status of its own.
HEAD_SECONDS = 2.0
# A client that reads nothing for so long is disconnected.
STALLED_SECONDS = 300.0
# No standard has a status for it; this is nginx' own.
CLIENT_LEFT = 499

log = logging.getLogger(__name__)

Result = TypeVar("Result")


class AnswerResponse(Response):
    """Streams an answer from a byte on. The job stops within a step when the client leaves, unless
    others read it.

    as_events: as OpenAI's server-sent events. headers: beside those of `headers_of`.
    """

    def __init__(
        self,
        answer: Answer,
        start: int = 0,
        as_events: bool = False,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.answer, self.start, self.as_events = answer, start, as_events
        content_type = "text/event-stream" if as_events else answer.encoder.content_type
        own = headers_of(answer) | {"x-resumed-from": str(start), "cache-control": "no-store"}
        super().__init__(None, 200, {**own, **(headers or {})}, content_type)
        del self.headers["content-length"]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self.answer.reader(self.start) as reader:
            try:
                await reader.begin(HEAD_SECONDS)
            except DiaDemoError as error:
                await error_response(error)(scope, receive, send)
                return
            sending = asyncio.ensure_future(self._send(reader, send))
            leaving = asyncio.ensure_future(_disconnect(receive))
            try:
                await asyncio.wait([sending, leaving], return_when=asyncio.FIRST_COMPLETED)
                if sending.done():
                    sending.result()
            finally:
                for task in (sending, leaving):
                    task.cancel()

    async def _send(self, reader: AnswerReader, send: Send) -> None:
        start = {"type": "http.response.start", "status": 200, "headers": self.raw_headers}
        await send(start)
        blocks = events_of(reader) if self.as_events else reader.blocks()
        async with aclosing(blocks):
            try:
                async for data in blocks:
                    async with asyncio.timeout(STALLED_SECONDS):
                        await send({"type": "http.response.body", "body": data, "more_body": True})
            except (DiaDemoError, TimeoutError) as error:
                # The connection is closed before the answer is complete, so the client notices.
                log.warning("An answer was cut off: %s", error or "the client does not read it")
                return
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def events_of(reader: AnswerReader) -> AsyncGenerator[bytes]:
    """An answer as server-sent events; a failure is an event too."""
    try:
        async for data in reader.blocks():
            audio = base64.b64encode(data).decode()
            yield _event({"type": "speech.audio.delta", "audio": audio})
    except DiaDemoError as error:
        yield _event({"type": "error", **error_body(str(error), 500)})
        return
    yield _event(
        {"type": "speech.audio.done", "usage": _usage(reader.answer)} | about(reader.answer)
    )


def about(answer: Answer) -> dict[str, Any]:
    """What a complete answer says besides its audio."""
    finished = answer.finished
    assert finished is not None, "the answer is complete"
    return {
        "seed": answer.question.job.seed,
        "voices": finished.voices,
        "audio_seconds": round(finished.figures.audio_seconds, 3),
        "realtime_factor": round(finished.figures.realtime_factor, 3),
        "remarks": finished.remarks,
    }


def headers_of(answer: Answer) -> dict[str, str]:
    """What the head of an answer says: how to get the same bytes again, and what to expect."""
    question = answer.question
    promise = question.promise
    headers = {
        "x-seed": str(question.job.seed),
        "x-fingerprint": promise.fingerprint,
        "x-format": question.format,
        "x-sample-rate": str(answer.encoder.sample_rate),
        "x-answer": f"/v1/audio/answers/{answer.id}",
        "x-expected-audio-seconds": f"{promise.audio_seconds:.1f}",
    }
    return headers | promise_headers(promise)


def promise_headers(promise: Promise) -> dict[str, str]:
    """The time that a job is expected to take, where it is known."""
    return {} if promise.left is None else {"x-expected-seconds": f"{promise.left.high:.1f}"}


def _usage(answer: Answer) -> dict[str, int]:
    """In OpenAI's words: characters of text in, decoder steps out."""
    assert answer.finished is not None, "the answer is complete"
    read, made = len(answer.question.job.text), answer.finished.figures.steps
    return {"input_tokens": read, "output_tokens": made, "total_tokens": read + made}


def _event(value: dict[str, Any]) -> bytes:
    return f"data: {json.dumps(value, ensure_ascii=False)}\n\n".encode()


async def unless_left(request: Request, work: Coroutine[Any, Any, Result]) -> Result:
    """The result of work whose answer is sent at its end. Cancels it as soon as the client leaves,
    and raises ApiError then, which nobody reads."""
    working = asyncio.ensure_future(work)
    leaving = asyncio.ensure_future(_disconnect(request.receive))
    try:
        await asyncio.wait([working, leaving], return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            return working.result()
        raise ApiError(CLIENT_LEFT, "The client has left.")
    finally:
        for task in (working, leaving):
            task.cancel()


async def _disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
