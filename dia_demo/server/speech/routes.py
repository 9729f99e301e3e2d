"""The routes that make speech, described in docs/serving.md."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import anyio.to_thread
from fastapi import APIRouter, Request
from pydantic import ValidationError
from starlette.requests import HTTPConnection
from starlette.responses import JSONResponse, Response

from dia_demo.errors import DiaDemoError
from dia_demo.server.errors import ApiError, first_mistake
from dia_demo.server.speech.answers import Answer, Answers, Question
from dia_demo.server.speech.bodies import BatchBody, BatchItem, DialogueBody, SpeechBody, TakeBody
from dia_demo.server.speech.questions import Asker, Questions
from dia_demo.server.speech.response import AnswerResponse, about, headers_of, unless_left
from dia_demo.server.tokens import access_of, caller_of
from dia_demo.services.people import key_of_token

# Clients that give up, by the beginning of their user agent, and after how many seconds.
PATIENCE = {"homeassistant": 60.0}
DEADLINE = "x-deadline-seconds"
# Of a batch, made at the same time.
BATCH_ROWS = 8

_AUDIO: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The audio while it is made, or server-sent events.",
        "content": {"audio/mpeg": {"schema": {"type": "string", "format": "binary"}}},
    }
}


class SpeechRoutes:
    """The handlers of the routes."""

    def __init__(self, questions: Questions, answers: Answers) -> None:
        self._questions, self._answers = questions, answers

    def add_to(self, router: APIRouter) -> None:
        """Add the routes to a router."""
        speech: dict[str, Any] = {"response_class": Response, "responses": _AUDIO}
        router.post("/v1/audio/speech", **speech)(self.speech)
        router.post("/v1/dialogue", **speech)(self.dialogue)
        router.post("/dev/dialogue", include_in_schema=False, **speech)(self.dialogue)
        router.post("/dev/captioned_speech")(self.captioned_speech)
        router.post("/v1/audio/speech/batch")(self.batch)
        router.get("/v1/audio/answers/{answer_id}", **speech)(self.answer)

    async def speech(self, body: SpeechBody, request: Request) -> Response:
        """Words or a script as audio, streamed while it is made."""
        asker = asker_of(request)
        question = await self._ask(self._questions.of_speech, body, asker, request)
        answer = self._open(question, request)
        if not body.preview:
            return await self._respond(answer, body, request)
        of_preview = await anyio.to_thread.run_sync(self._questions.of_preview, body, asker)
        if of_preview.job.model == question.job.model:
            return await self._respond(answer, body, request)
        preview = self._open(of_preview, request)
        answer.keep_running()
        headers = {"x-full-answer": f"/v1/audio/answers/{answer.id}"}
        return AnswerResponse(preview, 0, body.stream_format == "sse", headers)

    async def dialogue(self, body: DialogueBody, request: Request) -> Response:
        """A dialogue, given turn by turn, as audio, streamed while it is made."""
        asker = asker_of(request)
        question = await self._ask(self._questions.of_dialogue, body, asker, request)
        return await self._respond(self._open(question, request), body, request)

    async def captioned_speech(self, body: SpeechBody, request: Request) -> Response:
        """Words or a script as JSON: the audio, and when each word is said."""
        return await self.speech(body.model_copy(update={"timestamps": True}), request)

    async def answer(self, answer_id: str, request: Request, resume_from: int = 0) -> Response:
        """The bytes of an answer that was begun, from a byte on: all of them, also of one that was
        cut off. Answers are kept for two minutes after their last reader."""
        answer = self._answers.find(answer_id)
        if answer is None:
            raise ApiError(
                404,
                "This answer is gone: answers are kept for two minutes. Send the request again, "
                "with its seed and resume_from.",
                code="answer_gone",
            )
        return AnswerResponse(answer, max(0, resume_from))

    async def batch(self, body: BatchBody, request: Request) -> JSONResponse:
        """Several texts together, each with a result of its own."""
        asker = asker_of(request)
        defaults = body.model_extra or {}
        places = asyncio.Semaphore(BATCH_ROWS)

        async def make(index: int, item: dict[str, Any]) -> dict[str, Any]:
            async with places:
                try:
                    checked = BatchItem.model_validate(defaults | item)
                    question = await self._ask(self._questions.of_speech, checked, asker, request)
                    answer = self._open(question, request)
                    with answer.reader() as reader:
                        data = await reader.all()
                except ValidationError as error:
                    return _error_entry(index, str(first_mistake(error).detail))
                except (DiaDemoError, ApiError) as error:
                    return _error_entry(index, str(getattr(error, "detail", error)))
            audio = base64.b64encode(data).decode()
            media = answer.encoder.content_type
            done = {"index": index, "status": "success", "audio_data": audio, "media_type": media}
            return done | about(answer)

        async def make_all() -> list[dict[str, Any]]:
            return await asyncio.gather(*(make(*item) for item in enumerate(body.items)))

        results = await unless_left(request, make_all())
        failed = sum(result["status"] == "error" for result in results)
        counts = {"total": len(results), "succeeded": len(results) - failed, "failed": failed}
        return JSONResponse({"results": results, **counts})

    async def _ask(
        self, make: Callable[..., Question], body: TakeBody, asker: Asker, request: Request
    ) -> Question:
        """The question of a body. Raises ApiError where the client would not wait long enough."""
        question = await anyio.to_thread.run_sync(make, body, asker)
        left, patience = question.promise.left, patience_of(request)
        if left is not None and patience is not None and left.low > patience:
            raise ApiError(
                503,
                f"This would take at least {left.low:.0f} s, and the client waits "
                f"{patience:.0f} s: shorten the text, or try again when fewer takes are waiting.",
                code="deadline",
                retry_seconds=left.low - patience,
            )
        return question

    def _open(self, question: Question, request: Request) -> Answer:
        return self._answers.open(question, lambda: caller_of(request))

    async def _respond(
        self, answer: Answer, body: SpeechBody | DialogueBody, request: Request
    ) -> Response:
        if not body.timestamps:
            return AnswerResponse(answer, body.resume_from, body.stream_format == "sse")
        with answer.reader() as reader:
            data = await unless_left(request, reader.all())
        finished = answer.finished
        assert finished is not None, "it was read to its end"
        words = [
            {"word": word.word, "start_time": word.start, "end_time": word.end}
            | {"speaker": word.speaker, "turn": word.turn}
            for word in finished.words
        ]
        content = {
            "audio": base64.b64encode(data).decode(),
            "audio_format": answer.encoder.content_type,
            "timestamps": words,
            "figures": asdict(finished.figures),
            **about(answer),
        }
        return JSONResponse(content, headers=headers_of(answer))


def patience_of(request: Request) -> float | None:
    """How long a client waits for a whole answer, if that is known. Raises ApiError for a header
    that is no number of seconds."""
    if given := request.headers.get(DEADLINE):
        try:
            seconds = float(given)
        except ValueError:
            seconds = -1.0
        if not 0 < seconds < 1e6:
            raise ApiError(400, f"{DEADLINE} must be a number of seconds, not {given[:40]!r}.")
        return seconds
    agent = request.headers.get("user-agent", "").lower()
    return next((s for name, s in PATIENCE.items() if agent.startswith(name)), None)


def asker_of(request: HTTPConnection) -> Asker:
    """Who sends a request: whoever has its token, or else its address."""
    token = access_of(request).token_of(request)
    visitor = caller_of(request).visitor
    repeat_key = request.headers.get("idempotency-key", "")
    owner = key_of_token(token) if token else ""
    return Asker(visitor.token or visitor.address, owner, repeat_key)


def _error_entry(index: int, message: str) -> dict[str, Any]:
    return {"index": index, "status": "error", "error": message}
