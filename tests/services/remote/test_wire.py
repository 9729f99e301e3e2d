"""Requests and events as messages: what arrives is what was sent, and damage is refused."""

import json
from dataclasses import fields, is_dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from dia_demo.engine.events import (
    AudioChunk,
    Cancelled,
    Failed,
    Figures,
    Finished,
    FinishReason,
    Loading,
    Progress,
    Result,
    Started,
    Waiting,
)
from dia_demo.engine.time_left import TimeLeft
from dia_demo.errors import BusyError, InputError, RunError
from dia_demo.prompt.voice_traits import VoiceTraits
from dia_demo.services.remote.plain import PlainRequest, requests_here
from dia_demo.services.remote.wire import (
    RunOrder,
    pack_error,
    pack_event,
    pack_order,
    unpack_event,
    unpack_order,
)
from dia_demo.services.settings import Settings
from dia_demo.services.take import VoicePrompt
from dia_demo.text.pronunciations import Pronunciations
from tests.helpers.models.checkpoints import SMALL, random_codes
from tests.helpers.synthesis_requests import make_request

FIGURES = Figures(
    1.5, 3.0, 0.5, 2.0, 1.0, None, 130, FinishReason.END, 7, "nano", "int8", "cpu", 44100, 10**9,
    numerics={"kernel": "int8"}, surplus_turns=-1,
)  # fmt: skip
RESULT = Result(
    np.arange(18, dtype=np.int16).reshape(2, 9), np.linspace(-1, 1, 5, dtype=np.float32), FIGURES,
    ("Ann", None), np.array([3, -1], np.int32), (VoiceTraits(4.5, (0.25, 1.0)), None),
)  # fmt: skip
EVENTS = [
    Waiting(3, TimeLeft(1.0, 2.0), 4),
    Loading("Reading the weights", None, 1),
    Started(7, "nano", "int8", "cpu", 44100, 2.5, ("a note", "another"), 2, others=3),
    Progress(5, 0.1, 0.2, 0.5, 2.5, left=TimeLeft(0.5, 1.5)),
    AudioChunk(np.array([0.1, -0.2], np.float32), 44100, 0.5, 1),
    Finished(RESULT),
    Cancelled(None, 2),
    Cancelled(replace(RESULT, samples=None, places=None, voices=None)),
    Failed("It broke.", 1, "xpu"),
]


def equal(one, other) -> bool:
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and np.array_equal(one, other)
    if is_dataclass(one):
        names = [field.name for field in fields(one)]
        same = [equal(getattr(one, name), getattr(other, name)) for name in names]
        return type(one) is type(other) and all(same)
    return type(one) is type(other) and one == other


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: type(event).__name__)
def test_an_event_arrives_as_it_was_sent(event):
    assert equal(unpack_event(pack_event(event)), event)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"event":"Nothing","fields":{}}', "1", "null"])
def test_an_answer_of_another_program_is_an_error_with_a_remedy(text):
    with pytest.raises(RunError, match="same version"):
        unpack_event(text)


def test_a_message_with_a_missing_array_is_an_error():
    raw = json.loads(pack_event(EVENTS[4]))
    raw["fields"]["samples"]["data"] = "AAAA"
    with pytest.raises(RunError):
        unpack_event(json.dumps(raw))


@pytest.mark.parametrize("error", [InputError("no"), RunError("broke"), BusyError("full", 7)])
def test_an_error_is_raised_where_it_arrives(error):
    with pytest.raises(type(error), match=str(error)) as caught:
        unpack_event(pack_error(error))
    assert getattr(caught.value, "retry_seconds", None) == getattr(error, "retry_seconds", None)


