"""The quick measurement in the background: once, while nobody generates, and never in the way."""

from __future__ import annotations

import threading
from dataclasses import asdict, replace
from multiprocessing import resource_tracker

import psutil
import pytest

from dia_demo.errors import RunError
from dia_demo.machine import system
from dia_demo.services.measurements.types import Job, JobKind
from dia_demo.services.queue import Queue
from dia_demo.services.speed import background, quick
from dia_demo.services.speed.background import BackgroundMeasurement
from dia_demo.services.speed.machine_speed import MachineSpeed
from dia_demo.services.worker.messages import JobProgress
from dia_demo.services.worker.worker import JobStopped
from tests.helpers.stand_ins.bench_stubs import QUICK

SOON = 120.0


@pytest.fixture(autouse=True)
def at_once(tmp_path, monkeypatch):
    monkeypatch.setenv("DIA_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(system, "available_bytes", lambda: 10**11)
    monkeypatch.setattr(background, "IDLE_SECONDS", 0.0)
    monkeypatch.setattr(background, "PAUSE_SECONDS", 0.0)


class Children:
    """Children that give these results, one after another; the jobs they were asked for."""

    def __init__(self, *results) -> None:
        self.results, self.jobs = list(results), []

    def __call__(self, job, cancel):
        self.jobs.append(job)
        yield JobProgress("measuring", 0.5)
        result = self.results.pop(0)
        if isinstance(result, Exception):
            raise result
        return asdict(result)


def measured(child, busy=None) -> MachineSpeed:
    """What is known when the background is done."""
    speed = MachineSpeed()
    BackgroundMeasurement(speed, busy or threading.Event(), child).start()
    wait_for_end(speed)
    return speed


def wait_for_end(speed: MachineSpeed) -> None:
    for thread in threading.enumerate():
        if thread.name == "machine speed":
            thread.join(SOON)
    assert not speed.measuring


def test_a_machine_is_measured_once():
    children = Children(QUICK)
    assert measured(children).quick == QUICK
    assert measured(children).quick == QUICK
    assert len(children.jobs) == 1, "the second start read the file"


def test_a_take_interrupts_the_measurement():
    queue, started, interrupted = Queue(5), threading.Event(), threading.Event()

    def child(job, cancel):
        if interrupted.is_set():
            yield JobProgress("again", 0.5)
            return asdict(QUICK)
        started.set()
        assert cancel.wait(SOON), "nobody interrupted"
        interrupted.set()
        yield JobProgress("interrupted", 0.5)
        raise JobStopped

    speed = MachineSpeed()
    BackgroundMeasurement(speed, queue.busy, child).start()
    assert started.wait(SOON)
    with queue.enter():
        assert interrupted.wait(SOON)
        assert speed.quick is None and speed.measuring
    wait_for_end(speed)
    assert speed.quick == QUICK, "it starts again when the take is over"


def test_nothing_is_measured_beside_a_take():
    queue = Queue(5)
    children = Children(QUICK)
    speed = MachineSpeed()
    with queue.enter():
        measurement = BackgroundMeasurement(speed, queue.busy, children)
        measurement.start()
        measurement.close()
    assert children.jobs == [] and speed.quick is None


def test_a_disturbed_measurement_is_repeated():
    disturbed = replace(QUICK, read_gb_s=9.0, undisturbed=False)
    children = Children(disturbed, QUICK)
    assert measured(children).quick == QUICK
    assert len(children.jobs) == 2


def test_a_disturbed_measurement_is_known_until_there_is_a_better_one():
    disturbed = replace(QUICK, read_gb_s=9.0, undisturbed=False)
    seen = []

    def child(job, cancel):
        seen.append(speed.quick)
        yield JobProgress("measuring", 0.5)
        return asdict(QUICK if len(seen) > 1 else disturbed)

    speed = MachineSpeed()
    BackgroundMeasurement(speed, threading.Event(), child).start()
    wait_for_end(speed)
    assert seen == [None, disturbed]


def test_a_disturbed_measurement_is_repeated_at_the_next_start():
    disturbed = replace(QUICK, read_gb_s=9.0, undisturbed=False)
    assert not measured(Children(*[disturbed] * background.ATTEMPTS)).quick.undisturbed
    assert measured(Children(QUICK)).quick == QUICK


def test_the_best_of_a_few_counts_where_all_are_disturbed():
    rates = [9.0, 30.0, 20.0, 10.0]
    assert len(rates) == background.ATTEMPTS
    children = Children(*(replace(QUICK, read_gb_s=r, undisturbed=False) for r in rates))
    assert measured(children).quick.read_gb_s == 30.0


def test_what_cannot_be_measured_is_not_known():
    assert measured(Children(RunError("no"))).quick is None


def test_no_second_process_is_started_where_memory_is_short(monkeypatch):
    monkeypatch.setattr(system, "available_bytes", lambda: background.LEAST_MEMORY - 1)
    children = Children(QUICK)
    assert measured(children).quick is None and children.jobs == []


def test_a_measurement_that_takes_too_long_is_given_up(monkeypatch):
    monkeypatch.setattr(background, "LONGEST_SECONDS", -1.0)
    children = Children(*[QUICK] * background.ATTEMPTS)
    assert measured(children).quick is None and len(children.jobs) == background.ATTEMPTS


@pytest.mark.slow
def test_the_real_measurement_gives_rates_of_this_machine():
    job = Job(JobKind.QUICK, threads=1)
    result = quick.run_job(job, lambda *_, **results: None)
    # From a slow laptop's memory and core to the fastest server's.
    assert 1 < result.read_gb_s < 2000 and 1 < result.gflops < 10_000
    assert 0.05 < result.nano_ms_per_step < 100
    assert result.nano_codec > 0.5 and 0.01 < result.dia_codec < 200


@pytest.mark.slow
def test_a_real_child_has_a_low_priority_until_it_is_interrupted():
    cancel = threading.Event()
    job = Job(JobKind.QUICK, threads=1)
    # A browser of other tests may be a child of this process as well, and so is multiprocessing's
    # resource tracker from the first worker on.
    resource_tracker.ensure_running()
    before = set(psutil.Process().children())
    child = background.run_quick(job, cancel)
    while next(child).doing == "Starting":
        pass
    (process,) = set(psutil.Process().children()) - before
    assert process.nice() == system.LOW_PRIORITY
    cancel.set()
    with pytest.raises(JobStopped):
        for _ in child:
            pass
    assert not process.is_running()
