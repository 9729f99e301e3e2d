"""The service with another machine's engine: a page or a program cannot tell the difference."""

import re
import threading
from dataclasses import replace

import numpy as np
import pytest

from dia_demo.engine.events import AudioChunk, Cancelled, Finished
from dia_demo.errors import BusyError, InputError, RunError
from dia_demo.services.people import Caller, Visitor
from dia_demo.services.remote.client import EngineClient
from dia_demo.services.remote.synthesis import RemoteSynthesis, open_synthesis
from dia_demo.services.settings import Settings
from dia_demo.services.synthesis import Synthesis
from dia_demo.services.take import VoicePrompt
from tests.helpers.engines import serve_engine, until
from tests.helpers.models.checkpoints import SMALL, random_codes
from tests.helpers.synthesis_requests import letters, make_request, say

pytestmark = pytest.mark.usefixtures("talkative", "slow_steps")
TOKEN = "a-token-of-the-engine"


@pytest.fixture(scope="module")
def engine(synthesis):
    with serve_engine(synthesis) as url:
        yield url


@pytest.fixture
def remote(engine, synthesis, tmp_path):
    return open_synthesis(replace(synthesis.settings, engine=engine, takes_folder=tmp_path))


def test_a_take_is_the_same_as_here(remote, synthesis):
    request = make_request(synthesis, seed=4, speed=1.1)
    expected, events = say(synthesis, request), say(remote, request)
    assert re.fullmatch("[wl]*s[pa]+F", letters(events))
    there = np.concatenate([e.samples for e in events if isinstance(e, AudioChunk)])
    np.testing.assert_array_equal(there, expected[-1].result.samples)
    np.testing.assert_array_equal(events[-1].result.codes, expected[-1].result.codes)
    take = remote.take(request, events[-1].result)
    assert (
        take.metadata()["codes"] == synthesis.take(request, expected[-1].result).metadata()["codes"]
    )


def test_no_model_is_loaded_here(remote, synthesis):
    say(remote, make_request(synthesis))
    remote.warm_up()
    assert list(remote.load()) == []
    with pytest.raises(AssertionError):
        remote._model.engine  # noqa: B018


def test_the_rows_of_a_run_are_made_together(remote, synthesis):
    requests = [make_request(synthesis, seed=seed) for seed in (1, 2, 3)]
    events = list(remote.stream_together(requests, threading.Event()))
    ends = {event.row: event for event in events if isinstance(event, Finished)}
    for row, request in enumerate(requests):
        expected = say(synthesis, request)[-1].result
        np.testing.assert_array_equal(ends[row].result.codes, expected.codes)


def test_a_voice_goes_with_the_request(remote, synthesis):
    codes = random_codes(SMALL, 6).astype(np.int16)
    request = make_request(synthesis, voice=VoicePrompt(None, codes, "[S1] Hi."))
    expected = say(synthesis, request)[-1].result.codes
    np.testing.assert_array_equal(say(remote, request)[-1].result.codes, expected)


def test_stop_keeps_what_was_made(remote, synthesis):
    cancel = threading.Event()
    events = []
    for event in remote.stream(make_request(synthesis, max_tokens=590), cancel):
        events.append(event)
        if isinstance(event, AudioChunk):
            cancel.set()
    assert isinstance(events[-1], Cancelled)
    assert 0 < len(events[-1].result.codes) < 560
    assert not synthesis._queue.rows


def test_a_reader_that_leaves_frees_the_row(remote, synthesis):
    events = remote.stream(make_request(synthesis, max_tokens=590), threading.Event())
    while not isinstance(next(events), AudioChunk):
        pass
    assert synthesis._queue.rows == 1
    events.close()
    until(lambda: not synthesis._queue.rows)


def test_what_the_engine_refuses_is_refused_here(remote, synthesis):
    """Its models are its own; what is known to be wrong does not reach it."""
    request = make_request(synthesis)
    other = replace(request, model=replace(request.model, name="other/model"))
    with pytest.raises(InputError, match="does not have the model 'other/model'"):
        say(remote, other)
    device = replace(request, runtime=replace(request.runtime, device="xpu"))
    with pytest.raises(InputError, match="choose the CPU"):
        say(remote, device)


def test_the_visitors_of_a_page_have_their_own_limits(remote, synthesis):
    """Also beyond the engine's, which are those of a session."""
    requests = [make_request(synthesis, max_tokens=590)] * 3
    callers = [Caller(Visitor("10.0.0.1", "page")) for _ in requests]
    runs = [remote.stream(*each) for each in zip(requests, callers, strict=True)]
    next(runs[0]), next(runs[1])
    with pytest.raises(BusyError, match="2 takes running"):
        next(runs[2])
    for run in runs:
        run.close()
    until(lambda: not synthesis._queue.rows)


def test_an_engine_that_cannot_be_reached_is_named(synthesis, tmp_path):
    settings = replace(synthesis.settings, engine="http://127.0.0.1:9", takes_folder=tmp_path)
    with pytest.raises(RunError, match=r"http://127.0.0.1:9 cannot be reached .* DIA_ENGINE"):
        say(open_synthesis(settings), make_request(synthesis))


def test_an_engine_with_tokens_needs_one(synthesis, tmp_path):
    settings = replace(synthesis.settings, tokens=(TOKEN,))
    with serve_engine(synthesis, settings) as url:
        for token in ("", "another"):
            remote = RemoteSynthesis(replace(settings, engine=url), EngineClient(url, token))
            with pytest.raises(RunError, match="DIA_ENGINE_TOKEN"):
                say(remote, make_request(synthesis))
        remote = RemoteSynthesis(replace(settings, engine=url), EngineClient(url, TOKEN))
        assert isinstance(say(remote, make_request(synthesis))[-1], Finished)
    assert TOKEN not in repr(EngineClient(url, TOKEN))


def test_an_engine_that_ends_in_a_take_is_named(folder, synthesis, tmp_path):
    other = Synthesis(replace(synthesis.settings, takes_folder=tmp_path))
    with serve_engine(other) as url:
        remote = open_synthesis(replace(other.settings, engine=url))
        events = remote.stream(make_request(synthesis, max_tokens=590), threading.Event())
        while not isinstance(next(events), AudioChunk):
            pass
        other.close()
        with pytest.raises(RunError, match="shutting down|was closed"):
            for event in events:
                if letters([event]) == "X":
                    raise RunError(event.message)


def test_without_the_setting_the_engine_is_this_process():
    assert type(open_synthesis(Settings())) is Synthesis
    assert "engine-token" not in repr(Settings(engine_token="engine-token"))
