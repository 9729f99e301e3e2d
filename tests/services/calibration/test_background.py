"""A large model is calibrated in the background, and takes go on in int8 meanwhile."""

from __future__ import annotations

import shutil
import threading
from contextlib import closing
from dataclasses import replace

import pytest

pytest.importorskip("numba")

from dia_demo.engine.events import Cancelled, Finished, Loading, Started
from dia_demo.errors import InputError, RunError
from dia_demo.families.resolve import resolve
from dia_demo.machine import system
from dia_demo.model.weights.packed_cache import prepared_file
from dia_demo.services.calibration import background
from dia_demo.services.calibration.background import BackgroundCalibration, run_calibration
from dia_demo.services.calibration.job import CalibrationJob
from dia_demo.services.settings import Settings
from dia_demo.services.synthesis import Synthesis
from dia_demo.services.worker.messages import JobProgress
from dia_demo.services.worker.worker import JobStopped
from dia_demo.task import Task
from dia_demo.ui.generate import expectation
from dia_demo.ui.generate.expectation import ExpectationHandlers
from tests.helpers.models.checkpoints import write_small
from tests.helpers.models.kernels import choose_compiled
from tests.helpers.models.mimi import write_small_dia2
from tests.helpers.page.page_stubs import expectation_values, parts_by_name
from tests.helpers.synthesis_requests import make_request, runtime

pytestmark = pytest.mark.kernels

SOON = 300.0


class Children:
    """Children that wait to be told to go on, and then end with `outcome`."""

    def __init__(self, outcome: object = None) -> None:
        self.outcome, self.jobs, self.go_on = outcome, [], threading.Event()
        self.is_half_done = threading.Event()

    def __call__(self, job, cancel, must_pause):
        self.jobs.append(job)
        self.must_pause = must_pause
        yield JobProgress("Calibrating int4", 0.5)
        self.is_half_done.set()
        while not self.go_on.wait(0.01):
            if cancel.is_set():
                raise JobStopped
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return {"seconds": 1.0}


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    return write_small(tmp_path_factory.mktemp("checkpoint") / "small", seed=5, codec=True)


@pytest.fixture
def folder(checkpoint, monkeypatch):
    """A checkpoint that is not calibrated, in the cache that the child process uses, too."""
    choose_compiled(monkeypatch)
    yield checkpoint
    shutil.rmtree(prepared_file(checkpoint, "int4").parent, ignore_errors=True)


@pytest.fixture
def service(folder, tmp_path, monkeypatch):
    """A service with int4 of the tiny model, which counts as a large one."""
    monkeypatch.setattr(background, "SMALL_WEIGHTS", 0)
    synthesis = Synthesis(Settings(runtime(folder, precision="int4"), takes_folder=tmp_path))
    yield synthesis
    synthesis.close()


def take(synthesis, in_int8_meanwhile=True) -> tuple[str, str, list]:
    """The precision of a take, its notes, and all its events."""
    events = list(synthesis.stream(make_request(synthesis), threading.Event(), in_int8_meanwhile))
    assert isinstance(events[-1], Finished)
    (started,) = (event for event in events if isinstance(event, Started))
    return events[-1].result.figures.precision, " ".join(started.notes), events


def wait_for_end() -> None:
    for thread in threading.enumerate():
        if thread.name == "calibration":
            thread.join(SOON)
            assert not thread.is_alive()


def test_int8_serves_until_int4_is_calibrated(service, folder):
    precision, notes, _ = take(service)
    assert precision == "int8" and "int4 is being calibrated" in notes
    wait_for_end()
    assert prepared_file(folder, "int4").is_file()
    precision, notes, events = take(service)
    assert (precision, notes) == ("int4", "")
    assert not [e for e in events if isinstance(e, Loading) and "alibrating" in e.what]


@pytest.mark.long
@pytest.mark.parametrize("asked", ["int4", "int8+int5"])
def test_every_format_of_dia2_is_calibrated_in_the_background(tmp_path, monkeypatch, asked):
    monkeypatch.setattr(background, "SMALL_WEIGHTS", 0)
    folder = write_small_dia2(tmp_path / "dia2")
    settings = Settings(runtime(folder, precision=asked), takes_folder=tmp_path / "takes")
    with closing(Synthesis(settings)) as synthesis:
        precision, notes, _ = take(synthesis)
        assert precision == "int8" and f"{asked} is being calibrated" in notes
        wait_for_end()
        assert synthesis.models.first.prepared_file(asked).is_file()
        precision, notes, events = take(synthesis)
        assert (precision, notes) == (asked, "")
        assert not [e for e in events if isinstance(e, Loading) and "alibrating" in e.what]


def test_a_take_that_cannot_be_made_begins_none(service):
    unusable = replace(make_request(service), script="")
    with pytest.raises(InputError):
        next(service.stream(unusable, threading.Event(), in_int8_meanwhile=True))
    assert not service.calibration.running


@pytest.mark.long
def test_who_needs_int4_waits_for_the_calibration(service, folder):
    """A comparison of precisions, and the command line."""
    children = Children()
    service.calibration = BackgroundCalibration(threading.Event(), worker=children)
    take(service)
    assert children.is_half_done.wait(SOON)
    events = service.stream(make_request(service), threading.Event())
    waiting = next(e for e in events if isinstance(e, Loading) and "Calibrating" in e.what)
    assert waiting.fraction == 0.5 and service.calibration.running
    assert not children.must_pause(), "the take that waits for it would never begin"
    children.go_on.set()
    last = list(events)[-1]
    assert last.result.figures.precision == "int4" and len(children.jobs) == 1


