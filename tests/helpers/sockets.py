"""The WebSocket that speaks text as it comes, for tests: a server, a speaker, and a client."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager

import numpy as np
import uvicorn
from fastapi import APIRouter
from websockets.sync.client import connect

from dia_demo.engine.events import AudioChunk
from dia_demo.errors import RunError
from dia_demo.server.gate import Gate
from dia_demo.server.run import configuration
from dia_demo.server.speech.api import SpeechApi
from dia_demo.services.speech.job import SpeechJob
from dia_demo.services.speech.speaker import Promise, SpeechEvent, SpeechFinished
from tests.helpers.page.page_stubs import FIGURES
from tests.helpers.speech import application_of

RATE = 24000
PATH = "/v1/audio/speech/stream"
CONFIG = {"type": "session.config"}
DONE = {"type": "input.done"}


class ToneSpeaker:
    """A speaker without a model: a tone for every job, whose pitch depends on its text and seed.

    jobs: those that were begun. running: how many are being made. While `hold` is set, a job has
    made its first half and waits. A text with "fail" fails after its first half.
    """

    def __init__(self) -> None:
        self.jobs: list[SpeechJob] = []
        self.running = 0
        self.hold = threading.Event()
        self._lock = threading.Lock()

    def promise(self, job: SpeechJob) -> Promise:
        return Promise(None, 0.5, RATE, "a fingerprint")

    def can_continue(self, model: str) -> bool:
        return False

    def stream(self, job: SpeechJob, cancel: threading.Event) -> Generator[SpeechEvent, None, None]:
        with self._lock:
            self.jobs.append(job)
            self.running += 1
        try:
            tone = self.samples(job)
            yield AudioChunk(tone[: RATE // 4], RATE, 0.0)
            while self.hold.is_set() and not cancel.wait(0.001):
                pass
            if "fail" in job.text:
                raise RunError("The take failed as it was asked to.")
            if cancel.is_set():
                return
            yield AudioChunk(tone[RATE // 4 :], RATE, 0.25)
            yield SpeechFinished(FIGURES, (), None, ())
        finally:
            with self._lock:
                self.running -= 1

    def samples(self, job: SpeechJob) -> np.ndarray:
        """Half a second: float32 [n]."""
        pitch = 200 + 10 * len(job.text) + job.seed % 97
        return np.sin(np.arange(RATE // 2) * 2 * np.pi * pitch / RATE).astype(np.float32) / 3


@contextmanager
def running_server(speech: SpeechApi, *routers: APIRouter) -> Iterator[str]:
    """Serve the routes for programs, and others, without the page; yields host and port."""
    application = application_of(speech)
    for router in routers:
        application.include_router(router)
    application.add_middleware(Gate, stop=lambda session: None)
    server = uvicorn.Server(configuration(application))
    server.config.port = 0
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        wait_until(lambda: server.started or not thread.is_alive())
        yield "{}:{}".format(*server.servers[0].sockets[0].getsockname())
    finally:
        server.should_exit = True
        thread.join()
        speech.answers.close()


def wait_until(condition) -> None:
    """Wait for something that another thread does."""
    latest = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < latest, "it did not happen within a minute"
        time.sleep(0.005)


@contextmanager
def session(server, config=CONFIG, **options):
    with connect(f"ws://{server}{PATH}", proxy=None, **options) as socket:
        if config is not None:
            send(socket, config)
        yield socket


def send(socket, *messages):
    for message in messages:
        socket.send(message if isinstance(message, str | bytes) else json.dumps(message))


def text(words):
    return {"type": "input.text", "text": words}


def receive(socket):
    message = socket.recv(timeout=180)
    return message if isinstance(message, bytes) else json.loads(message)


def until_done(socket):
    """All messages up to session.done."""
    messages = [receive(socket)]
    while isinstance(messages[-1], bytes) or messages[-1]["type"] != "session.done":
        messages.append(receive(socket))
    return messages


def kinds(messages):
    return ["audio" if isinstance(each, bytes) else each["type"] for each in messages]


def spoken_sentences(messages):
    starts = [m for m in messages if not isinstance(m, bytes) and m["type"] == "audio.start"]
    return [start["sentence_text"] for start in starts]
