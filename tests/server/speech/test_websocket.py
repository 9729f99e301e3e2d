"""The WebSocket speaks text as it comes, in order and in one voice, and frees what it used."""

from __future__ import annotations

import io

import numpy as np
import pytest
import soundfile
from websockets.exceptions import ConnectionClosed, InvalidStatus

from dia_demo.server.speech import websocket
from dia_demo.text.script import MAX_SCRIPT_CHARACTERS
from tests.helpers.sockets import (
    CONFIG,
    DONE,
    RATE,
    kinds,
    receive,
    send,
    session,
    spoken_sentences,
    text,
    until_done,
)

# The protocol


def test_text_is_spoken_sentence_by_sentence_in_order(server, speaker):
    with session(server) as socket:
        send(socket, text("One is he"), text("re. Two is lon"), text("ger than that. Three"), DONE)
        messages = until_done(socket)
    assert spoken_sentences(messages) == ["One is here.", "Two is longer than that.", "Three"]
    assert kinds(messages) == ["audio.start", "audio", "audio.done"] * 3 + ["session.done"]
    jobs = {job.text: job for job in speaker.jobs}
    for index in range(3):
        start, audio, done = messages[3 * index : 3 * index + 3]
        assert start["sentence_index"] == done["sentence_index"] == index
        assert start["utterance_index"] == done["utterance_index"] == 0
        assert (start["format"], start["sample_rate"]) == ("wav", RATE)
        assert (done["total_bytes"], done["error"]) == (len(audio), False)
        heard, rate = soundfile.read(io.BytesIO(audio), dtype="float32")
        expected = speaker.samples(jobs[start["sentence_text"]])
        assert rate == RATE and np.abs(heard - expected).max() < 1e-4
    assert messages[-1] == {"type": "session.done", "utterance_index": 0, "total_sentences": 3}


def test_a_sentence_is_spoken_before_the_text_is_complete(server):
    with session(server) as socket:
        send(socket, text("The first is complete. The second is n"))
        assert kinds([receive(socket) for _ in range(3)]) == ["audio.start", "audio", "audio.done"]
        send(socket, text("ot."), DONE)
        assert spoken_sentences(until_done(socket)) == ["The second is not."]


def test_audio_comes_while_it_is_made_if_wanted(server, speaker):
    config = CONFIG | {"stream_audio": True, "response_format": "pcm"}
    speaker.hold.set()
    try:
        with session(server, config) as socket:
            send(socket, text("Half of this comes first."), DONE)
            assert receive(socket)["sample_rate"] == 24000
            first = receive(socket)
            speaker.hold.clear()
            messages = until_done(socket)
    finally:
        speaker.hold.clear()
    audio = first + b"".join(each for each in messages if isinstance(each, bytes))
    assert len(audio) == 2 * (RATE // 2) and len(first) <= len(audio) // 2
    assert messages[-2]["total_bytes"] == len(audio)


def test_a_session_has_several_utterances(server):
    with session(server) as socket:
        send(socket, text("Once."), DONE, text("Twice. Thrice."), DONE, DONE)
        first, second, third = (until_done(socket) for _ in range(3))
    assert (spoken_sentences(first), spoken_sentences(second), spoken_sentences(third)) == (
        ["Once."],
        ["Twice.", "Thrice."],
        [],
    )
    assert [m["utterance_index"] for m in second if not isinstance(m, bytes)] == [1] * 5
    assert third == [{"type": "session.done", "utterance_index": 2, "total_sentences": 0}]


def test_session_close_ends_it_after_what_was_asked_for(server):
    with session(server) as socket:
        send(
            socket, text("This is still said."), DONE, {"type": "session.close"}, text("Not this.")
        )
        assert spoken_sentences(until_done(socket)) == ["This is still said."]
        with pytest.raises(ConnectionClosed) as closed:
            receive(socket)
        assert closed.value.rcvd.code == 1000


# Voices


def jobs_for(server, speaker, config, words):
    before = len(speaker.jobs)
    with session(server, CONFIG | config) as socket:
        send(socket, text(words), DONE)
        until_done(socket)
    order = [job.text for job in speaker.jobs[before:]]
    return [speaker.jobs[before:][order.index(one)] for one in ("First.", "Second.", "Third.")]


def test_all_sentences_have_one_voice(server, speaker):
    first, second, third = jobs_for(server, speaker, {}, "First. Second. Third.")
    assert first.seed == second.seed == third.seed
    assert first.voices == second.voices == third.voices


def test_the_two_speakers_of_a_script_differ(server, speaker):
    words = "[S1] First. [S2] Second. [S1] Third."
    first, second, third = jobs_for(server, speaker, {"seed": 2**32 - 1}, words)
    assert first.seed == third.seed == 2**32 - 1
    assert second.seed != first.seed


def test_voices_are_named_as_in_other_requests(server, speaker, speech):
    own = [voice.name for voice in speech.catalogue.models.first.config.voices.voices[:2]]
    words = "[S1] First. [S2] Second. Third."
    first, second, third = jobs_for(server, speaker, {"voice": own}, words)
    assert [job.voices[0] for job in (first, second, third)] == [own[0], own[1], own[1]]


# Mistakes and limits


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("no json", "must be a JSON object"),
        ("[1]", "must be a JSON object"),
        ("[" * 100_000, "must be a JSON object"),
        (b"bytes", "must be a JSON object"),
        ({"type": "speak"}, "type must be session.config"),
        ({"type": ["x"]}, "type must be session.config"),
        ({"type": "input.text"}, "needs a field text"),
        ({"type": "input.text", "text": 7}, "needs a field text"),
        (CONFIG | {"voice": "nobody"}, "There is no voice 'nobody'"),
        (CONFIG | {"voice": ["alloy"] * 3}, "at most 2"),
        (CONFIG | {"model": "unknown"}, "no model 'unknown'"),
        (CONFIG | {"response_format": "aac"}, "'mp3', 'opus', 'flac', 'wav' or 'pcm'"),
        (CONFIG | {"speed": 9}, "less than or equal to 4"),
        (CONFIG | {"stream_audio": "perhaps"}, "valid boolean"),
    ],
)
def test_a_mistake_gets_a_sentence_and_the_session_goes_on(server, message, expected):
    with session(server) as socket:
        send(socket, message)
        answer = receive(socket)
        assert answer["type"] == "error" and expected in answer["message"]
        assert len(answer["message"]) < 300
        send(socket, text("I still speak."), DONE)
        assert spoken_sentences(until_done(socket)) == ["I still speak."]


