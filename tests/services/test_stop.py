"""Stop, and several people at once: whoever leaves, wherever the take was, frees the place."""

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
from dia_demo.services.take import drop_silent_result
from tests.helpers.models.checkpoints import SMALL
from tests.helpers.synthesis_requests import letters, make_request, runtime, say

pytestmark = pytest.mark.usefixtures("talkative", "slow_steps")


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
    event = drop_silent_result(stopped)
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
    synthesis = Synthesis(Settings(runtime(folder), 0, tmp_path, at_once=1))
    for kind in (Loading, Started, Progress, AudioChunk):
        events = synthesis.stream(make_request(synthesis, max_tokens=400), threading.Event())
        next(event for event in events if isinstance(event, kind))
        with pytest.raises(InputError, match="queue is full"):
            say(synthesis, make_request(synthesis))
        events.close()
    assert isinstance(say(synthesis, make_request(synthesis))[-1], Finished)


def test_a_take_beyond_the_queue_limit_is_refused(folder, tmp_path):
    synthesis = Synthesis(Settings(runtime(folder), 1, tmp_path, at_once=1))
    first = synthesis.stream(make_request(synthesis, max_tokens=400), threading.Event())
    next(event for event in first if isinstance(event, Progress))
    second = synthesis.stream(make_request(synthesis), threading.Event())
    waiting = next(second)
    assert isinstance(waiting, Waiting) and waiting.place == 1
    with pytest.raises(InputError, match="queue is full"):
        say(synthesis, make_request(synthesis))
    assert isinstance(list(first)[-1], Finished)
    assert re.fullmatch("w*s[pa]+F", letters(second))


def test_stop_while_waiting_gives_the_place_back(folder, tmp_path):
    synthesis = Synthesis(Settings(runtime(folder), 1, tmp_path, at_once=1))
    first = synthesis.stream(make_request(synthesis, max_tokens=400), threading.Event())
    next(event for event in first if isinstance(event, Started))
    cancel = threading.Event()
    second = synthesis.stream(make_request(synthesis), cancel)
    next(second)
    cancel.set()
    assert [event for event in second if not isinstance(event, Waiting)] == [Cancelled(None)]
    third = synthesis.stream(make_request(synthesis), threading.Event())
    assert next(third).place == 1
    third.close()
    first.close()


def test_takes_of_several_threads_are_made_together(synthesis):
    """Each is the take that is made alone, and says that it was not."""
    alone = {
        seed: say(synthesis, make_request(synthesis, seed=seed, max_tokens=200))[-1].result
        for seed in (1, 2, 3)
    }
    results, started = {}, threading.Barrier(len(alone))

    def work(seed: int) -> None:
        request = make_request(synthesis, seed=seed, max_tokens=200)
        started.wait(30)
        results[seed] = say(synthesis, request)[-1].result

    threads = [threading.Thread(target=work, args=(seed,)) for seed in alone]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=180)
    assert max(result.figures.shared_with for result in results.values()) >= 1
    for seed, result in results.items():
        np.testing.assert_array_equal(result.codes, alone[seed].codes)
        np.testing.assert_array_equal(result.samples, alone[seed].samples)


def test_a_take_of_another_model_waits_until_the_others_are_done(synthesis, folder):
    """And one that comes later with the first model does not pass it."""
    first = synthesis.stream(make_request(synthesis, max_tokens=400), threading.Event())
    next(event for event in first if isinstance(event, Progress))
    other = runtime(folder, precision="bfloat16")
    second = synthesis.stream(make_request(synthesis, runtime=other), threading.Event())
    assert isinstance(next(second), Waiting)
    third = synthesis.stream(make_request(synthesis), threading.Event())
    assert next(third).place == 2
    assert isinstance(list(first)[-1], Finished)
    assert next(third).place == 2
    assert list(second)[-1].result.figures.precision == "bfloat16"
    end = list(third)[-1]
    assert isinstance(end, Finished) and end.result.figures.precision == "float32"
