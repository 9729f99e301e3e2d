"""The routes over HTTP: what is sent, what the head says, and what happens to whoever leaves."""

from __future__ import annotations

import asyncio
import base64
import io
import json
import threading
from dataclasses import replace

import numpy as np
import pytest
import soundfile
from starlette.testclient import TestClient

from dia_demo.engine.time_left import TimeLeft
from dia_demo.errors import BusyError, RunError
from dia_demo.server.speech import response
from dia_demo.server.speech.api import SpeechApi
from dia_demo.services.settings import Settings
from dia_demo.services.speech.speaker import LocalSpeaker
from dia_demo.services.synthesis import Synthesis
from tests.helpers.asynchronous import async_test
from tests.helpers.speech import HeldSpeaker, application_of

WORDS = "Hello there, how are you?"


@pytest.fixture(scope="module")
def nano(tmp_path_factory):
    """A client of the routes with the embedded voice."""
    folder = tmp_path_factory.mktemp("routes")
    settings = Settings(takes_folder=folder / "takes", kept_folder=folder / "kept")
    synthesis = Synthesis(settings)
    api = SpeechApi.with_speaker(LocalSpeaker(synthesis), settings)
    with TestClient(application_of(api)) as client:
        yield client
    api.answers.close()
    synthesis.close()


@pytest.fixture
def held(tmp_path):
    """A speaker that is held back, and a client of it."""
    speaker = HeldSpeaker()
    settings = Settings(takes_folder=tmp_path / "takes", kept_folder=tmp_path / "kept")
    api = SpeechApi.with_speaker(speaker, settings)
    yield speaker, TestClient(application_of(api))
    api.answers.close()


def decoded(data: bytes) -> np.ndarray:
    samples, _ = soundfile.read(io.BytesIO(data), dtype="float32")
    return samples


def post(client: TestClient, path="/v1/audio/speech", headers=None, **body):
    return client.post(path, json={"input": WORDS} | body, headers=headers)


def error_of(answer) -> dict:
    error = answer.json()["error"]
    assert set(error) == {"message", "type", "param", "code"}
    return error


def test_speech_is_audio_with_a_head_that_says_how_to_get_it_again(nano):
    answer = post(nano, voice="alloy")
    assert answer.status_code == 200 and answer.headers["content-type"] == "audio/mpeg"
    seed, made = int(answer.headers["x-seed"]), decoded(answer.content)
    assert 1.2 < len(made) / 16000 < 3.5 and np.sqrt(np.mean(made**2)) > 0.02
    again = post(nano, voice="alloy", seed=seed)
    assert again.content == answer.content
    assert again.headers["x-fingerprint"] == answer.headers["x-fingerprint"]
    assert float(again.headers["x-expected-audio-seconds"]) > 1


def test_an_answer_goes_on_at_a_byte(nano):
    whole = post(nano, seed=3, response_format="flac")
    rest = post(nano, seed=3, response_format="flac", resume_from=1000)
    assert rest.content == whole.content[1000:] and rest.headers["x-resumed-from"] == "1000"
    path = whole.headers["x-answer"]
    assert nano.get(path).content == whole.content
    assert nano.get(path, params={"resume_from": 500}).content == whole.content[500:]
    past = nano.get(path, params={"resume_from": 10**9})
    assert past.status_code == 200 and past.content == b""
    gone = nano.get("/v1/audio/answers/unknown")
    assert gone.status_code == 404 and error_of(gone)["code"] == "answer_gone"


def test_events_carry_the_same_bytes(nano):
    whole = post(nano, seed=4).content
    answer = post(nano, seed=4, stream_format="sse")
    assert answer.headers["content-type"].startswith("text/event-stream")
    events = [json.loads(line[6:]) for line in answer.text.splitlines() if line]
    *deltas, done = events
    assert {event["type"] for event in deltas} == {"speech.audio.delta"}
    assert b"".join(base64.b64decode(event["audio"]) for event in deltas) == whole
    assert done["type"] == "speech.audio.done" and done["seed"] == 4
    assert done["usage"]["input_tokens"] == len(WORDS) and done["usage"]["output_tokens"] > 10


def test_word_times_come_with_the_audio(nano):
    answer = post(nano, "/dev/captioned_speech", seed=5, response_format="wav").json()
    words = answer["timestamps"]
    assert [word["word"] for word in words] == WORDS.split()
    seconds = len(decoded(base64.b64decode(answer["audio"]))) / 16000
    starts = [word["start_time"] for word in words]
    assert starts == sorted(starts) and words[-1]["end_time"] <= seconds
    assert answer["figures"]["seed"] == 5
    assert post(nano, timestamps=True, seed=5, response_format="wav").json() == answer


