"""A take whose engine is lost goes on with another one, and its listener cannot tell."""

import re
import threading

import numpy as np
import pytest

from dia_demo.engine.events import AudioChunk, Progress, Started
from dia_demo.errors import RunError
from dia_demo.services.remote.engine import MOST_LOSSES, EngineLost, continue_elsewhere
from tests.helpers.synthesis_requests import letters, make_request, say

pytestmark = pytest.mark.usefixtures("talkative")


def sound(events, row=0) -> np.ndarray:
    chunks = [e for e in events if isinstance(e, AudioChunk) and e.row == row]
    starts = np.cumsum([0, *(len(chunk.samples) for chunk in chunks)])[:-1]
    rate = chunks[0].sample_rate
    assert [round(chunk.start_seconds * rate) for chunk in chunks] == starts.tolist()
    return np.concatenate([chunk.samples for chunk in chunks])


class Mortal:
    """Runs of a service that are lost after so many events, one number for each run."""

    def __init__(self, synthesis, requests, *lives):
        self.synthesis, self.requests, self.lives = synthesis, requests, list(lives)
        self.runs = 0

    def __call__(self):
        self.runs += 1
        life = self.lives.pop(0) if self.lives else None
        events = self.synthesis.stream_together(self.requests, threading.Event())
        for count, event in enumerate(events):
            if count == life:
                events.close()
                raise EngineLost("killed")
            yield event


@pytest.mark.parametrize("life", [0, 1, 10, 40, 55])
def test_the_listener_cannot_tell_that_an_engine_was_lost(synthesis, life):
    requests = [make_request(synthesis, seed=3)]
    expected = say(synthesis, requests[0])
    mortal = Mortal(synthesis, requests, life, life + 3)
    events = list(continue_elsewhere(mortal, 1))
    assert mortal.runs == 3
    np.testing.assert_array_equal(sound(events), sound(expected))
    np.testing.assert_array_equal(events[-1].result.codes, expected[-1].result.codes)
    assert re.fullmatch("[wl]*s[pa]+F", letters(events))
    steps = [event.step for event in events if isinstance(event, Progress)]
    assert steps == sorted(set(steps))


def test_each_row_of_a_run_goes_on_where_it_stopped(synthesis):
    requests = [make_request(synthesis, seed=seed, max_tokens=40 + 10 * seed) for seed in range(3)]
    expected = [say(synthesis, request) for request in requests]
    events = list(continue_elsewhere(Mortal(synthesis, requests, 120), 3))
    for row in range(3):
        np.testing.assert_array_equal(sound(events, row), sound(expected[row]))
        own = [event for event in events if event.row == row]
        assert sum(isinstance(event, Started) for event in own) == 1
        assert letters(own)[-1] == "F" and letters(own).count("F") == 1


def test_the_samples_do_not_depend_on_when_they_are_sent(synthesis, monkeypatch):
    request = make_request(synthesis, seed=5, speed=1.2)
    expected = sound(say(synthesis, request))
    monkeypatch.setattr("dia_demo.engine.events.REPORT_SECONDS", 0.005)
    np.testing.assert_array_equal(sound(say(synthesis, request)), expected)


def test_another_engine_with_other_samples_is_an_error(synthesis):
    mortal = Mortal(synthesis, [make_request(synthesis, seed=1)], 45)
    events = continue_elsewhere(mortal, 1)
    while not isinstance(next(events), AudioChunk):
        pass
    mortal.requests = [make_request(synthesis, seed=2)]
    with pytest.raises(RunError, match="other samples"):
        list(events)


def test_a_run_that_every_engine_is_lost_with_is_given_up(synthesis):
    mortal = Mortal(synthesis, [make_request(synthesis)], *[3] * 9)
    with pytest.raises(RunError, match="given up"):
        list(continue_elsewhere(mortal, 1))
    assert mortal.runs == MOST_LOSSES


def test_closing_the_events_closes_the_run(synthesis):
    ended = threading.Event()

    def make():
        try:
            yield from say(synthesis, make_request(synthesis))
        finally:
            ended.set()

    events = continue_elsewhere(make, 1)
    next(events)
    events.close()
    assert ended.is_set()
