"""What /metrics counts: steps, takes by how they ended, sound, loadings; each app its own."""

from __future__ import annotations

import threading

import pytest

from dia_demo.engine.batch import Batch
from dia_demo.errors import RunError
from dia_demo.services.settings import Settings
from dia_demo.services.synthesis import Synthesis
from tests.helpers.synthesis_requests import make_request, runtime, say

pytestmark = pytest.mark.usefixtures("talkative")


@pytest.fixture
def app(folder, tmp_path):
    synthesis = Synthesis(Settings(runtime(folder), 2, tmp_path))
    yield synthesis
    synthesis.close()


def value(app: Synthesis, name: str, **labels: str) -> float:
    return app.metrics.registry.get_sample_value(name, labels)


def takes(app: Synthesis) -> dict[str, float]:
    ends = ("end", "max_tokens", "cancelled", "failed")
    return {end: value(app, "dia_takes_total", ended=end) for end in ends}


NONE = {"end": 0, "max_tokens": 0, "cancelled": 0, "failed": 0}


def test_a_take_adds_its_steps_and_its_sound(app, folder):
    assert takes(app) == NONE
    figures = say(app, make_request(app))[-1].result.figures
    assert takes(app) == NONE | {str(figures.finish_reason): 1}
    assert value(app, "dia_decoder_steps_total") == figures.steps
    assert value(app, "dia_audio_seconds_total") == figures.audio_seconds
    assert value(app, "dia_wall_seconds_total") == figures.wall_seconds
    assert value(app, "dia_realtime_factor_count") == 1
    assert value(app, "dia_realtime_factor_sum") == figures.realtime_factor
    assert value(app, "dia_first_audio_seconds_count") == 1
    loaded = {"model": str(folder), "result": "loaded"}
    assert value(app, "dia_model_loads_total", **loaded) == 1
    say(app, make_request(app, seed=2))
    assert value(app, "dia_model_loads_total", **loaded) == 1


def test_a_stopped_take_counts_with_what_was_made_of_it(app, slow_steps):
    cancel, steps = threading.Event(), 0
    for event in app.stream(make_request(app, max_tokens=400), cancel):
        steps = getattr(event, "step", steps)
        if steps >= 5:
            cancel.set()
    assert takes(app) == NONE | {"cancelled": 1}
    assert value(app, "dia_decoder_steps_total") == event.result.figures.steps >= 5


def test_a_take_that_nobody_reads_to_its_end_is_a_cancelled_one(app, slow_steps):
    events = app.stream(make_request(app, max_tokens=400), threading.Event())
    while getattr(next(events), "step", 0) < 5:
        pass
    events.close()
    assert takes(app) == NONE | {"cancelled": 1}


def test_failures_count(app, folder, monkeypatch):
    def broken(*_):
        raise RunError("The decoder broke. Fetch it again.")

    say(app, make_request(app))
    before = takes(app)
    monkeypatch.setattr(Batch, "step", broken)
    say(app, make_request(app))
    assert takes(app) == before | {"failed": 1}
    app._model.unload()
    monkeypatch.setattr("dia_demo.services.loading.model_slot.Engine.load", broken)
    with pytest.raises(RunError):
        say(app, make_request(app))
    failed = {"model": str(folder), "result": "failed"}
    assert value(app, "dia_model_loads_total", **failed) == 1


def test_the_queue_is_read_when_somebody_asks(app, slow_steps):
    def lengths() -> tuple[float, float]:
        return value(app, "dia_queue_length"), value(app, "dia_rows")

    events = app.stream(make_request(app, max_tokens=400), threading.Event())
    while getattr(next(events), "step", 0) < 1:
        pass
    with app._queue.enter():
        assert lengths() == (1, 1)
    events.close()
    assert lengths() == (0, 0) and value(app, "dia_places") == app.settings.at_once
    assert value(app, "dia_memory_bytes") > 10**7


def test_two_apps_in_one_process_count_apart(app, folder, tmp_path):
    other = Synthesis(Settings(runtime(folder), 2, tmp_path))
    say(app, make_request(app))
    assert takes(other) == NONE
    other.close()
