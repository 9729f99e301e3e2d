"""Stop, and several people at once: whoever leaves, wherever the take was, frees the place."""

import itertools
import re
import threading

import numpy as np
import pytest

from dia_demo.engine.engine import Engine
from dia_demo.engine.events import (
    AudioChunk,
    Cancelled,
    Finished,
    Loading,
    Progress,
    Result,
    Started,
    Waiting,
)
from dia_demo.errors import InputError
from dia_demo.services.settings import Settings
from dia_demo.services.synthesis import Synthesis
from dia_demo.services.take import without_silence
from tests.helpers.models.checkpoints import SMALL
from tests.helpers.synthesis_requests import letters, make_request, runtime, say

pytestmark = pytest.mark.usefixtures("talkative")


def test_stop_keeps_the_audio_generated_so_far(synthesis):
    whole = say(synthesis, make_request(synthesis))[-1].result
    cancel, steps = threading.Event(), []
    for event in synthesis.stream(make_request(synthesis, max_tokens=400), cancel):
        if isinstance(event, Progress):
            steps.append(event.step)
            if event.step >= 25:
                cancel.set()
    frames = max(steps) - SMALL.max_delay
    assert 22 <= frames < 390 and isinstance(event, Cancelled)
    both = min(frames, 50)
    np.testing.assert_array_equal(event.result.codes[:both], whole.codes[:both])
    take = synthesis.take(make_request(synthesis), event.result)
    assert len(take.samples) == frames * 256 and take.figures.finish_reason == "cancelled"


@pytest.mark.parametrize("level, is_kept", [(0.0, False), (1e-5, False), (0.1, True)])
def test_stop_in_the_silence_before_the_first_word_keeps_nothing(synthesis, level, is_kept):
    """A failed take would advise another seed, when the person only pressed Stop early."""
    figures = say(synthesis, make_request(synthesis))[-1].result.figures
    samples = level * np.random.default_rng(0).standard_normal(8000, np.float32)
    stopped = Cancelled(Result(np.zeros((9, 9), np.int64), samples, figures), 2)
    event = without_silence(stopped)
    assert event is stopped if is_kept else event == Cancelled(None, 2)


def test_stop_before_the_start_loads_nothing(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(Engine, "load", lambda *_: pytest.fail("a model was loaded"))
    synthesis = Synthesis(Settings(runtime(folder), 2, tmp_path))
    cancel = threading.Event()
    cancel.set()
    assert say(synthesis, make_request(synthesis), cancel) == [Cancelled(None)]


def test_stop_while_loading_stops_the_loading(folder, tmp_path):
    """The real model takes minutes to fetch and load: Stop once waited for all of it."""
    synthesis = Synthesis(Settings(runtime(folder), 2, tmp_path))
    cancel, events = threading.Event(), []
    for event in synthesis.stream(make_request(synthesis), cancel):
        events.append(event)
        if len(events) == 3:
            cancel.set()
    assert letters(events) == "lllC" and events[2].fraction < 1
    assert isinstance(say(synthesis, make_request(synthesis))[-1], Finished)


def test_closing_the_events_frees_the_place(folder, tmp_path):
    """A browser that went away counts as Stop, wherever the take was."""
    synthesis = Synthesis(Settings(runtime(folder), 0, tmp_path))
    for kind in (Loading, Started, Progress, AudioChunk):
        events = synthesis.stream(make_request(synthesis), threading.Event())
        next(event for event in events if isinstance(event, kind))
        with pytest.raises(InputError, match="queue is full"):
            say(synthesis, make_request(synthesis))
        events.close()
    assert isinstance(say(synthesis, make_request(synthesis))[-1], Finished)


def test_a_take_beyond_the_queue_limit_is_refused(folder, tmp_path):
    synthesis = Synthesis(Settings(runtime(folder), 1, tmp_path))
    first = synthesis.stream(make_request(synthesis), threading.Event())
    next(event for event in first if isinstance(event, Progress))
    second = synthesis.stream(make_request(synthesis), threading.Event())
    waiting = next(second)
    assert isinstance(waiting, Waiting) and waiting.place == 1
    with pytest.raises(InputError, match="queue is full"):
        say(synthesis, make_request(synthesis))
    assert isinstance(list(first)[-1], Finished)
    assert re.fullmatch("w*s[pa]+F", letters(second))


def test_stop_while_waiting_gives_the_place_back(folder, tmp_path):
    synthesis = Synthesis(Settings(runtime(folder), 1, tmp_path))
    first = synthesis.stream(make_request(synthesis), threading.Event())
    next(event for event in first if isinstance(event, Started))
    cancel = threading.Event()
    second = synthesis.stream(make_request(synthesis), cancel)
    next(second)
    cancel.set()
    assert list(second) == [Cancelled(None)]
    third = synthesis.stream(make_request(synthesis), threading.Event())
    assert next(third).place == 1
    third.close()
    first.close()


def test_takes_from_several_threads_never_interleave(synthesis):
    alone = {
        seed: say(synthesis, make_request(synthesis, seed=seed))[-1].result for seed in (1, 2, 3)
    }
    log, results = [], {}

    def work(seed: int) -> None:
        for event in synthesis.stream(make_request(synthesis, seed=seed), threading.Event()):
            if not isinstance(event, Waiting):
                log.append(seed)
        results[seed] = event.result

    threads = [threading.Thread(target=work, args=(seed,)) for seed in alone]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    # The last event of one may be written down after the first of the next has come.
    turns = [seed for seed, _ in itertools.groupby(log)]
    assert len(turns) <= 2 * len(alone) and set(turns) == set(alone)
    for seed, result in results.items():
        np.testing.assert_array_equal(result.codes, alone[seed].codes)
        np.testing.assert_array_equal(result.samples, alone[seed].samples)
