"""Threads beside the steps: in order for each key, done before they end."""

from __future__ import annotations

import threading
from math import inf

from dia_demo.engine.sound import side_threads
from dia_demo.engine.sound.side_threads import MOST_UNDONE, SideThreads

SECONDS = 20


def test_without_threads_nothing_is_free():
    assert not SideThreads(0).is_free(7) and not SideThreads(0).has_room(7)


def test_the_work_of_a_key_is_done_in_order_and_before_the_end():
    side, done = SideThreads(2), []
    for number in range(50):
        for key in (1, 2):
            side.submit(key, lambda key=key, number=number: done.append((key, number)))
    side.close()
    for key in (1, 2):
        assert [number for its, number in done if its == key] == list(range(50))


def test_a_thread_is_free_once_its_work_is_done():
    side, may_end, has_begun = SideThreads(1), threading.Event(), threading.Event()

    def work() -> None:
        has_begun.set()
        assert may_end.wait(SECONDS)

    assert side.is_free(1)
    side.submit(1, work)
    assert has_begun.wait(SECONDS) and not side.is_free(1)
    for _ in range(MOST_UNDONE - 1):
        assert side.has_room(1)
        side.submit(1, work)
    assert not side.has_room(1)
    may_end.set()
    side.close()
    assert side.is_free(1) and side.has_room(1)


def test_closed_threads_start_again_with_the_next_work():
    side, done = SideThreads(1), []
    for number in range(2):
        side.submit(1, lambda number=number: done.append(number))
        side.close()
    assert done == [0, 1]


def test_the_work_of_the_earliest_deadline_is_next():
    side, done, may_go_on = SideThreads(1), [], threading.Event()
    side.submit(1, lambda: may_go_on.wait(SECONDS))
    for number, deadline in enumerate((inf, 3.0, 2.0, inf, 2.0)):
        side.submit(1, lambda number=number: done.append(number), deadline)
    may_go_on.set()
    side.close()
    assert done == [2, 4, 1, 0, 3], "and in order of submission where they are the same"


def test_there_is_room_for_what_would_begin_soon():
    """Whatever else has later deadlines."""
    side, may_go_on = SideThreads(1), threading.Event()
    for _ in range(MOST_UNDONE):
        side.submit(1, lambda: may_go_on.wait(SECONDS))
    assert side.has_room(1, 5.0) and not side.has_room(1)
    may_go_on.set()
    side.close()


def test_work_without_a_deadline_waits_while_somebody_waits(monkeypatch):
    monkeypatch.setattr(side_threads, "LONGEST_BREAK_SECONDS", SECONDS)
    is_waiting, urgent = threading.Event(), threading.Event()
    is_waiting.set()
    side, done = SideThreads(1, is_waiting.is_set), []
    side.submit(1, lambda: done.append("patient"))
    side.submit(1, lambda: (done.append("urgent"), urgent.set()), 5.0)
    assert urgent.wait(SECONDS) and not side.is_free(1)
    is_waiting.clear()
    side.close()
    assert done == ["urgent", "patient"]


def test_work_without_a_deadline_does_not_wait_for_ever(monkeypatch):
    monkeypatch.setattr(side_threads, "LONGEST_BREAK_SECONDS", 0.02)
    side, done, is_over = SideThreads(1, lambda: True), [], threading.Event()
    for number in range(3):
        side.submit(1, lambda number=number: done.append(number))
    side.submit(1, is_over.set)
    assert is_over.wait(SECONDS) and done == [0, 1, 2]
    side.close()


def test_what_waits_is_done_at_once_when_the_threads_end(monkeypatch):
    monkeypatch.setattr(side_threads, "LONGEST_BREAK_SECONDS", 10 * SECONDS)
    side, done = SideThreads(1, lambda: True), []
    side.submit(1, lambda: done.append("patient"))
    side.close()
    assert done == ["patient"]
