"""Text that is spoken while it arrives: sentence by sentence, nothing lost when it stops."""

import threading

import numpy as np
import pytest

from dia_demo.engine.events import AudioChunk
from dia_demo.errors import InputError
from dia_demo.services.models import find_model
from dia_demo.services.settings import Settings
from dia_demo.services.speech import reading
from dia_demo.services.speech.incoming import SentenceBegun, speak_incoming
from dia_demo.services.synthesis import Synthesis
from dia_demo.services.take import Request


@pytest.fixture(scope="module")
def synthesis(tmp_path_factory):
    folder = tmp_path_factory.mktemp("incoming")
    made = Synthesis(Settings(takes_folder=folder / "takes", kept_folder=folder / "kept"))
    yield made
    made.close()


def speak(synthesis, pieces):
    info = find_model("nano")
    request = Request("", info.config.defaults, info)
    return list(speak_incoming(synthesis, request, pieces, threading.Event()))


def sentences(events):
    begun = (event.sentence for event in events if isinstance(event, SentenceBegun))
    return [(sentence.speaker, sentence.text) for sentence in begun]


def wave(events):
    return np.concatenate([event.samples for event in events if isinstance(event, AudioChunk)])


def test_a_text_is_the_same_speech_however_it_is_cut(synthesis):
    whole = speak(synthesis, ["[S1] Yes. [S2] No. [S1] All right."])
    cut = speak(synthesis, iter("[S1] Yes. [S2] No. [S1] All right."))
    assert sentences(whole) == [(1, "Yes."), (2, "No."), (1, "All right.")] == sentences(cut)
    assert np.array_equal(wave(whole), wave(cut))
    chunks = [event for event in cut if isinstance(event, AudioChunk)]
    lengths = np.cumsum([0, *(len(chunk.samples) for chunk in chunks)]) / chunks[0].sample_rate
    assert [chunk.start_seconds for chunk in chunks] == pytest.approx(lengths[:-1].tolist())


def test_a_sentence_is_spoken_before_the_text_goes_on(synthesis):
    spoken = threading.Event()

    def pieces():
        yield "Yes. And"
        assert spoken.wait(60), "the first sentence waits for the text after it"
        yield " so on."

    info = find_model("nano")
    request = Request("", info.config.defaults, info)
    events = []
    for event in speak_incoming(synthesis, request, pieces(), threading.Event()):
        events.append(event)
        if isinstance(event, AudioChunk):
            spoken.set()
    assert sentences(events) == [(1, "Yes."), (1, "And so on.")]


def test_when_the_text_stops_coming_what_came_is_spoken(synthesis, monkeypatch):
    monkeypatch.setattr(reading, "STOPPED_SECONDS", 0.2)
    ended = threading.Event()

    def pieces():
        yield "Yes and"
        ended.wait(60)

    events = speak(synthesis, pieces())
    ended.set()
    assert sentences(events) == [(1, "Yes and")] and len(wave(events)) > 1000
    assert isinstance(events[-1], reading.TextStopped)
    assert "All that had come was spoken" in events[-1].message


def test_what_came_before_an_error_is_spoken(synthesis):
    def pieces():
        yield "Yes and"
        raise OSError("gone")

    info = find_model("nano")
    request, events = Request("", info.config.defaults, info), []
    with pytest.raises(OSError, match="gone"):
        for event in speak_incoming(synthesis, request, pieces(), threading.Event()):
            events.append(event)
    assert len(wave(events)) > 1000
    with pytest.raises(InputError, match="piece of text must be text, not 3"):
        speak(synthesis, [3])
