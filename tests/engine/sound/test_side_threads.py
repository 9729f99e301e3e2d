"""Threads beside the steps: in order for each key, done before they end."""

from __future__ import annotations

import threading
from math import inf

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
