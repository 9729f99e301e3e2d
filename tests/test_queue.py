"""The queue: in order, places told, bounded, and no place lost."""

import threading

import pytest

from dia_demo.engine.events import Waiting
from dia_demo.errors import InputError
from dia_demo.services import queue as queue_module
from dia_demo.services.queue import Queue


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    monkeypatch.setattr(queue_module, "SAY_AGAIN_SECONDS", 0.001)


def test_the_first_does_not_wait():
    queue = Queue(0)
    with queue.place() as ticket:
        assert list(queue.wait(ticket, threading.Event())) == []


def test_places_are_told_in_order_and_move_up():
    queue, cancel = Queue(5), threading.Event()
    with queue.place():
        second = queue.place()
        waiting_second = queue.wait(second.__enter__(), cancel)
        with queue.place() as third:
            waiting_third = queue.wait(third, cancel)
            assert next(waiting_second).place == 1
            assert next(waiting_third).place == 2
            second.__exit__(None, None, None)
            assert next(waiting_third).place == 1


def test_only_the_next_is_told_how_long():
    """The estimate is that of the take that runs; who stands further back would be misled."""
    queue, cancel = Queue(5), threading.Event()
    with queue.place() as running, queue.place() as second, queue.place() as third:
        running.seconds_left = 12.5
        assert next(queue.wait(second, cancel)) == Waiting(1, 12.5)
        assert next(queue.wait(third, cancel)) == Waiting(2, None)


def test_a_full_queue_refuses_and_says_so():
    queue = Queue(1)
    with queue.place(), queue.place():
        with pytest.raises(InputError, match="2 takes are running or waiting"):
            with queue.place():
                pass
    with queue.place():
        pass


def test_a_place_is_given_back_whatever_happens_in_it():
    queue = Queue(0)
    for _ in range(3):
        with pytest.raises(ZeroDivisionError):
            with queue.place():
                raise ZeroDivisionError
    with queue.place() as ticket:
        assert list(queue.wait(ticket, threading.Event())) == []


def test_cancel_ends_the_waiting():
    queue, cancel = Queue(5), threading.Event()
    with queue.place(), queue.place() as second:
        waiting = queue.wait(second, cancel)
        next(waiting)
        cancel.set()
        assert list(waiting) == []


def test_threads_take_turns_and_come_in_order():
    """Twenty at once: never two inside, and each in the order of its ticket."""
    queue, inside, most, order = Queue(50), 0, 0, []
    tickets = [queue.place() for _ in range(20)]
    entered = [ticket.__enter__() for ticket in tickets]

    def work(number: int) -> None:
        nonlocal inside, most
        for _ in queue.wait(entered[number], threading.Event()):
            pass
        inside += 1
        most = max(most, inside)
        order.append(number)
        inside -= 1
        tickets[number].__exit__(None, None, None)

    threads = [threading.Thread(target=work, args=(number,)) for number in reversed(range(20))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    assert most == 1 and order == list(range(20))
