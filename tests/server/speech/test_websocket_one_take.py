"""The WebSocket with a model that continues its text: the take of the whole text, as it comes."""

import io
import threading

import numpy as np
import pytest
import soundfile

from dia_demo.audio import to_int16
from dia_demo.config import RuntimeConfig
from dia_demo.engine.events import AudioChunk
from dia_demo.server.speech import websocket
from dia_demo.server.speech.answers import State
from dia_demo.server.speech.api import SpeechApi
from dia_demo.services.settings import Settings
from dia_demo.services.speech.job import SpeechJob
from dia_demo.services.speech.speaker import LocalSpeaker
from dia_demo.services.synthesis import Synthesis
from tests.helpers.models.mimi import write_small_dia2
from tests.helpers.sockets import (
    CONFIG,
    DONE,
    kinds,
    receive,
    running_server,
    send,
    session,
    spoken_sentences,
    text,
    until_done,
    wait_until,
)  # fmt: skip

TEXT = "[S1] Hello there, my friend. [S2] Hi: who is that? [S1] It is me, of all people."
SEED = CONFIG | {"seed": 4}
HEAD_BYTES = 200  # More than a WAV file has before its samples.


@pytest.fixture(scope="module")
def synthesis(tmp_path_factory):
    folder = write_small_dia2(tmp_path_factory.mktemp("one_take") / "dia2")
    runtime = RuntimeConfig(model=str(folder), precision="float32", threads=1)
    made = Synthesis(Settings(runtime, takes_folder=folder / "takes"))
    yield made
    made.close()


@pytest.fixture(scope="module")
def speech(synthesis):
    return SpeechApi.with_speaker(LocalSpeaker(synthesis), synthesis.settings)


@pytest.fixture(scope="module")
def server(speech):
    with running_server(speech) as address:
        yield address


def sound_of(messages) -> np.ndarray:
    data = b"".join(each for each in messages if isinstance(each, bytes))
    return soundfile.read(io.BytesIO(data), dtype="int16")[0]


@pytest.fixture(scope="module")
def whole(synthesis):
    """The sound of the text as one take."""
    settings = synthesis.settings
    request = SpeechJob(TEXT, settings.runtime.model, seed=4).request(
        synthesis.models.first, settings
    )
    events = synthesis.stream(request, threading.Event())
    samples = [event.samples for event in events if isinstance(event, AudioChunk)]
    return to_int16(np.concatenate(samples))


@pytest.mark.parametrize("stream_audio", [False, True])
def test_however_the_text_is_cut_it_is_one_take(server, whole, stream_audio):
    with session(server, SEED | {"stream_audio": stream_audio}) as socket:
        send(socket, *map(text, TEXT), DONE)
        messages = until_done(socket)
    parts = kinds(messages)
    assert parts[0] == "audio.start" and parts[-2:] == ["audio.done", "session.done"]
    assert set(parts[1:-2]) == {"audio"} and (stream_audio or len(parts) == 4)
    assert spoken_sentences(messages) == [None] and messages[0]["speaker"] is None
    assert messages[-1]["total_sentences"] == 1
    np.testing.assert_array_equal(sound_of(messages), whole)


def test_it_is_heard_before_the_text_is_complete(server, whole):
    with session(server, SEED | {"stream_audio": True}) as socket:
        send(socket, text(TEXT[: len(TEXT) // 2]))
        messages = [receive(socket)]
        while sum(map(len, messages[1:])) <= HEAD_BYTES:
            messages.append(receive(socket))
        assert set(kinds(messages[1:])) == {"audio"}
        send(socket, text(TEXT[len(TEXT) // 2 :]), DONE)
        messages += until_done(socket)
    np.testing.assert_array_equal(sound_of(messages), whole)


def test_every_utterance_is_a_take_of_its_own(server, whole):
    with session(server, SEED) as socket:
        send(socket, text(" "), DONE, text(TEXT), DONE, text("..."), DONE, text(TEXT), DONE)
        space, first, dots, second = (until_done(socket) for _ in range(4))
    for without_words in (space, dots):
        assert kinds(without_words) == ["session.done"]
        assert without_words[0]["total_sentences"] == 0
    np.testing.assert_array_equal(sound_of(first), whole)
    np.testing.assert_array_equal(sound_of(second), whole)


def test_what_cannot_be_said_is_told_and_the_session_goes_on(server, whole):
    with session(server, SEED) as socket:
        send(socket, text("Hello \x00 you."), DONE, text(TEXT), DONE)
        bad, good = until_done(socket), until_done(socket)
    (error,) = [each for each in bad if not isinstance(each, bytes) and each["type"] == "error"]
    assert "U+0000" in error["message"] and error["utterance_index"] == 0
    assert bad[-2]["error"]
    np.testing.assert_array_equal(sound_of(good), whole)


def test_text_that_waits_is_bounded_and_what_was_taken_is_spoken(server, monkeypatch):
    monkeypatch.setattr(websocket, "MAX_SCRIPT_CHARACTERS", 400)
    with session(server, SEED) as socket:
        send(socket, text("Well, "), text("no end to it " * 50), text("there it is."), DONE)
        messages = until_done(socket)
    (error,) = [m for m in messages if not isinstance(m, bytes) and m["type"] == "error"]
    assert error["code"] == "too_much_text" and not messages[-2]["error"]
    assert len(sound_of(messages)) > 0


def test_a_client_that_leaves_stops_its_take(server, speech, synthesis):
    with session(server, SEED | {"stream_audio": True, "seed": 77}) as socket:
        send(socket, text(TEXT))
        while not isinstance(receive(socket), bytes):
            pass
    wait_until(lambda: synthesis._queue.rows == 0)
    (answer,) = [a for a in speech.answers._answers.values() if a.question.job.seed == 77]
    assert answer.state is State.STOPPED
