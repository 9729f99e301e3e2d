"""Answers: the bytes of one job while they are made, for one reader or several.

A job has the same bytes whenever it is made, so an answer can be continued: a client whose
connection was cut asks for the rest, and one that repeats its request gets the answer that is still
being made. When the last reader leaves, the job is stopped within a step; its bytes are kept for a
while, and made again from the seed, without those that are there, if somebody comes back.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import tempfile
import threading
import time
from collections.abc import AsyncGenerator, Callable, Generator, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from pathlib import Path

from dia_demo.engine.events import AudioChunk
from dia_demo.errors import BusyError, DiaDemoError, RunError
from dia_demo.machine.background import Background, stop_all
from dia_demo.server.encoders import StreamEncoder, open_encoder
from dia_demo.services.speech.growing_text import GrowingText
from dia_demo.services.speech.job import SpeechJob
from dia_demo.services.speech.speaker import Promise, Speaker, SpeechFinished

# After its last reader has left.
KEPT_SECONDS = 120.0
# Of all answers together: about three hours of WAV at 44.1 kHz.
MOST_BYTES = 10**9
# Each has a file open.
MOST_ANSWERS = 300
RETRY_SECONDS = 10
BLOCK_BYTES = 2**16
END_SECONDS = 20.0

log = logging.getLogger(__name__)


# The events of a job until its flag is set, and what makes such flags.
Stream = Callable[[threading.Event], Generator[object, None, None]]
Cancels = Callable[[], threading.Event]


class State(StrEnum):
    """What an answer is doing."""

    RUNNING = "running"
    COMPLETE = "complete"
    STOPPED = "stopped"
    FAILED = "failed"


@dataclass(frozen=True)
class Question:
    """What an answer answers. format: of its bytes, see encoders. key: the same for a repeated
    request. has_seed: the client chose the seed, so that the same bytes are wanted every time."""

    job: SpeechJob
    format: str
    key: str
    has_seed: bool
    promise: Promise


class Answer:
    """The bytes of a job. new_cancel: makes the flag of a run, which knows whose it is.

    finished: the figures and words, once it is complete. problem: why it failed.
    """

    def __init__(
        self, question: Question, stream: Stream, new_cancel: Cancels, folder: Path
    ) -> None:
        self.id = secrets.token_urlsafe(16)
        self.question, self._stream, self._new_cancel = question, stream, new_cancel
        self.state, self.size = State.STOPPED, 0
        self.finished: SpeechFinished | None = None
        self.problem: DiaDemoError | None = None
        self.is_delivered = False
        self.left_at = time.monotonic()
        self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - closed by `close`
        self._lock = threading.RLock()
        self._keeps_running = False
        self._readers: set[AnswerReader] = set()
        self._maker: Background | None = None

    @property
    def encoder(self) -> StreamEncoder:
        """A new encoder of its format."""
        question = self.question
        return open_encoder(question.format, question.promise.sample_rate, question.job.model)

    @property
    def is_idle(self) -> bool:
        """Whether nobody reads it, and it is not being made for somebody who comes later."""
        return not self._readers and self.state is not State.RUNNING

    def run(self) -> None:
        """Make it, or what is missing of it, unless that is done or under way. Raises RunError if
        the machine cannot start another thread."""
        with self._lock:
            if self.state in (State.RUNNING, State.COMPLETE):
                return
            before, cancel = self._maker, self._new_cancel()
            self.state, self.problem = State.RUNNING, None
            self._maker = Background("answer", lambda: self._make(before, cancel), cancel)
            try:
                self._maker.start()
            except RunError:
                self.state, self._maker = State.STOPPED, None
                raise

    @contextmanager
    def reader(self, start: int = 0) -> Iterator[AnswerReader]:
        """A reader from a byte on; the last one that leaves stops the job. Called in an event
        loop."""
        reader = AnswerReader(self, start, asyncio.get_running_loop())
        with self._lock:
            self._readers.add(reader)
        try:
            self.run()
            yield reader
        finally:
            with self._lock:
                self._readers.discard(reader)
                self.left_at = time.monotonic()
                if not self._readers and not self._keeps_running:
                    self._stop()

    def keep_running(self) -> None:
        """Make it although nobody reads it yet."""
        self._keeps_running = True
        self.run()

    def read(self, start: int) -> bytes:
        """At most BLOCK_BYTES from a byte on; none where there are no more yet."""
        with self._lock:
            if start >= self.size:
                return b""
            self._file.seek(start)
            return self._file.read(min(BLOCK_BYTES, self.size - start))

    def stop(self) -> Background | None:
        """Stop the job if it is being made; returns its thread."""
        with self._lock:
            self._stop()
            return self._maker

    def close(self) -> None:
        """Stop the job, and drop the bytes."""
        self.stop()
        with self._lock:
            self.size = 0
            self._file.close()

    def _stop(self) -> None:
        if self.state is State.RUNNING and self._maker is not None:
            self._maker.cancel.set()
            self._end(State.STOPPED)

    def _make(self, before: Background | None, cancel: threading.Event) -> None:
        if before is not None:
            before.join()
        try:
            self._write_all(cancel)
        except DiaDemoError as error:
            self._fail(error, cancel)
        except Exception as error:
            log.error("an answer failed", exc_info=error)
            message = f"The run failed: {type(error).__name__}. The server is still usable."
            self._fail(RunError(message), cancel)

    def _write_all(self, cancel: threading.Event) -> None:
        encoder, made = self.encoder, 0
        with closing(self._stream(cancel)) as events:
            for event in events:
                if isinstance(event, AudioChunk):
                    made = self._append(encoder.add(event.samples), made, cancel)
                elif isinstance(event, SpeechFinished):
                    self.finished = event
        self._append(encoder.finish(), made, cancel)
        with self._lock:
            if not cancel.is_set():
                self._end(State.COMPLETE)

    def _append(self, data: bytes, made: int, cancel: threading.Event) -> int:
        """Write what is new of the bytes after the first `made`; returns how many there are."""
        with self._lock:
            new = data[max(0, self.size - made) :]
            if new and not cancel.is_set():
                try:
                    self._file.seek(self.size)
                    self._file.write(new)
                    self._file.flush()
                except OSError as error:
                    raise RunError(
                        f"The answer could not be stored: {error.strerror or error}. The server "
                        "needs free space in its folder for temporary files (DIA_TAKES)."
                    ) from error
                self.size += len(new)
                self._wake()
        return made + len(data)

    def _fail(self, error: DiaDemoError, cancel: threading.Event) -> None:
        with self._lock:
            if not cancel.is_set():
                self.problem = error
                self._end(State.FAILED)

    def _end(self, state: State) -> None:
        self.state, self.left_at = state, time.monotonic()
        self._wake()

    def _wake(self) -> None:
        for reader in self._readers:
            reader.wake()


class AnswerReader:
    """Reads an answer in an event loop. position: the byte that it reads next."""

    def __init__(self, answer: Answer, start: int, loop: asyncio.AbstractEventLoop) -> None:
        self.answer, self.position = answer, start
        self._loop, self._changed = loop, asyncio.Event()

    def wake(self) -> None:
        """There is something new. Called in any thread."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._changed.set)

    async def begin(self, seconds: float) -> None:
        """Wait for the first bytes, so many seconds at most. Raises the problem of an answer that
        failed before."""
        try:
            async with asyncio.timeout(seconds):
                while not (self.answer.size > self.position or self._is_over()):
                    await self._next_change()
        except TimeoutError:
            return
        if self.answer.size <= self.position:
            self._check()

    async def blocks(self) -> AsyncGenerator[bytes]:
        """The bytes as they are made. Raises DiaDemoError if the job fails."""
        while True:
            is_over = self._is_over()
            if data := self.answer.read(self.position):
                self.position += len(data)
                yield data
            elif is_over:
                self._check()
                self.answer.is_delivered = True
                return
            else:
                await self._next_change()

    async def all(self) -> bytes:
        """All bytes, once they are made. Raises DiaDemoError if the job fails."""
        return b"".join([data async for data in self.blocks()])

    def _is_over(self) -> bool:
        return self.answer.state is not State.RUNNING

    def _check(self) -> None:
        if self.answer.problem is not None:
            raise self.answer.problem
        if self.answer.state is State.STOPPED:
            raise RunError("The answer was stopped. Send the request again.")

    async def _next_change(self) -> None:
        await self._changed.wait()
        self._changed.clear()