def test_a_session_begins_with_its_configuration(server):
    with session(server, config=None) as socket:
        send(socket, text("Too early."))
        assert "begins with session.config" in receive(socket)["message"]
        send(socket, CONFIG, text("Now."), DONE)
        assert spoken_sentences(until_done(socket)) == ["Now."]


def test_a_configuration_does_not_change_text_that_has_begun(server):
    with session(server) as socket:
        send(socket, text("Begun"), CONFIG | {"response_format": "pcm"}, DONE)
        assert "before input.text" in receive(socket)["message"]
        assert until_done(socket)[0]["format"] == "wav"
        send(socket, CONFIG | {"response_format": "pcm"}, text("Another."), DONE)
        assert until_done(socket)[0]["format"] == "pcm"


def test_a_sentence_that_fails_is_named_and_the_next_one_is_spoken(server):
    with session(server) as socket:
        send(socket, text("Now fail. Then go on."), DONE)
        messages = until_done(socket)
    assert kinds(messages[:3]) == ["audio.start", "error", "audio.done"]
    assert messages[1]["sentence_index"] == 0 and "failed" in messages[1]["message"]
    assert messages[2]["error"] is True
    assert kinds(messages[3:]) == ["audio.start", "audio", "audio.done", "session.done"]


def test_text_beyond_the_limit_is_refused_and_the_rest_is_spoken(server):
    with session(server) as socket:
        send(socket, text("Short. "), text("x" * (MAX_SCRIPT_CHARACTERS + 1)), DONE)
        messages = until_done(socket)
    (error,) = [m for m in messages if not isinstance(m, bytes) and m["type"] == "error"]
    assert error["code"] == "too_much_text" and "20,000 characters" in error["message"]
    assert spoken_sentences(messages) == ["Short."]


def test_unpaired_surrogates_do_no_harm(server):
    with session(server) as socket:
        send(socket, '{"type": "input.text", "text": "A \\ud800 b."}', DONE)
        assert spoken_sentences(until_done(socket)) == ["A \ud800 b."]


def test_a_message_that_is_too_large_ends_the_session(server):
    with session(server) as socket:
        send(socket, "x" * (2**20 + 1))
        assert "at most 1 MB" in receive(socket)["message"]
        with pytest.raises(ConnectionClosed) as closed:
            receive(socket)
        assert closed.value.rcvd.code == 1009


def test_another_website_is_refused(server):
    with pytest.raises(InvalidStatus), session(server, origin="https://elsewhere.example"):
        pass
    with session(server, origin=f"http://{server}") as socket:
        send(socket, DONE)
        assert kinds(until_done(socket)) == ["session.done"]


def test_when_the_text_stops_coming_what_came_is_spoken(server, monkeypatch):
    monkeypatch.setattr(websocket, "STOPPED_SECONDS", 0.2)
    with session(server) as socket:
        send(socket, text("Said. And half a"))
        messages = until_done(socket)
        assert spoken_sentences(messages) == ["Said.", "And half a"]
        errors = [each for each in messages if isinstance(each, dict) and each["type"] == "error"]
        assert ["what had come is spoken" in error["message"] for error in errors] == [True]
        send(socket, text("It goes on."), DONE)
        assert spoken_sentences(until_done(socket)) == ["It goes on."]


def test_a_silent_session_is_closed(server, monkeypatch):
    monkeypatch.setattr(websocket, "CONFIG_SECONDS", 0.01)
    with session(server, config=None) as socket:
        assert "No message came" in receive(socket)["message"]
        with pytest.raises(ConnectionClosed):
            receive(socket)
