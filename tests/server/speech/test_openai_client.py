"""OpenAI's own package against a real server: what it sends, what it makes of the answers."""

from __future__ import annotations

import base64
import json
import subprocess
import sys

import openai
import pytest
from openai import OpenAI

from dia_demo.errors import BusyError
from tests.helpers.page.examples import example
from tests.helpers.speech import (
    WORDS,
    HeldSpeaker,
    assert_speech,
    decode,
    serve_speech,
    settings_in,
)

TOKEN = "a-token-of-somebody-0123456789"


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    with serve_speech(settings_in(tmp_path_factory.mktemp("openai"), tokens=(TOKEN,))) as address:
        yield address


@pytest.fixture(scope="module")
def client(url):
    with client_of(url) as made:
        yield made


def client_of(url: str, key: str = TOKEN) -> OpenAI:
    return OpenAI(api_key=key, base_url=f"{url}/v1", max_retries=0)


def speech(client: OpenAI, **changes):
    return client.audio.speech.create(
        **{"model": "tts-1", "voice": "alloy", "input": WORDS} | changes
    )


@pytest.mark.parametrize("form", ["mp3", "opus", "flac", "wav", "pcm"])
def test_every_format_is_speech(client, form):
    answer = speech(client, response_format=form, extra_body={"seed": 5})
    assert_speech(answer.read())
    assert answer.response.headers["x-seed"] == "5"
    assert answer.response.headers["x-format"] == form


def test_mp3_is_the_default_and_a_file_has_every_byte(client, tmp_path):
    path = tmp_path / "speech.mp3"
    create = client.audio.speech.with_streaming_response.create
    with create(model="tts-1", voice="alloy", input=WORDS, extra_body={"seed": 6}) as answer:
        assert answer.headers["content-type"] == "audio/mpeg"
        answer.stream_to_file(path)
    assert_speech(path.read_bytes())
    assert path.read_bytes() == speech(client, extra_body={"seed": 6}).read()


def test_events_carry_the_same_audio(client):
    create = client.audio.speech.with_streaming_response.create
    given = {"model": "gpt-4o-mini-tts", "voice": "alloy", "input": WORDS, "response_format": "pcm"}
    with create(**given, stream_format="sse", extra_body={"seed": 7}) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        lines = [line for line in answer.iter_lines() if line]
    *deltas, done = [json.loads(line.removeprefix("data: ")) for line in lines]
    assert {delta["type"] for delta in deltas} == {"speech.audio.delta"}
    assert done["type"] == "speech.audio.done"
    assert set(done["usage"]) == {"input_tokens", "output_tokens", "total_tokens"}
    audio = b"".join(base64.b64decode(delta["audio"]) for delta in deltas)
    assert_speech(audio)
    assert audio == speech(client, response_format="pcm", extra_body={"seed": 7}).read()


def test_a_voice_is_a_name_or_an_object(client):
    given = {"response_format": "wav", "extra_body": {"seed": 8}}
    deep = speech(client, voice="rms deep", **given).read()
    assert_speech(deep)
    assert deep == speech(client, voice={"id": "rms deep"}, **given).read()
    assert deep != speech(client, voice="awb high", **given).read()


def test_speed_changes_the_length(client):
    def seconds(speed: float) -> float:
        given = {"response_format": "wav", "speed": speed, "extra_body": {"seed": 9}}
        samples, rate = decode(speech(client, **given).read())
        return len(samples) / rate

    assert seconds(2.0) == pytest.approx(seconds(1.0) / 2, rel=0.1)


def test_models_are_listed(client):
    models = client.models.list().data
    assert models[0].id == "nano" and models[0].object == "model"
    assert {"tts-1", "tts-1-hd"} <= {model.id for model in models}
    assert client.models.retrieve("nano").id == "nano"
    with pytest.raises(openai.NotFoundError, match="no model 'gpt-9'"):
        client.models.retrieve("gpt-9")


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"voice": "nobody"}, "There is no voice 'nobody'"),
        ({"model": "gpt-9"}, "There is no model 'gpt-9' here. There are: nano"),
        ({"input": ""}, "The text is empty"),
        ({"speed": 9}, "speed: Input should be less than or equal to 4, not 9"),
        ({"response_format": "aac"}, "response_format: Input should be 'mp3', 'opus'"),
    ],
)
def test_mistakes_are_bad_requests_with_a_sentence(client, changes, says):
    with pytest.raises(openai.BadRequestError) as caught:
        speech(client, **changes)
    assert says in caught.value.body["message"]
    assert caught.value.type == "invalid_request_error"


def test_a_wrong_key_is_refused_and_lists_are_open(url):
    with client_of(url, "sk-wrong") as stranger:
        with pytest.raises(openai.AuthenticationError) as caught:
            speech(stranger)
        assert "not one of the server" in caught.value.body["message"]
        assert stranger.models.list().data


def test_a_path_that_is_not_there(client):
    with pytest.raises(openai.NotFoundError) as caught:
        client.embeddings.create(model="nano", input="x")
    assert "/v1/embeddings" in caught.value.body["message"]


def test_a_full_queue_says_when_to_come_again(tmp_path):
    speaker = HeldSpeaker(problem=BusyError("Eight takes are waiting: try again.", 7))
    speaker.release()
    with serve_speech(settings_in(tmp_path), speaker=speaker) as url, client_of(url) as client:
        with pytest.raises(openai.RateLimitError) as caught:
            speech(client)
    assert caught.value.response.headers["retry-after"] == "7"
    assert caught.value.body["message"] == "Eight takes are waiting: try again."


def test_its_own_retries_get_the_answer(tmp_path):
    """The package repeats a request that was refused, after the seconds that it was told."""
    speaker = HeldSpeaker(problem=BusyError("Try again.", 1))
    speaker.release()
    promise = speaker.promise

    def promise_then_recover(job):
        if speaker.started:
            speaker.problem = None
        return promise(job)

    speaker.promise = promise_then_recover
    with serve_speech(settings_in(tmp_path), speaker=speaker) as url:
        with OpenAI(api_key="any", base_url=f"{url}/v1", max_retries=2) as client:
            assert decode(speech(client, response_format="wav").read())[0].any()
    assert len(speaker.started) == 2


def test_a_voice_is_uploaded_by_the_package(client, tmp_path):
    wav = speech(client, voice="rms deep", response_format="wav", extra_body={"seed": 3}).read()
    given = {"audio_sample": ("me.wav", wav, "audio/wav"), "consent": "cons_1234", "name": "Me"}
    with pytest.raises(openai.BadRequestError, match="ref_text is missing"):
        client.audio.voices.create(**given)
    voice = client.audio.voices.create(**given, extra_body={"ref_text": WORDS})
    assert (voice.id, voice.name, voice.object) == ("Me", "Me", "audio.voice")
    assert_speech(speech(client, voice={"id": voice.id}, extra_body={"seed": 4}).read())


def test_the_examples_of_the_documents_run(tmp_path):
    with serve_speech(settings_in(tmp_path)) as home:
        python = example("python", home, "OpenAI", "serving.md")
        bash = example("bash", home, "/v1/audio/speech", "serving.md")
        for command in ([sys.executable, "-c", python], ["bash", "-c", bash]):
            subprocess.run(command, cwd=tmp_path, check=True)
            samples, rate = decode((tmp_path / "hello.mp3").read_bytes())
            assert len(samples) > 0.5 * rate and abs(samples).max() > 0.05
            (tmp_path / "hello.mp3").unlink()