class Answers:
    """The answers that are being made or were made a short while ago. folder: for their bytes."""

    def __init__(self, speaker: Speaker, folder: Path) -> None:
        self._speaker, self._folder = speaker, folder
        self._answers: dict[str, Answer] = {}
        self._lock = threading.Lock()

    def open(
        self, question: Question, new_cancel: Cancels, text: GrowingText | None = None
    ) -> Answer:
        """The answer to a question: one that is there, or a new one. With `text`, a new one of what
        comes there.

        A client that repeats its request joins its answer. One that was delivered in full is used
        again only if the client chose the seed; otherwise another take is wanted. Raises BusyError
        if those that are being read have no space for another one.
        """
        self.tidy()
        stream: Stream = partial(self._speaker.stream, question.job)
        if text is not None:
            stream = partial(text.stream, self._speaker, question.job)
            question = replace(question, key=secrets.token_urlsafe(16))
        with self._lock:
            for answer in self._answers.values():
                if answer.question.key == question.key and _can_be_joined(answer):
                    return answer
            if sum(answer.size for answer in self._answers.values()) > MOST_BYTES:
                message = "The answers of this server have no space left: try again in a moment."
                raise BusyError(message, RETRY_SECONDS)
            self._folder.mkdir(parents=True, exist_ok=True)
            answer = Answer(question, stream, new_cancel, self._folder)
            self._answers[answer.id] = answer
            return answer

    def find(self, answer_id: str) -> Answer | None:
        """An answer by its ID; None if it is gone."""
        with self._lock:
            return self._answers.get(answer_id)

    def tidy(self) -> None:
        """Drop the answers that nobody reads any more, and the oldest beyond MOST_BYTES and
        MOST_ANSWERS."""
        now = time.monotonic()
        with self._lock:
            idle = [answer for answer in self._answers.values() if answer.is_idle]
            idle.sort(key=lambda answer: answer.left_at)
            used = sum(answer.size for answer in self._answers.values())
            for answer in idle:
                is_old, count = now - answer.left_at > KEPT_SECONDS, len(self._answers)
                if is_old or used > MOST_BYTES or count > MOST_ANSWERS:
                    used -= answer.size
                    del self._answers[answer.id]
                    answer.close()

    def close(self) -> None:
        """Stop all jobs, and wait for their threads."""
        with self._lock:
            answers, self._answers = list(self._answers.values()), {}
        makers = [answer.stop() for answer in answers]
        stop_all([maker for maker in makers if maker is not None], END_SECONDS)
        for answer in answers:
            answer.close()


def _can_be_joined(answer: Answer) -> bool:
    if answer.state is State.FAILED:
        return False
    return answer.question.has_seed or not answer.is_delivered
