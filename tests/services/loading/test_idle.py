"""An idle model is unloaded, its memory is free, and the next take loads it again."""

from __future__ import annotations

import gc
import threading
import weakref
from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from dia_demo.machine.system import exclude_from_collection
from dia_demo.services.loading import idle
from dia_demo.services.loading.idle import IdleUnload
from dia_demo.services.queue import Queue
from dia_demo.services.settings import Settings
from dia_demo.services.synthesis import Synthesis
from tests.helpers.synthesis_requests import letters, make_request, runtime, say

pytestmark = pytest.mark.usefixtures("talkative")


class Model:
    """A loaded model slot."""

    is_loaded, loaded_at = True, 0.0

    def __init__(self, is_embedded: bool = False) -> None:
        info = SimpleNamespace(is_embedded=is_embedded, name="big")
        self.engine = SimpleNamespace(info=info)

    def unload(self) -> None:
        self.is_loaded = False


class Time:
    """The clock of a queue and of what watches it."""

    def __init__(self, monkeypatch) -> None:
        self.now = 1000.0
        monkeypatch.setattr("dia_demo.services.queue.time.monotonic", lambda: self.now)


@pytest.fixture
def time(monkeypatch):
    return Time(monkeypatch)


def watched(time: Time, queue: Queue, model: Model, seconds: float = 60) -> IdleUnload:
    return IdleUnload(queue, model, seconds, lambda: time.now)


def test_a_model_is_unloaded_so_long_after_its_last_run(time):
    queue, model = Queue(5), Model()
    unload = watched(time, queue, model)
    time.now += 59
    unload.check()
    with queue.enter() as ticket:
        assert list(queue.wait(ticket, threading.Event())) == []
        time.now += 3600
        unload.check()
        assert model.is_loaded, "a run is using it"
    time.now += 59
    unload.check()
    assert model.is_loaded
    time.now += 1
    unload.check()
    assert not model.is_loaded and not queue.busy.is_set()


def test_a_model_that_was_loaded_a_moment_ago_stays(time):
    """The warm-up loads it without a run."""
    model = Model()
    unload = watched(time, Queue(5), model)
    time.now += 3600
    model.loaded_at = time.now - 59
    unload.check()
    assert model.is_loaded


@pytest.mark.parametrize(("seconds", "is_embedded"), [(0, False), (60, True)])
def test_never_and_the_embedded_voice_stay_for_ever(time, seconds, is_embedded):
    model = Model(is_embedded)
    unload = watched(time, Queue(5), model, seconds)
    time.now += 10**9
    unload.check()
    assert model.is_loaded


def test_who_comes_at_that_moment_keeps_the_model(time):
    class Crowded(Queue):
        """A run has the engine before the check gets a ticket."""

        @contextmanager
        def enter(self, cancel=None):
            with super().enter() as other:
                assert list(self.wait(other, threading.Event())) == []
                with super().enter(cancel) as ticket:
                    yield ticket

    model = Model()
    unload = watched(time, Crowded(5), model)
    time.now += 3600
    unload.check()
    assert model.is_loaded


@pytest.mark.long
def test_the_memory_is_free_and_the_next_take_is_the_same(folder, tmp_path, monkeypatch):
    returned = []
    monkeypatch.setattr(idle, "release_free_memory", lambda: returned.append(engine()))
    synthesis = Synthesis(Settings(runtime(folder), 2, tmp_path, unload_minutes=1))
    first = say(synthesis, make_request(synthesis))
    engine = weakref.ref(synthesis._model.engine)
    exclude_from_collection()  # As the app does after its start.
    try:
        synthesis._idle._clock = lambda: synthesis._queue.left_at + 59
        synthesis.unload_if_idle()
        assert engine() is not None and returned == []
        synthesis._idle._clock = lambda: synthesis._queue.left_at + 60
        synthesis.unload_if_idle()
        assert returned == [None], "freed before its memory is given back"
        assert synthesis.metrics.registry.get_sample_value(
            "dia_model_unloads_total", {"model": str(folder)}
        )
        again = say(synthesis, make_request(synthesis))
        assert letters(again).startswith("l") and letters(again).endswith("F")
        assert (again[-1].result.codes == first[-1].result.codes).all()
    finally:
        gc.unfreeze()
        synthesis.close()