def test_a_dialogue_is_one_file_of_all_turns(nano):
    turns = [{"text": "Hi there.", "voice": "rms deep"}, {"text": "Hello!", "voice": "awb"}]
    body = {"turns": turns, "seed": 3, "pause_between_turns": 0.8, "timestamps": True}
    answer = nano.post("/v1/dialogue", json=body).json()
    assert [word["speaker"] for word in answer["timestamps"]] == ["S1", "S1", "S2"]
    assert answer["voices"] == ["rms deep", "awb"]
    _, there, hello = answer["timestamps"]
    assert 0.7 < hello["start_time"] - there["end_time"] < 1.1
    audio = nano.post("/dev/dialogue", json={"turns": turns, "response_format": "wav"})
    assert audio.status_code == 200 and len(decoded(audio.content)) > 16000
    crowd = [{"text": "Hi.", "voice": name} for name in ("awb", "rms", "rms deep")]
    assert "2 speakers" in error_of(nano.post("/v1/dialogue", json={"turns": crowd}))["message"]


def test_a_batch_has_a_result_for_each_item(nano):
    items = [{"input": "One."}, {"input": " "}, {"input": "Two.", "seed": 9}, {"input": 5}]
    answer = nano.post("/v1/audio/speech/batch", json={"items": items, "seed": 3}).json()
    one, empty, two, wrong = answer["results"]
    assert (answer["total"], answer["succeeded"], answer["failed"]) == (4, 2, 2)
    assert (one["seed"], two["seed"]) == (3, 9)
    assert base64.b64decode(one["audio_data"]) == post(nano, input="One.", seed=3).content
    assert "is empty" in empty["error"] and "input" in wrong["error"]
    for items in ([], [{"input": "x"}] * 33):
        refused = nano.post("/v1/audio/speech/batch", json={"items": items})
        assert refused.status_code == 400 and error_of(refused)["param"] == "items"


def test_lists_are_where_clients_look(nano):
    assert nano.get("/v1/models").json()["data"][0]["id"] == "nano"
    assert {"id": "tts-1"} in nano.get("/v1/audio/models").json()["models"]
    voices = nano.get("/v1/audio/voices").json()
    assert {"id": "alloy", "name": "alloy"} in voices["voices"]
    assert {"id": "rms deep", "name": "rms deep"} in voices["voices"]


