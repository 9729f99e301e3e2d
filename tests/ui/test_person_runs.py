"""Runs that go on without their page: who watches, who stops them, when they are given up."""

from __future__ import annotations

import threading
from types import SimpleNamespace

import pytest

from dia_demo.machine.background import Background
from dia_demo.services.people import new_key
from dia_demo.services.shutdown import Shutdown
from dia_demo.ui import person_runs
from dia_demo.ui.person_runs import MAX_ENDED, MAX_UNATTENDED, PersonRuns

WAIT = 30
NO_WARM_UP = Background("warm-up", lambda: None)


def page(session: str) -> SimpleNamespace:
    client = SimpleNamespace(host="10.0.0.1")
    return SimpleNamespace(session_hash=session, client=client, url=SimpleNamespace(path="/join"))


class Steps:
    """Work that publishes a step whenever it is told to, and its end when it is stopped."""

    def __init__(self) -> None:
        self.go_on = threading.Semaphore(0)

    def work(self, run):
        step = 0
        while self.go_on.acquire(timeout=WAIT) and not run.cancel.is_set():
            step += 1
            yield {"status": step}
        yield {"status": "stopped", "take": "part"}


@pytest.fixture
def runs():
    shutdown = Shutdown()
    yield PersonRuns(["start"], "stop", shutdown.start)
    shutdown.begin(NO_WARM_UP)


def begin(runs, session, key, steps=None):
    """The run, and whether it is new."""
    steps = steps or Steps()
    run, is_new = runs.begin(page(session), key, {"status": "begun"}, steps.work, str)
    return run, is_new, steps


def finish(run, steps) -> dict:
    """Let the work see its flag; the last update of a page that watches."""
    steps.go_on.release()
    return list(run.watch())[-1]


def test_a_page_that_leaves_only_stops_watching(runs):
    key = new_key()
    run, _, steps = begin(runs, "first", key)
    watching = runs.watch(run)
    assert next(watching)["status"] == "begun"
    watching.close()
    steps.go_on.release()
    assert not run.cancel.is_set() and not run.ended
    again = runs.watch(runs.find(page("reloaded"), key))
    shown = next(again)
    while shown["status"] == "begun":
        shown |= next(again)
    assert shown["status"] == 1, "the page that comes back sees how far it is"
    runs.stop(page("reloaded"), key)
    steps.go_on.release()
    last = runs.busy(stopping=True) | {"status": "stopped", "take": "part"}
    assert list(again)[-1] == last


def test_every_update_has_the_buttons(runs):
    """gradio's page loses those of an update that another one follows at once."""
    run, _, steps = begin(runs, "first", new_key())
    watching = runs.watch(run)
    next(watching)
    steps.go_on.release()
    assert next(watching) == runs.busy() | {"status": 1}
    run.cancel.set()
    steps.go_on.release()
    assert not next(watching)["stop"]["interactive"], "Stop was pressed"


def test_a_run_without_a_key_stops_with_its_page(runs):
    run, _, steps = begin(runs, "first", None)
    watching = runs.watch(run)
    next(watching)
    watching.close()
    assert run.cancel.is_set()
    finish(run, steps)


def test_a_second_page_joins_the_run_it_would_have_repeated(runs):
    key = new_key()
    run, is_new, steps = begin(runs, "first", key)
    other, is_new_too, _ = begin(runs, "second", key)
    assert is_new and not is_new_too and other is run
    first, second = runs.watch(run), runs.watch(run)
    next(first), next(second)
    second.close()
    assert not run.cancel.is_set(), "the other page still watches"
    steps.go_on.release()
    assert next(first) == runs.busy() | {"status": 1}
    runs.stop(page("second"), key)
    finish(run, steps)
    begun, is_new, steps = begin(runs, "second", key)
    assert is_new and begun is not run
    runs.stop(page("second"), key)
    finish(begun, steps)


def test_nobody_reaches_the_run_of_somebody_else(runs):
    key, stranger = new_key(), new_key()
    run, _, steps = begin(runs, "first", key)
    assert runs.find(page("first"), stranger) is None and runs.find(page("first"), None) is None
    runs.stop(page("first"), stranger)
    runs.page_closed(page("first"))
    assert not run.cancel.is_set()
    assert runs.idle_of(page("x"), stranger) == runs.idle()
    assert runs.idle_of(page("x"), key) == runs.busy()
    runs.stop(page("x"), key)
    finish(run, steps)
    assert runs.idle_of(page("x"), key) == runs.idle()


def test_a_run_that_nobody_returns_to_is_stopped(runs, monkeypatch):
    key = new_key()
    run, _, steps = begin(runs, "first", key)
    watching = runs.watch(run)
    next(watching)
    monkeypatch.setattr(person_runs, "UNATTENDED_SECONDS", 0.0)
    steps.go_on.release()
    next(watching)
    assert not run.cancel.is_set(), "somebody watches"
    watching.close()
    steps.go_on.release()
    assert run.cancel.wait(WAIT) and run.abandoned
    assert finish(run, steps)["take"] == "part", "what was made is kept"


def test_one_address_leaves_a_few_runs_alone_at_most(runs):
    begun = []
    for number in range(MAX_UNATTENDED + 2):
        run, _, steps = begin(runs, f"page {number}", new_key())
        watching = runs.watch(run)
        next(watching)
        watching.close()
        begun.append((run, steps))
    assert [run.abandoned for run, _ in begun] == [True, True, *[False] * MAX_UNATTENDED]
    for run, steps in begun:
        run.cancel.set()
        finish(run, steps)


def test_a_run_that_began_before_the_key_came_is_its_owners(runs):
    key = new_key()
    run, _, steps = begin(runs, "first", None)
    runs.adopt(page("first"), key)
    watching = runs.watch(run)
    next(watching)
    watching.close()
    assert runs.find(page("reloaded"), key) is run and not run.cancel.is_set()
    runs.stop(page("reloaded"), key)
    finish(run, steps)


def test_the_end_of_the_program_keeps_what_was_made():
    shutdown, before = Shutdown(), set(threading.enumerate())
    runs = PersonRuns(["start"], "stop", shutdown.start)
    steps = Steps()
    run, _, _ = begin(runs, "first", new_key(), steps)
    threading.Timer(0.1, steps.go_on.release).start()
    shutdown.begin(NO_WARM_UP)
    assert run.ended and run.shown["take"] == "part"
    assert not any(thread.name == "take" for thread in set(threading.enumerate()) - before)


def test_a_run_whose_thread_cannot_start_is_over(monkeypatch):
    def refuse(work, cancel):
        raise RuntimeError("can't start new thread")

    runs, key = PersonRuns(["start"], "stop", refuse), new_key()
    with pytest.raises(RuntimeError):
        begin(runs, "first", key)
    assert runs.find(page("first"), key).ended


def test_ended_runs_are_forgotten_in_time(runs):
    def at_once(run):
        yield {"status": "done"}

    keys = [new_key() for _ in range(MAX_ENDED + 3)]
    for key in keys:
        run, _ = runs.begin(page("p"), key, {}, at_once, str)
        list(run.watch())
    assert runs.find(page("p"), keys[0]) is None
    assert runs.find(page("p"), keys[-1]).shown["status"] == "done"
