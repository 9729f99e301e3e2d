"""The WebSocket that takes text as it comes and speaks it: sentence by sentence, or in one take.

The messages are those of vLLM-Omni, described in docs/api.md. Text that a language model is still
writing is spoken from its first sentence on; the next sentence is generated while one is sent. All
sentences of a session have the same voices and seed. A model that can continue its text begins with
the first words instead. When the client leaves, its rows are free within a step.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncGenerator, Coroutine, Iterator
from contextlib import aclosing
from typing import Any

import anyio.to_thread
from fastapi import APIRouter, WebSocket, WebSocketDisconnect
from pydantic import ValidationError

from dia_demo.config import SEED_LIMIT
from dia_demo.errors import BusyError, DiaDemoError, InputError, printable
from dia_demo.server.errors import ApiError, api_error, first_mistake
from dia_demo.server.incoming import BODY_BYTES
from dia_demo.server.speech.answers import Answer, AnswerReader, Answers, Question
from dia_demo.server.speech.bodies import BatchItem, SessionConfig
from dia_demo.server.speech.questions import Asker, Questions
from dia_demo.server.speech.response import STALLED_SECONDS
from dia_demo.server.speech.routes import asker_of
from dia_demo.server.tokens import caller_of
from dia_demo.services.speech.growing_text import GrowingText
from dia_demo.text.dialogue.incoming import IncomingText, Sentence
from dia_demo.text.script import MAX_SCRIPT_CHARACTERS

# Without a message, and with nothing left to say.
CONFIG_SECONDS = 30.0
IDLE_SECONDS = 300.0
# The text of a take whose words come later only says who may speak.
BOTH_SPEAKERS = "[S1] Hello. [S2] Hello."
# Within a text: what has come is spoken then.
STOPPED_SECONDS = 60.0
# One sentence is sent while the next one is generated.
ROWS = 2
# Of one asker at the same time.
MOST_SESSIONS = 16
TOO_LARGE, TRY_LATER = 1009, 1013


def add_websocket(router: APIRouter, questions: Questions, answers: Answers) -> None:
    """Add the route to a router."""
    open_sessions: Counter[str] = Counter()

    @router.websocket("/v1/audio/speech/stream")
    async def stream(socket: WebSocket) -> None:
        await socket.accept()
        asker = asker_of(socket)
        session = Session(socket, questions, answers, asker)
        if open_sessions[asker.name] >= MOST_SESSIONS:
            message = f"You have {MOST_SESSIONS} sessions open, the maximum: close one first."
            await session.send_error(BusyError(message, 1))
            await socket.close(TRY_LATER)
            return
        open_sessions[asker.name] += 1
        try:
            await session.run()
        finally:
            open_sessions[asker.name] -= 1
            if not open_sessions[asker.name]:
                del open_sessions[asker.name]


class PartBody(BatchItem):
    """A request for a sentence, or for one take of a whole text. speaker: None of a take."""

    speaker: int | None
    stream_audio: bool


class Session:
    """One connection."""

    def __init__(
        self, socket: WebSocket, questions: Questions, answers: Answers, asker: Asker
    ) -> None:
        self._socket, self._questions, self._answers = socket, questions, answers
        self._asker = asker
        self._bodies: tuple[PartBody, ...] = ()  # for a sentence of either speaker
        self._whole: PartBody | None = None  # for a text that is spoken in one take
        self._text, self._growing = IncomingText(), GrowingText()
        self._texts: list[GrowingText] = []  # of takes that are not over
        self._waiting = 0  # characters of sentences whose turn has not come
        self._utterance = self._sentences = 0
        self._is_within_utterance = self._is_closing = False
        self._rows = asyncio.Semaphore(ROWS)
        self._group = asyncio.TaskGroup()
        self._last: asyncio.Task | None = None

    async def run(self) -> None:
        """Answer messages until the client leaves."""
        try:
            async with self._group:
                while True:
                    await self._receive()
        except* WebSocketDisconnect:
            pass
        except* TimeoutError:  # It reads nothing: nothing that is sent would reach it.
            pass
        finally:
            for text in self._texts:
                text.finish()

    async def send_error(self, error: DiaDemoError | ApiError, **where: int) -> None:
        """Say what went wrong; the session goes on."""
        if isinstance(error, DiaDemoError):
            error = api_error(error)
        message = printable(str(error.detail))
        about = {"code": error.code, "param": error.param}
        await self._send({"type": "error", "message": message, **about, **where})

    async def _receive(self) -> None:
        """Handle the next message."""
        try:
            async with asyncio.timeout(self._patience):
                message = await self._socket.receive()
        except TimeoutError:
            if self._is_within_utterance:
                why = f"No text came for {STOPPED_SECONDS:.0f} s, so what had come is spoken."
                await self.send_error(InputError(why))
                self._finish_text()
                return
            if self._last is None or self._last.done():
                await self.send_error(InputError("No message came, so the session was closed."))
                await self._socket.close()
            return
        if message["type"] == "websocket.disconnect":
            raise WebSocketDisconnect(message.get("code", 1000))
        text = message.get("text")
        if text is not None and len(text) > BODY_BYTES:
            await self.send_error(InputError("A message may have at most 1 MB."))
            await self._socket.close(TOO_LARGE)
            return
        try:
            await self._handle(text)
        except (DiaDemoError, ApiError) as error:
            await self.send_error(error)

    @property
    def _patience(self) -> float:
        """How many seconds to wait for a message."""
        if self._is_within_utterance:
            return STOPPED_SECONDS
        return IDLE_SECONDS if self._bodies else CONFIG_SECONDS

    async def _handle(self, text: str | None) -> None:
        """Raises InputError and ApiError for a message that cannot be used."""
        message = _parse(text)
        if self._is_closing:
            return
        match message.get("type"):
            case "session.config":
                await self._configure(message)
            case "input.text":
                self._add_text(message.get("text"))
            case "input.done":
                self._finish_text()
            case "session.close":
                self._is_closing = True
                self._follow(self._close(self._last))
            case other:
                raise InputError(
                    "type must be session.config, input.text, input.done or session.close, not "
                    f"{str(other)[:60]!r}."
                )

    async def _configure(self, message: dict[str, Any]) -> None:
        if self._is_within_utterance:
            raise InputError(
                "A session.config can come only before input.text or after input.done."
            )
        try:
            config = SessionConfig.model_validate(message)
        except ValidationError as error:
            raise first_mistake(error) from error
        bodies = []
        for body in _bodies_of(config):
            # Raises what is wrong with it before there is text, and chooses the seed.
            question = await self._ask(body)
            bodies.append(body.model_copy(update={"seed": question.job.seed}))
        self._bodies, self._whole = tuple(bodies), None
        if self._questions.can_continue(question):
            both = {"voice": config.voice, "speaker": None, "input": BOTH_SPEAKERS}
            self._whole = bodies[0].model_copy(update=both)

    def _add_text(self, text: object) -> None:
        if not self._bodies:
            raise InputError("A session begins with session.config.")
        if not isinstance(text, str):
            raise InputError("input.text needs a field text with words.")
        self._check_room(len(text), MAX_SCRIPT_CHARACTERS)
        self._is_within_utterance = True
        if self._whole is not None:
            self._add_to_take(self._whole, text)
        else:
            self._add_sentences(self._text.add(text))

    def _finish_text(self) -> None:
        # Somebody who sends nothing else is bounded too; after a text that was taken there is room.
        self._check_room(1, 2 * MAX_SCRIPT_CHARACTERS)
        self._add_sentences(self._text.finish())
        self._growing.finish()
        self._growing = GrowingText()
        self._waiting += 1
        where = {"utterance_index": self._utterance, "total_sentences": self._sentences}
        self._follow(self._end_utterance(self._last, where))
        self._utterance, self._sentences = self._utterance + 1, 0
        self._is_within_utterance = False

    def _check_room(self, characters: int, most: int) -> None:
        waiting = self._waiting + self._text.waiting
        waiting += sum(text.waiting for text in {self._growing, *self._texts})
        if waiting + characters > most:
            raise ApiError(
                429,
                f"More than {most:,} characters would wait to be spoken: this message was ignored. "
                "Send it again when some of the text has been spoken.",
                code="too_much_text",
            )

    def _add_sentences(self, sentences: list[Sentence]) -> None:
        for sentence in sentences:
            body = self._bodies[sentence.speaker - 1].model_copy(update={"input": sentence.text})
            self._begin(body)

    def _add_to_take(self, body: PartBody, text: str) -> None:
        self._growing.add(text)
        if self._growing.has_words and self._growing not in self._texts:
            self._texts.append(self._growing)
            self._begin(body, self._growing)

    def _begin(self, body: PartBody, text: GrowingText | None = None) -> None:
        self._waiting += len(body.input)
        where = {"utterance_index": self._utterance, "sentence_index": self._sentences}
        self._follow(self._speak(body, text, where, self._last))
        self._sentences += 1

    def _follow(self, work: Coroutine[Any, Any, None]) -> None:
        """Do something that sends its messages after everything before it."""
        self._last = self._group.create_task(work)

    async def _speak(
        self,
        body: PartBody,
        text: GrowingText | None,
        where: dict[str, int],
        before: asyncio.Task | None,
    ) -> None:
        """Generate a sentence, or a take of a text, and send it after what comes before it."""
        async with self._rows:
            self._waiting -= len(body.input)
            size, has_failed = 0, False
            try:
                question = await self._ask(body)
                answer = self._answers.open(question, lambda: caller_of(self._socket), text)
                with answer.reader() as reader:
                    await _end_of(before)
                    await self._send({"type": "audio.start", **where, **_start_of(body, answer)})
                    async for data in _frames(reader, body.stream_audio):
                        await self._send(data)
                        size += len(data)
            except DiaDemoError as error:
                has_failed = True
                await _end_of(before)
                await self.send_error(error, **where)
            if text is not None:
                self._texts.remove(text)
            done = {"total_bytes": size, "error": has_failed}
            await self._send({"type": "audio.done", **where, **done})

    async def _ask(self, body: PartBody) -> Question:
        return await anyio.to_thread.run_sync(self._questions.of_speech, body, self._asker)

    async def _end_utterance(self, before: asyncio.Task | None, where: dict[str, int]) -> None:
        await _end_of(before)
        self._waiting -= 1
        await self._send({"type": "session.done", **where})

    async def _close(self, before: asyncio.Task | None) -> None:
        await _end_of(before)
        await self._socket.close()

    async def _send(self, message: dict[str, Any] | bytes) -> None:
        """Raises TimeoutError if the client reads nothing for too long."""
        async with asyncio.timeout(STALLED_SECONDS):
            if isinstance(message, bytes):
                await self._socket.send_bytes(message)
            else:
                await self._socket.send_text(json.dumps(message))


async def _end_of(task: asyncio.Task | None) -> None:
    if task is not None:
        await asyncio.wait([task])


def _parse(text: str | None) -> dict[str, Any]:
    """Raises InputError for a message that is no JSON object."""
    try:
        message = json.loads(text or "")
    except (ValueError, RecursionError):
        message = None
    if not isinstance(message, dict):
        raise InputError("A message must be a JSON object with a type, sent as text.")
    return message


def _bodies_of(config: SessionConfig) -> Iterator[PartBody]:
    """Requests for sentences of S1 and S2, with a word in their place. Without voices the two have
    different seeds, so that they sound different."""
    voices = list(config.voice) if isinstance(config.voice, list) else [config.voice]
    if len(voices) > 2:
        raise InputError(f"A text has two speakers, so at most 2 voices, not {len(voices)}.")
    voices += [None, None]
    values = config.model_dump(exclude={"voice", "seed"})
    for index in range(2):
        seed = None if config.seed is None else (config.seed + index) % (SEED_LIMIT + 1)
        values |= {"voice": voices[index], "seed": seed, "speaker": index + 1, "input": "Hello."}
        yield PartBody(**values)


def _start_of(body: PartBody, answer: Answer) -> dict[str, Any]:
    """What is known before the audio of a sentence."""
    return {
        "sentence_text": None if body.speaker is None else body.input,
        "speaker": body.speaker,
        "format": body.response_format,
        "sample_rate": answer.encoder.sample_rate,
    }


async def _frames(reader: AnswerReader, while_made: bool) -> AsyncGenerator[bytes]:
    """The audio of a sentence as binary messages: one, or several while it is made."""
    if not while_made:
        yield await reader.all()
        return
    async with aclosing(reader.blocks()) as blocks:
        async for data in blocks:
            yield data