@pytest.mark.parametrize(
    ("body", "param", "says"),
    [
        ({"input": None}, "input", "string"),
        ({"speed": 9}, "speed", "less than or equal to 4, not 9"),
        ({"response_format": "aac"}, "response_format", "'mp3', 'opus', 'flac', 'wav' or 'pcm'"),
        ({"voice": "nobody"}, None, "There is no voice 'nobody'"),
        ({"temperature": 99}, None, "temperature must be a number from 0 to 5"),
        ({"input": "x" * 30_000}, None, "30,000 characters"),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(nano, body, param, says):
    answer = post(nano, **body)
    error = error_of(answer)
    assert answer.status_code == 400 and error["type"] == "invalid_request_error"
    assert error["param"] == param and says in error["message"]


def test_a_body_that_is_no_json_is_refused(nano):
    for data in (b"", b"{", b"\xff\xfe", b"[" * 5000):
        answer = nano.post("/v1/audio/speech", content=data)
        assert answer.status_code == 400 and error_of(answer)["message"]


def test_a_preview_comes_at_once_and_names_the_full_answer(held, monkeypatch):
    speaker, client = held
    speaker.release()
    model = "nari-labs/Dia-1.6B-0626"
    answer = post(client, model=model, preview=True, seed=1, response_format="wav")
    full = client.get(answer.headers["x-full-answer"])
    assert {job.model for job in speaker.started} == {"nano", model}
    assert answer.headers["x-seed"] == full.headers["x-seed"] == "1"
    assert post(client, preview=True).headers.get("x-full-answer") is None, "it is the preview"


def test_who_would_not_wait_long_enough_is_told_when_to_come_back(held):
    speaker, client = held
    speaker.release()
    speaker.promised = replace(speaker.promised, left=TimeLeft(90.0, 120.0))
    for headers in ({"user-agent": "HomeAssistant/2026.1"}, {"x-deadline-seconds": "60"}):
        answer = post(client, headers=headers)
        assert answer.status_code == 503 and answer.headers["retry-after"] == "30"
        assert error_of(answer)["code"] == "deadline" and "90 s" in error_of(answer)["message"]
    patient = post(client, headers={"x-deadline-seconds": "100"})
    assert patient.status_code == 200 and patient.headers["x-expected-seconds"] == "120.0"
    for wrong in ("soon", "-1", "nan"):
        assert post(client, headers={"x-deadline-seconds": wrong}).status_code == 400


@pytest.mark.parametrize(
    ("problem", "status", "kind"),
    [
        (BusyError("The queue is full.", 7), 429, "rate_limit_error"),
        (RunError("The take contains no speech."), 500, "server_error"),
    ],
)
def test_what_fails_before_the_first_sound_has_a_status(tmp_path, problem, status, kind):
    speaker = HeldSpeaker(problem=problem)
    speaker.release()
    api = SpeechApi.with_speaker(speaker, Settings(takes_folder=tmp_path))
    client = TestClient(application_of(api))
    for changes in ({}, {"stream_format": "sse"}, {"timestamps": True}):
        answer = post(client, **changes)
        assert (answer.status_code, error_of(answer)["type"]) == (status, kind)
        assert answer.headers.get("retry-after") == ("7" if status == 429 else None)


# Without a client that hides them: connections that are cut


class Connection:
    """A request at the ASGI interface. sent: the messages of the answer."""

    def __init__(self, path: str = "/v1/audio/speech", **body) -> None:
        self.sent: list[dict] = []
        self._path, self._body = path, json.dumps({"input": WORDS} | body).encode()
        self._left = threading.Event()
        self._was_read = False

    async def receive(self) -> dict:
        if not self._was_read:
            self._was_read = True
            return {"type": "http.request", "body": self._body, "more_body": False}
        await until(self._left.is_set)
        return {"type": "http.disconnect"}

    async def send(self, message: dict) -> None:
        self.sent.append(message)

    def leave(self) -> None:
        self._left.set()

    def run(self, client: TestClient) -> asyncio.Task:
        scope = {
            "type": "http", "method": "POST", "path": self._path, "query_string": b"",
            "headers": [(b"content-type", b"application/json")], "client": ("127.0.0.1", 1),
            "root_path": "", "scheme": "http", "server": ("127.0.0.1", 1), "http_version": "1.1",
        }  # fmt: skip
        return asyncio.create_task(client.app(scope, self.receive, self.send))


async def until(condition) -> None:
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0.002)


@pytest.mark.parametrize(
    "connection",
    [
        Connection(seed=1),
        Connection(seed=1, stream_format="sse"),
        Connection(seed=1, timestamps=True),
        Connection("/v1/dialogue", turns=[{"text": "Hello."}]),
        Connection("/v1/audio/speech/batch", items=[{"input": "One."}, {"input": "Two."}]),
    ],
    ids=["audio", "events", "timestamps", "dialogue", "batch"],
)
@async_test
async def test_a_client_that_leaves_stops_its_take_before_the_first_sound(held, connection):
    speaker, client = held
    running = connection.run(client)
    await until(lambda: speaker.started)
    connection.leave()
    await asyncio.wait_for(running, 20)
    await until(lambda: len(speaker.stopped) == len(speaker.started))


@async_test
async def test_a_client_that_leaves_in_the_middle_may_go_on(held):
    speaker, client = held
    first = Connection(seed=1, response_format="wav")
    running = first.run(client)
    speaker.release(2)
    await until(lambda: len(first.sent) > 1)
    first.leave()
    await asyncio.wait_for(running, 20)
    await until(lambda: speaker.stopped)
    begun = b"".join(message.get("body", b"") for message in first.sent)
    speaker.release()
    rest = Connection(seed=1, response_format="wav", resume_from=len(begun))
    await asyncio.wait_for(rest.run(client), 20)
    whole = begun + b"".join(message.get("body", b"") for message in rest.sent)
    again = Connection(seed=1, response_format="wav")
    await asyncio.wait_for(again.run(client), 20)
    assert whole == b"".join(message.get("body", b"") for message in again.sent)
    assert not rest.sent[-1]["more_body"]


@async_test
async def test_the_head_is_sent_while_there_is_no_sound_yet(held, monkeypatch):
    monkeypatch.setattr(response, "HEAD_SECONDS", 0.01)
    speaker, client = held
    connection = Connection(seed=1)
    running = connection.run(client)
    await until(lambda: connection.sent)
    head = dict(connection.sent[0]["headers"])
    assert connection.sent[0]["status"] == 200 and head[b"x-seed"] == b"1"
    speaker.release()
    await asyncio.wait_for(running, 20)
    assert len(connection.sent) > 2 and not connection.sent[-1]["more_body"]


@async_test
async def test_a_failure_in_the_middle_ends_the_answer_incomplete(held, monkeypatch):
    monkeypatch.setattr(response, "HEAD_SECONDS", 0.01)
    speaker, client = held
    connection = Connection(seed=1)
    running = connection.run(client)
    await until(lambda: connection.sent)
    speaker.problem = RunError("The model failed.")
    speaker.release()
    await asyncio.wait_for(running, 20)
    assert all(message.get("more_body", True) for message in connection.sent)


@async_test
async def test_a_client_that_does_not_read_is_disconnected(held, monkeypatch):
    monkeypatch.setattr(response, "STALLED_SECONDS", 0.05)
    speaker, client = held
    connection = Connection(seed=1)

    async def send(message: dict) -> None:
        connection.sent.append(message)
        if message["type"] == "http.response.body":
            await asyncio.Event().wait()

    monkeypatch.setattr(connection, "send", send)
    speaker.release()
    await asyncio.wait_for(connection.run(client), 20)
    assert connection.sent[-1]["more_body"]
