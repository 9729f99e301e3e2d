"""A text spoken in one take while it arrives: the take of the whole text, and nothing lost."""

import threading
from contextlib import closing
from dataclasses import replace

import numpy as np
import pytest

from dia_demo.config import RuntimeConfig
from dia_demo.engine.events import AudioChunk, Finished
from dia_demo.errors import InputError, RunError
from dia_demo.services.models import find_model
from dia_demo.services.settings import Settings
from dia_demo.services.speech import continued, reading
from dia_demo.services.speech.incoming import SentenceBegun, TextStopped, speak_incoming
from dia_demo.services.synthesis import Synthesis
from dia_demo.services.take import Request
from tests.helpers.models.mimi import write_small_dia2

TEXT = "[S1] Hello there, my friend. [S2] Hi: who is that? [S1] It is me, of all people."
SENTENCES = [
    (1, "Hello there, my friend."),
    (2, "Hi: who is that?"),
    (1, "It is me, of all people."),
]
WORDS = "Hello there, my friend. Hi who is that? It is me, of all people.".split()


@pytest.fixture(scope="module")
def synthesis(tmp_path_factory):
    folder = write_small_dia2(tmp_path_factory.mktemp("continued") / "dia2")
    runtime = RuntimeConfig(model=str(folder), precision="float32", threads=1)
    made = Synthesis(Settings(runtime, takes_folder=folder / "takes"))
    yield made
    made.close()


@pytest.fixture
def results(synthesis, monkeypatch):
    """The results of all takes."""
    found, stream = [], synthesis.stream

    def listen(*arguments, **options):
        for event in stream(*arguments, **options):
            if isinstance(event, Finished):
                found.append(event.result)
            yield event

    monkeypatch.setattr(synthesis, "stream", listen)
    return found


def request_for(synthesis, script="", **params) -> Request:
    info = find_model(synthesis.settings.runtime.model)
    params = replace(info.config.defaults, **({"seed": 4} | params))
    return Request(script, params, info, synthesis.settings.runtime)


def speech(synthesis, pieces, cancel=None, **params):
    cancel = cancel or threading.Event()
    return speak_incoming(synthesis, request_for(synthesis, **params), pieces, cancel)


def sentences(events):
    begun = (event.sentence for event in events if isinstance(event, SentenceBegun))
    return [(sentence.speaker, sentence.text) for sentence in begun]


def wave(events):
    return np.concatenate([event.samples for event in events if isinstance(event, AudioChunk)])


def words_of(results):
    return [word.word for result in results for word in result.words]


PAUSES = '[S1] Hello (pause 0.5) there, <break time="0.3s"/> friend. [S2] Hi (sighs a lot).'


@pytest.mark.parametrize("text", [TEXT, PAUSES])
@pytest.mark.parametrize("cut", [lambda text: [text], list], ids=["at once", "by characters"])
def test_it_is_the_take_of_the_whole_text(synthesis, text, cut):
    whole = request_for(synthesis, text)
    expected = wave(synthesis.stream(whole, threading.Event()))
    events = list(speech(synthesis, cut(text)))
    np.testing.assert_array_equal(wave(events), expected)
    assert sentences(events) == SENTENCES or text is PAUSES


def test_it_speaks_within_a_sentence_before_the_text_goes_on(synthesis):
    spoken = threading.Event()

    def pieces():
        yield "So many words and no end of the sen"
        assert spoken.wait(60), "the words wait for the text after them"
        yield "tence."

    for event in speech(synthesis, pieces()):
        if isinstance(event, AudioChunk) and len(event.samples):
            spoken.set()
    assert spoken.is_set()


def test_when_the_text_stops_coming_what_came_is_spoken(synthesis, results, monkeypatch):
    monkeypatch.setattr(reading, "STOPPED_SECONDS", 0.5)
    never = threading.Event()

    def pieces():
        yield TEXT
        never.wait()

    events = list(speech(synthesis, pieces()))
    never.set()
    assert isinstance(events[-1], TextStopped) and sentences(events) == SENTENCES
    assert words_of(results) == WORDS


@pytest.mark.parametrize(
    "bad, error, says",
    [
        (ValueError("the model is gone"), ValueError, "the model is gone"),
        ("\x00 more", InputError, r"U\+0000"),
        ("(pause 99) more", InputError, "too long: a pause"),
    ],
)
def test_what_came_before_an_error_is_spoken(synthesis, results, bad, error, says):
    def pieces():
        yield TEXT + " "
        if isinstance(bad, Exception):
            raise bad
        yield bad

    with pytest.raises(error, match=says):
        list(speech(synthesis, pieces()))
    assert words_of(results) == WORDS


def test_a_text_that_is_too_long_for_a_take_goes_on_in_its_voice(synthesis, results, monkeypatch):
    voices, validate = [], synthesis.validate
    monkeypatch.setattr(
        synthesis, "validate", lambda request: voices.append(request.voice) or validate(request)
    )
    events = list(speech(synthesis, [TEXT, " ", TEXT], max_tokens=120))
    assert sentences(events) == SENTENCES * 2 and len(results) > 1
    assert words_of(results) == WORDS * 2
    first, *others = voices
    assert first is None and all(voice is others[0] for voice in others)
    said = results[0].words[: len(others[0].words)]
    assert [word.word for word in others[0].words] == [word.word for word in said]
    np.testing.assert_array_equal(others[0].codes, results[0].codes[: len(others[0].codes)])


def test_words_that_have_no_place_in_a_take_are_said_in_the_next(synthesis, results, monkeypatch):
    monkeypatch.setattr(continued, "FILLED", 100.0)
    monkeypatch.setattr(continued, "OVERFILLED", 100.0)
    monkeypatch.setattr(continued, "VOICE_SECONDS", 1.0)
    list(speech(synthesis, [TEXT], max_tokens=60))
    said = words_of(results)
    again = [k for k in range(1, len(said)) if said[k] == said[k - 1]]
    assert len(results) > 1 and len(again) == len(results) - 1
    assert [word for k, word in enumerate(said) if k not in again] == WORDS


def test_a_take_without_room_for_a_word_is_refused(synthesis, monkeypatch):
    shortest = request_for(synthesis).model.config.shortest_max_tokens
    with pytest.raises(RunError, match="Not even a word"):
        list(speech(synthesis, [TEXT], max_tokens=shortest))


@pytest.mark.parametrize("by_closing", [True, False])
def test_it_stops_while_it_waits_for_text(synthesis, by_closing):
    cancel, over = threading.Event(), threading.Event()

    def pieces():
        yield "So many words and no end"
        over.wait()

    with closing(speech(synthesis, pieces(), cancel)) as events:
        heard = next(event for event in events if isinstance(event, AudioChunk))
        assert len(heard.samples)
        if not by_closing:
            cancel.set()
            list(events)
    over.set()


def test_a_pause_alone_is_no_sentence(synthesis):
    events = list(speech(synthesis, ["[S1] Yes. (pause 0.5) [S2] No."]))
    assert sentences(events) == [(1, "Yes."), (2, "No.")]


@pytest.mark.parametrize("text", ["", " \n", "… [S1] —"])
def test_a_text_without_words_is_no_speech(synthesis, text):
    assert not [event for event in speech(synthesis, [text]) if isinstance(event, AudioChunk)]