def test_it_pauses_while_a_take_is_made(service):
    busy, children = threading.Event(), Children()
    service.calibration = BackgroundCalibration(busy, worker=children)
    take(service)
    assert children.is_half_done.wait(SOON) and not children.must_pause()
    busy.set()
    assert children.must_pause()


@pytest.mark.long
def test_a_paused_child_goes_on_where_it_was(folder):
    paused = threading.Event()
    job = CalibrationJob(resolve(str(folder)), "int4", threads=1)
    child = Task(run_calibration(job, threading.Event(), must_pause=paused.is_set))
    seconds_paused = 0
    for report in child:
        if report.fraction > 0 and not seconds_paused:
            paused.set()
        # A report without news: the child said nothing for a second.
        if paused.is_set() and report.seconds >= 2:
            seconds_paused = report.seconds
            paused.clear()
            assert not prepared_file(folder, "int4").is_file()
    assert seconds_paused and child.result["seconds"] >= seconds_paused - 1
    assert prepared_file(folder, "int4").is_file()


@pytest.mark.long
def test_a_stop_ends_the_waiting(service):
    service.calibration = BackgroundCalibration(threading.Event(), worker=Children())
    take(service)
    cancel, events = threading.Event(), []
    for event in service.stream(make_request(service), cancel):
        events.append(event)
        if isinstance(event, Loading) and "Calibrating" in event.what:
            cancel.set()
    assert isinstance(events[-1], Cancelled) and service.calibration.running


def test_a_failed_calibration_is_explained(service, folder):
    children = Children(RunError("The disk is full."))
    children.go_on.set()
    service.calibration = BackgroundCalibration(threading.Event(), threads=1, worker=children)
    take(service)
    wait_for_end()
    precision, notes, _ = take(service)
    assert precision == "int8" and "could not be calibrated" in notes and "disk is full" in notes
    assert children.jobs == [CalibrationJob(resolve(str(folder)), "int4", threads=1)]


def test_memory_that_the_calibration_itself_takes_does_not_end_the_waiting(service, monkeypatch):
    service.calibration = BackgroundCalibration(threading.Event(), worker=Children())
    take(service)
    monkeypatch.setattr(system, "available_bytes", lambda: 0)
    serving, _ = service.calibration.current_runtime(service.models.first, service.settings.runtime)
    assert serving.precision == "int8"


def test_without_memory_for_the_calibration_int4_is_loaded_as_it_is(service, monkeypatch):
    monkeypatch.setattr(system, "available_bytes", lambda: 0)
    asked = service.settings.runtime
    info = service.models.first
    assert service.calibration.current_runtime(info, asked) == (asked, "")
    assert service.calibration.describe(info, asked) == ""


@pytest.mark.long
def test_a_benchmark_ends_the_calibration_and_the_next_take_begins_it_again(service):
    children = Children()
    service.calibration = BackgroundCalibration(threading.Event(), worker=children)
    take(service)
    cancel = threading.Event()
    with service.reserve_machine(cancel) as waiting:
        list(waiting)
        assert not service.calibration.running
    take(service)
    assert service.calibration.running and len(children.jobs) == 2


def test_nothing_begins_after_the_end(service):
    children = Children()
    service.calibration = BackgroundCalibration(threading.Event(), worker=children)
    service.close()
    assert (
        service.calibration.current_runtime(service.models.first, service.settings.runtime)[
            0
        ].precision
        == "int8"
    )
    assert not children.jobs


def test_a_second_model_waits_for_its_turn(service, folder, tmp_path):
    other = shutil.copytree(folder, tmp_path / "other")
    service.calibration = BackgroundCalibration(threading.Event(), worker=(children := Children()))
    service.calibration.current_runtime(service.models.first, service.settings.runtime)
    serving, note = service.calibration.current_runtime(
        resolve(str(other)), runtime(other, precision="int4")
    )
    assert serving.precision == "int8" and "another calibration is running" in note
    assert len(children.jobs) <= 1


@pytest.mark.parametrize("changes", [{"precision": "int8"}, {"precision": "int4"}])
def test_small_models_and_other_precisions_are_loaded_at_once(folder, changes):
    calibration = BackgroundCalibration(threading.Event(), worker=Children())
    asked = runtime(folder, **changes)
    assert (
        calibration.current_runtime(resolve(str(folder)), asked) == (asked, "")
        and not calibration.running
    )


def test_the_page_says_it_beforehand(service):
    handlers = ExpectationHandlers(service, parts_by_name(expectation.ExpectationPanel))
    service.calibration = BackgroundCalibration(threading.Event(), worker=(children := Children()))

    def shown(precision="int4"):
        model = service.settings.runtime.model
        return handlers.refresh(*expectation_values(model=model, precision=precision))

    panel = handlers.panel
    assert "int4 needs a one-time calibration" in shown()[panel.speaker]
    take(service)
    assert children.is_half_done.wait(SOON)
    assert "int4 is being calibrated for this model, once (50%" in shown()[panel.speaker]
    assert shown()[panel.timer].active
    assert "calibrated" not in shown("int8")[panel.speaker]
