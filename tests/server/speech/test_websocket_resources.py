"""A session of the WebSocket uses little, and frees it when its client leaves."""

from __future__ import annotations

import asyncio
import io
import json
from contextlib import suppress

import numpy as np
import pytest
import soundfile
from websockets.exceptions import ConnectionClosed

from dia_demo.config import RuntimeConfig
from dia_demo.server.speech import websocket
from dia_demo.server.speech.answers import State
from dia_demo.server.speech.api import SpeechApi
from dia_demo.server.speech.questions import Asker, Questions
from dia_demo.server.speech.websocket import ROWS, Session
from dia_demo.services.settings import Settings
from dia_demo.services.speech.speaker import LocalSpeaker
from dia_demo.services.synthesis import Synthesis
from tests.helpers.asynchronous import run_async
from tests.helpers.sockets import (
    CONFIG,
    DONE,
    receive,
    running_server,
    send,
    session,
    spoken_sentences,
    text,
    until_done,
    wait_until,
)


def test_an_address_has_a_bounded_number_of_sessions(server, monkeypatch):
    monkeypatch.setattr(websocket, "MOST_SESSIONS", 1)
    with session(server) as first:
        send(first, DONE)
        until_done(first)
        with session(server, config=None) as second:
            assert "1 sessions open" in receive(second)["message"]
            with pytest.raises(ConnectionClosed):
                receive(second)

    def is_free():
        with suppress(ConnectionClosed), session(server) as again:
            send(again, DONE)
            return receive(again)["type"] == "session.done"
        return False

    wait_until(is_free)


def test_a_client_that_leaves_frees_its_rows(server, speaker):
    speaker.hold.set()
    try:
        with session(server) as socket:
            send(socket, text("One. Two. Three. Four."), DONE)
            wait_until(lambda: speaker.running == ROWS)
        wait_until(lambda: speaker.running == 0)
    finally:
        speaker.hold.clear()


class SlowSocket:
    """A WebSocket of Starlette's whose client sends a text, and then reads nothing."""

    def __init__(self, *messages):
        self.messages = [{"type": "websocket.receive", "text": json.dumps(m)} for m in messages]
        self.sent = []

    async def receive(self):
        if self.messages:
            return self.messages.pop(0)
        await asyncio.sleep(3600)

    async def send_text(self, data):
        self.sent.append(data)

    async def send_bytes(self, data):
        await asyncio.sleep(3600)


def test_for_a_client_that_does_not_read_little_is_made(speaker, speech, monkeypatch):
    """No more than the sentence that it should read, and the next one."""
    socket = SlowSocket(CONFIG, text("One. Two. Three. Four. Five. "))
    questions = Questions(speaker, speech.catalogue)
    monkeypatch.setattr(websocket, "caller_of", lambda _: asyncio.Event())
    before = len(speaker.jobs)

    async def run():
        running = asyncio.ensure_future(
            Session(socket, questions, speech.answers, Asker("slow")).run()
        )
        while len(speaker.jobs) < before + ROWS:
            await asyncio.sleep(0.001)
        for _ in range(50):  # Whatever else could begin has had its chance.
            await asyncio.sleep(0.001)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    run_async(run())
    assert len(speaker.jobs) - before == ROWS
    assert [json.loads(each)["type"] for each in socket.sent] == ["audio.start"]


# The embedded voice


@pytest.fixture(scope="module")
def nano(tmp_path_factory):
    """The embedded voice, its routes, and their address."""
    takes = tmp_path_factory.mktemp("nano")
    synthesis = Synthesis(Settings(RuntimeConfig("nano", threads=1), takes_folder=takes))
    speech = SpeechApi.with_speaker(LocalSpeaker(synthesis), synthesis.settings)
    with running_server(speech) as server:
        yield synthesis, speech, server
    synthesis.close()


@pytest.mark.slow
def test_the_embedded_voice_speaks_sentence_by_sentence(nano):
    *_, server = nano
    with session(server, CONFIG | {"seed": 3}) as socket:
        send(socket, text("Hello there, my friend. How"), text(" are you today?"), DONE)
        messages = until_done(socket)
    assert spoken_sentences(messages) == ["Hello there, my friend.", "How are you today?"]
    for data in (each for each in messages if isinstance(each, bytes)):
        samples, rate = soundfile.read(io.BytesIO(data))
        assert 0.5 < len(samples) / rate < 6 and np.abs(samples).max() > 0.05


@pytest.mark.slow
def test_the_embedded_voice_stops_when_its_client_leaves(nano):
    synthesis, speech, server = nano
    long = "and this goes on and on for a long while, " * 5
    with session(server, CONFIG | {"stream_audio": True, "seed": 4}) as socket:
        send(socket, text(f"Well, {long} still. So, {long} again."), DONE)
        while not isinstance(receive(socket), bytes):
            pass
    wait_until(lambda: synthesis._queue.rows == 0)
    answers = [each for each in speech.answers._answers.values() if each.question.job.seed == 4]
    assert len(answers) == ROWS and all(answer.state is State.STOPPED for answer in answers)