def sent(request, synthesis, tmp_path):
    """The request as the engine gets it."""
    settings = Settings(synthesis.settings.runtime, takes_folder=tmp_path)
    order = unpack_order(pack_order(RunOrder([PlainRequest.from_request(request)], "page", True)))
    assert (order.session, order.in_int8_meanwhile) == ("page", True)
    models = {request.model.name: request.model}
    with requests_here(order.requests, models, settings) as requests:
        (there,) = requests
        audio = there.voice.audio.read_bytes() if there.voice and there.voice.audio else None
    return there, audio


def test_a_request_means_the_same_there(synthesis, tmp_path):
    request = make_request(synthesis, speed=1.25, with_audio=False)
    listed = Pronunciations.from_mapping({"Dia": "Dee-ah"})
    request = replace(request, normalise=True, pronunciations=listed)
    there, _ = sent(request, synthesis, tmp_path)
    assert there == request
    assert type(there.params.seed) is int


def test_the_codes_of_a_voice_travel(synthesis, tmp_path):
    voice = VoicePrompt(None, random_codes(SMALL, 12).astype(np.int16), "[S1] Hi.", False, "codec")
    there, _ = sent(make_request(synthesis, voice=voice), synthesis, tmp_path)
    assert equal(there.voice, voice)


def test_the_audio_of_a_voice_travels_and_is_removed(synthesis, tmp_path):
    path = tmp_path / "voice.WAV"
    path.write_bytes(b"sound")
    voice = VoicePrompt(path, None, "[S1] Hi.", True)
    there, audio = sent(make_request(synthesis, voice=voice), synthesis, tmp_path)
    assert audio == b"sound" and there.voice.audio.suffix == ".wav"
    assert there.voice.transcript == "[S1] Hi." and there.voice.has_own_words
    assert list(tmp_path.iterdir()) == [path]


def test_a_voice_that_no_message_can_hold_is_refused(synthesis, tmp_path, monkeypatch):
    monkeypatch.setattr("dia_demo.services.remote.plain.MOST_AUDIO_BYTES", 4)
    path = tmp_path / "voice.wav"
    path.write_bytes(b"sound")
    with pytest.raises(InputError, match="shorten it"):
        PlainRequest.from_request(make_request(synthesis, voice=VoicePrompt(path)))


@pytest.mark.parametrize("suffix", ["/../../x", "..", ".a/b", ".\0"])
def test_a_suffix_cannot_lead_out_of_the_folder(synthesis, tmp_path, suffix):
    path = tmp_path / "voice.wav"
    path.write_bytes(b"sound")
    plain = PlainRequest.from_request(make_request(synthesis, voice=VoicePrompt(path)))
    voice = replace(plain.voice, suffix=suffix).voice(tmp_path)
    assert voice.audio.parent == tmp_path and voice.audio.name == plain.voice.key


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"model": "someone/else"}, "does not have the model 'someone/else'"),
        ({"params": {"loudness": 3}}, "'loudness' is not a parameter"),
        ({"params": {"temperature": 9.0}}, "temperature must be"),
        ({"precision": "int3"}, "precision must be"),
        ({"pronunciations": "what"}, "line 1"),
    ],
)
def test_what_does_not_exist_there_is_refused(synthesis, tmp_path, changes, message):
    request = make_request(synthesis)
    plain = replace(PlainRequest.from_request(request), **changes)
    settings = Settings(synthesis.settings.runtime, takes_folder=tmp_path)
    with (
        pytest.raises(InputError, match=message),
        requests_here([plain], {request.model.name: request.model}, settings),
    ):
        pass
    assert list(Path(tmp_path).iterdir()) == []


@pytest.mark.parametrize("text", ["", "{}", '{"requests": []}', '{"requests": [{}]}', "[" * 9999])
def test_no_order_is_refused(text):
    with pytest.raises(InputError):
        unpack_order(text)


def test_a_device_of_this_machine_is_refused(synthesis):
    request = make_request(synthesis)
    runtime = replace(request.runtime, device="xpu")
    with pytest.raises(InputError, match="xpu"):
        PlainRequest.from_request(replace(request, runtime=runtime))
