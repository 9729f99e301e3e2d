"""What a body asks for: its script, its voices, its seed, and when two requests are the same."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from dia_demo.errors import InputError
from dia_demo.server.speech.bodies import DialogueBody, SpeechBody, TurnBody
from dia_demo.server.speech.questions import Asker, Questions, script_of
from dia_demo.services.settings import Settings
from dia_demo.services.speech.catalogue import Catalogue, seed_of
from tests.helpers.speech import HeldSpeaker

ANN = Asker("ann")


@pytest.fixture
def questions(tmp_path) -> Questions:
    return Questions(HeldSpeaker(), Catalogue(Settings(kept_folder=tmp_path)))


def body(**changes) -> SpeechBody:
    return SpeechBody.model_validate({"input": "Hello."} | changes)


def test_a_plain_request_means_the_model_of_the_app(questions):
    question = questions.of_speech(body(model="tts-1", instructions="Whisper.", user="x"), ANN)
    assert (question.job.model, question.job.text, question.format) == ("nano", "Hello.", "mp3")
    assert not question.has_seed


@pytest.mark.parametrize("voice", ["rms deep", {"id": "rms deep"}, ["rms deep"], "RMS Deep"])
def test_a_voice_may_be_a_name_an_object_or_a_list(questions, voice):
    assert questions.of_speech(body(voice=voice), ANN).job.voices[0].casefold() == "rms deep"


@pytest.mark.parametrize("voice", [None, "", []])
def test_without_a_voice_the_seed_chooses(questions, voice):
    assert questions.of_speech(body(voice=voice), ANN).job.voices == ("", "")


def test_two_voices_are_those_of_s1_and_s2(questions):
    job = questions.of_speech(body(voice=["awb", "rms"]), ANN).job
    assert job.voices == ("awb", "rms")
    with pytest.raises(InputError, match="at most 2 voices, not 3"):
        questions.of_speech(body(voice=["awb", "rms", "awb"]), ANN)


def test_openais_voices_are_voices_of_the_model_and_differ(questions):
    jobs = [questions.of_speech(body(voice=name), ANN).job for name in ("alloy", "echo", "nova")]
    assert len({job.voices for job in jobs}) == 3 and all(job.voices[0] for job in jobs)
    default = questions.of_speech(body(voice="default"), ANN).job
    assert default.voices == ("", "")


def test_with_a_model_without_named_voices_a_name_is_a_seed(questions):
    model = "nari-labs/Dia-1.6B-0626"
    first, again = (questions.of_speech(body(model=model, voice="alloy"), ANN) for _ in range(2))
    other = questions.of_speech(body(model=model, voice="echo"), ANN)
    assert first.job.seed == again.job.seed == seed_of("alloy") != other.job.seed
    assert first.job.voices == ("", "") and first.has_seed
    assert questions.of_speech(body(model=model, voice="alloy", seed=4), ANN).job.seed == 4


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        (dict(voice="nobody"), "no voice 'nobody'.*awb"),
        (dict(model="gpt-9"), "no model 'gpt-9'.*tts-1"),
        (dict(model="/etc"), "no model '/etc'"),
        (dict(input=" \n"), "text is empty"),
        (dict(input="[S1] [S2]"), "text is empty"),
        (dict(input="impossible"), "impossible"),
        (dict(model="nari-labs/Dia-1.6B-0626", voice="awb"), "no voice 'awb'"),
    ],
)
def test_what_cannot_be_made_is_refused(questions, changes, says):
    with pytest.raises(InputError, match=says):
        questions.of_speech(body(**changes), ANN)


@pytest.mark.parametrize(
    "wrong",
    [
        dict(speed=0.2), dict(speed=4.1), dict(speed=float("nan")), dict(response_format="aac"),
        dict(seed=-1), dict(seed=2**32), dict(temperature=float("inf")), dict(resume_from=-1),
        dict(voice=3), dict(input=None), dict(stream_format="xml"), dict(normalise="yes"),
    ],
)  # fmt: skip
def test_values_out_of_range_are_refused(wrong):
    with pytest.raises(ValidationError):
        body(**wrong)


def test_only_what_changes_the_bytes_tells_requests_apart(questions):
    def key(asker=ANN, **changes):
        return questions.of_speech(body(**changes), asker).key

    assert key() == key() == key(user="else", stream_format="sse", resume_from=7)
    others = [
        key(input="Hello!"), key(seed=0), key(speed=1.5), key(response_format="wav"),
        key(voice="awb"), key(temperature=0.5), key(Asker("ben")), key(Asker("ann", "", "again")),
        key(precision="float32"),
    ]  # fmt: skip
    assert len({key(), *others}) == 1 + len(others)


def test_turns_become_a_script_with_a_speaker_for_each_voice():
    turns = [
        TurnBody(text=" One. ", voice="b"),
        TurnBody(text="Two.", voice="a"),
        TurnBody(text="3.", voice="b"),
    ]
    assert script_of(turns, None) == (["b", "a"], "[S1] One. [S2] Two. [S1] 3.")
    assert script_of(turns[:2], 0.5)[1] == "[S1] One. (pause 0.5) [S2] Two."


def test_turns_that_no_script_can_have_are_refused(questions):
    three = [TurnBody(text="x", voice=name) for name in "abc"]
    with pytest.raises(InputError, match="3 different voices"):
        script_of(three, None)
    with pytest.raises(InputError, match="must not contain"):
        script_of([TurnBody(text="[S2] x")], None)
    for wrong in ([], [{"text": ""}], [{"voice": "a"}]):
        with pytest.raises(ValidationError):
            DialogueBody.model_validate({"turns": wrong})


def test_a_preview_is_the_same_words_in_the_embedded_voice(questions):
    big = body(model="nari-labs/Dia-1.6B-0626", voice="alloy", temperature=1.3, seed=5, speed=1.2)
    job = questions.of_preview(big, ANN).job
    assert (job.model, job.text, job.seed, job.speed) == ("nano", "Hello.", 5, 1.2)
    assert not job.params and job.voices == ("", "")
