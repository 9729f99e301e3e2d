"""Background: one life cycle for every thread that works beside the program."""

from __future__ import annotations

import threading

import pytest

from dia_demo.errors import RunError
from dia_demo.machine.background import Background, stop_all

SOON = 120.0


def test_it_runs_once_and_can_be_waited_for():
    done, go_on = [], threading.Event()

    def work():
        go_on.wait(SOON)
        done.append(threading.current_thread().name)

    background = Background("look", work)
    background.join()
    assert not background.is_running, "nothing to wait for before the start"
    assert background.start() is background and background.is_running
    background.join(0.05)
    assert background.is_running and not done
    go_on.set()
    background.join(SOON)
    assert done == ["look"] and not background.is_running


def test_all_are_cancelled_before_any_is_waited_for():
    """One may wait for another."""
    first, second = threading.Event(), threading.Event()

    def wait_for(other):
        assert other.wait(SOON)

    works = [
        Background("one", lambda: wait_for(second), first).start(),
        Background("two", lambda: wait_for(first), second).start(),
        Background("never begun", lambda: None),
    ]
    stop_all(works, SOON)
    assert not any(work.is_running for work in works)


def test_a_machine_without_threads_is_explained(monkeypatch):
    def refuse(thread):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    with pytest.raises(RunError, match="too many runs are active. Try again"):
        Background("take", lambda: None).start()
