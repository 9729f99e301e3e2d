"""The routes for programs, for tests of the server: a real server, and a speaker that tests hold
back."""

from __future__ import annotations

import io
import socket
import threading
import wave
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import soundfile
import uvicorn
from fastapi import FastAPI

from dia_demo.audio import integrated_loudness
from dia_demo.engine.events import AudioChunk, Figures, FinishReason
from dia_demo.errors import DiaDemoError, InputError
from dia_demo.server.address import LOCAL, Address
from dia_demo.server.application import make_application
from dia_demo.server.errors import add_error_handlers
from dia_demo.server.speech.api import SpeechApi
from dia_demo.server.tokens import Access
from dia_demo.services.settings import Settings
from dia_demo.services.speech.job import SpeechJob
from dia_demo.services.speech.speaker import (
    LocalSpeaker,
    Promise,
    Speaker,
    SpeechEvent,
    SpeechFinished,
)
from dia_demo.services.synthesis import Synthesis

RATE = 16000
WORDS = "Good morning, how are you today?"
MOST_SAMPLES = 60 * 48000
# What the embedded voice takes to say WORDS, and how loud its takes are, in LUFS.
SECONDS, LOUDNESS = (1.2, 4.5), (-28.0, -14.0)


def speech_of(settings: Settings) -> SpeechApi:
    """The routes of an app with these settings, whose model is loaded when it is needed."""
    return SpeechApi.with_speaker(LocalSpeaker(Synthesis(settings)), settings)


def application_of(api: SpeechApi, address: Address = LOCAL) -> FastAPI:
    """An application with nothing but the routes for programs."""
    application = FastAPI()
    application.state.access = Access(api.settings, address)
    add_error_handlers(application)
    api.add_to(application)
    return application


class HeldSpeaker:
    """Speaks noise that depends on the seed: a chunk of 0.1 s for every `release`.

    started, stopped: jobs, in order. problem: raised in place of the first chunk.
    """

    def __init__(self, chunks: int = 4, problem: DiaDemoError | None = None) -> None:
        self.chunks, self.problem = chunks, problem
        self.started: list[SpeechJob] = []
        self.stopped: list[SpeechJob] = []
        self.promised = Promise(None, 0.1 * chunks, RATE, "stand-in")
        self._gate = threading.Semaphore(0)

    def release(self, chunks: int = 1000) -> None:
        """Let so many chunks be made."""
        self._gate.release(chunks)

    def promise(self, job: SpeechJob) -> Promise:
        """See `Speaker`."""
        if job.text == "impossible":
            raise InputError("This text is impossible.")
        return self.promised

    def stream(self, job: SpeechJob, cancel: threading.Event) -> Generator[SpeechEvent, None, None]:
        """See `Speaker`."""
        self.started.append(job)
        random = np.random.default_rng(job.seed)
        for number in range(self.chunks):
            while not self._gate.acquire(timeout=0.01):
                if cancel.is_set():
                    self.stopped.append(job)
                    return
            if self.problem is not None:
                raise self.problem
            noise = random.uniform(-0.1, 0.1, RATE // 10).astype(np.float32)
            yield AudioChunk(noise, RATE, number / 10)
        yield SpeechFinished(figures_of(job, self.chunks / 10), (), None, ())


def figures_of(job: SpeechJob, seconds: float) -> Figures:
    """The figures of a job that was made in no time."""
    return Figures(
        seconds, 1.0, seconds, 0.5, 0.5, 0.1, 10, FinishReason.END, job.seed, job.model, "float32",
        "cpu", RATE, 0,
    )  # fmt: skip


def settings_in(folder: Path, **changes) -> Settings:
    """Settings whose files are all in `folder`."""
    return Settings(takes_folder=folder / "takes", kept_folder=folder / "kept", **changes)


@contextmanager
def serve_speech(
    settings: Settings, address: Address = LOCAL, speaker: Speaker | None = None
) -> Iterator[str]:
    """The URL of a server. address: where it says that it listens. speaker: in place of the
    embedded voice."""
    synthesis = Synthesis(settings)
    api = SpeechApi.with_speaker(speaker or LocalSpeaker(synthesis), settings)
    app = make_application(None, settings, api, address, synthesis=synthesis)
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=3))
    listening = socket.create_server(("127.0.0.1", 0))
    thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
    thread.start()
    try:
        yield "http://{}:{}".format(*listening.getsockname())
    finally:
        server.should_exit = True
        thread.join(timeout=120)
        synthesis.close()
    assert not thread.is_alive()


def decode(data: bytes) -> tuple[np.ndarray, int]:
    """The samples of a whole answer, float32 [n], and their rate; pcm is told by its lack of a
    header."""
    if data[:4] == b"RIFF":  # Its sizes say that it goes on until the connection ends.
        with wave.open(io.BytesIO(data)) as file:
            assert (file.getnchannels(), file.getsampwidth()) == (1, 2)
            return _floats(file.readframes(file.getnframes())), file.getframerate()
    if data[:3] in (b"ID3", b"fLa", b"Ogg"):
        with soundfile.SoundFile(io.BytesIO(data)) as file:
            file.seekable = lambda: False
            return file.read(MOST_SAMPLES, dtype="float32"), file.samplerate
    return _floats(data), 24000


def assert_speech(data: bytes, times: int = 1) -> None:
    """WORDS, said so many times: as long and as loud as they should be."""
    samples, rate = decode(data)
    assert samples.ndim == 1
    shortest, longest = SECONDS
    assert shortest * times < len(samples) / rate < longest * times
    quietest, loudest = LOUDNESS
    assert quietest < (integrated_loudness(samples, rate) or -100.0) < loudest


def _floats(pcm: bytes) -> np.ndarray:
    return np.frombuffer(pcm, "<i2").astype(np.float32) / 2**15
