"""The queue before the engine is shared: in order, bounded, and no place is lost."""

import threading
from types import SimpleNamespace

import pytest

from dia_demo.engine.events import Waiting
from dia_demo.engine.time_left import TimeLeft
from dia_demo.errors import BusyError, InputError
from dia_demo.services import queue as queue_module
from dia_demo.services.people import Caller, Visitor
from dia_demo.services.queue import RETRY_SECONDS, RUNS, Queue


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    monkeypatch.setattr(queue_module, "POSITION_SECONDS", 0.001)


def test_the_first_does_not_wait():
    queue = Queue(0)
    with queue.enter() as ticket:
        assert list(queue.wait(ticket, threading.Event())) == []


def test_a_place_moves_up_when_an_earlier_one_leaves():
    queue, cancel = Queue(5), threading.Event()
    with queue.enter() as first:
        assert list(queue.wait(first, cancel)) == []
        second = queue.enter()
        waiting_second = queue.wait(second.__enter__(), cancel)
        with queue.enter() as third:
            waiting_third = queue.wait(third, cancel)
            assert next(waiting_second).place == 1
            assert next(waiting_third).place == 2
            second.__exit__(None, None, None)
            assert next(waiting_third).place == 1


def test_only_the_next_is_told_how_long():
    """The estimate is that of the take that runs; who stands further back would be misled."""
    queue, cancel = Queue(5), threading.Event()
    with queue.enter() as running, queue.enter() as second, queue.enter() as third:
        assert list(queue.wait(running, cancel)) == []
        running.left = TimeLeft(12, 13)
        assert next(queue.wait(second, cancel)) == Waiting(1, TimeLeft(12, 13))
        assert next(queue.wait(third, cancel)) == Waiting(2, None)


def test_a_full_queue_refuses_another_take():
    queue = Queue(1)
    with queue.enter(), queue.enter():
        with pytest.raises(InputError, match=r"queue is full \(2 takes\)"):
            with queue.enter():
                pass
    with queue.enter():
        pass


def test_a_place_is_given_back_whatever_happens_in_it():
    queue = Queue(0)
    for _ in range(3):
        with pytest.raises(ZeroDivisionError):
            with queue.enter():
                raise ZeroDivisionError
    with queue.enter() as ticket:
        assert list(queue.wait(ticket, threading.Event())) == []


def test_cancel_ends_the_waiting():
    queue, cancel = Queue(5), threading.Event()
    with queue.enter(), queue.enter() as second:
        waiting = queue.wait(second, cancel)
        next(waiting)
        cancel.set()
        assert list(waiting) == []


def test_threads_run_one_at_a_time_in_ticket_order():
    """Twenty at once: never two inside, and each in the order of its ticket."""
    queue, inside, most, order = Queue(50), 0, 0, []
    tickets = [queue.enter() for _ in range(20)]
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


# Turns


class Line:
    """A queue whose visitors all wait; `serve` runs whoever is next, as their threads would."""

    def __init__(self, size: int) -> None:
        self.queue = Queue(size)
        self.waiting: list = []

    def join(self, visitor: Visitor) -> None:
        caller = Caller(visitor)
        entry = self.queue.enter(caller)
        ticket = entry.__enter__()
        self.waiting.append((visitor, entry, self.queue.wait(ticket, caller)))

    def serve(self) -> Visitor:
        """One whole run of the one whose turn it is."""
        for entry in self.waiting:
            visitor, place, wait = entry
            if next(wait, None) is None:
                self.waiting.remove(entry)
                self.running = place
                return visitor
        raise AssertionError("nobody's turn")

    def end(self) -> None:
        self.running.__exit__(None, None, None)

    def run(self, turns: int) -> list[Visitor]:
        served = []
        for _ in range(turns):
            served.append(self.serve())
            self.end()
        return served


POLITE, GREEDY = Visitor("10.0.0.1", "page"), Visitor("10.0.0.2", "")


@pytest.mark.parametrize("polite", [POLITE, Visitor("10.0.0.2", "page")])
def test_one_beside_twelve_requests_waits_for_at_most_two_takes(polite):
    """At another address, or at the same one (everybody's, behind a proxy that names nobody)."""
    line = Line(20)
    for _ in range(12):
        line.join(GREEDY)
    for _ in range(5):
        assert line.serve() == GREEDY
        line.join(polite)
        line.end()
        line.join(GREEDY)  # It tries again at once.
        assert polite in line.run(2), "waited for more than two takes of the other"
        line.join(GREEDY)


def test_addresses_take_turns():
    line = Line(20)
    visitors = [Visitor(f"10.0.0.{n}", "s") for n in range(3)]
    for visitor in visitors:
        line.join(visitor)
        line.join(visitor)
    assert line.run(6) == [*visitors, *visitors]


def test_nobody_starves_beside_newcomers_without_end():
    """Each new session comes after those who wait already, served before or not."""
    line = Line(20)
    line.join(POLITE)
    line.run(1)
    line.join(POLITE)
    for number in range(3):
        line.join(Visitor("10.0.0.1", f"new {number}"))
    assert line.run(1) == [POLITE]


def test_programs_at_one_address_are_served_in_order():
    line = Line(70)
    for _ in range(64):
        line.join(GREEDY)
    while line.waiting:
        first, *rest = line.waiting
        line.run(1)
        assert line.waiting == rest, "not the one that came first"


def test_a_session_has_at_most_two_places():
    queue = Queue(20)
    with queue.enter(Caller(POLITE)), queue.enter(Caller(POLITE)):
        assert RUNS == 2
        with pytest.raises(InputError, match="You have 2 takes.*stop it"):
            with queue.enter(Caller(POLITE)):
                pass
        with queue.enter(Caller(Visitor("10.0.0.1", "another page"))):
            pass
    with queue.enter(Caller(POLITE)):
        pass


@pytest.mark.parametrize(
    ("visitors", "other", "who"),
    [
        ([Visitor("10.0.0.1", "page"), Visitor("10.0.0.1")], Visitor("10.0.0.2"), "address"),
        (
            [Visitor("10.0.0.1", token="a"), Visitor("10.0.0.2", token="a")],
            Visitor("10.0.0.2", token="b"),
            "token",
        ),
    ],
)
def test_an_address_and_a_token_have_so_many_places(visitors, other, who):
    queue = Queue(20, address_runs=2)
    with queue.enter(Caller(visitors[0])), queue.enter(Caller(visitors[1])):
        with pytest.raises(BusyError, match=f"2 takes.*one {who}"):
            with queue.enter(Caller(visitors[0])):
                pass
        with queue.enter(Caller(other)), queue.enter(), queue.enter(), queue.enter():
            pass


def test_a_refusal_says_when_there_may_be_a_place():
    queue = Queue(0)
    with queue.enter() as running:
        assert list(queue.wait(running, threading.Event())) == []
        for left, seconds in (
            (None, RETRY_SECONDS), (TimeLeft(6, 8.2), 9), (TimeLeft(0, 0), 1)
        ):  # fmt: skip
            running.next_end = left
            with pytest.raises(BusyError) as refused, queue.enter():
                pass
            assert refused.value.retry_seconds == seconds


def test_who_holds_most_of_a_full_queue_makes_room_for_a_newcomer():
    line = Line(3)
    for _ in range(4):
        line.join(GREEDY)
    line.serve()
    with pytest.raises(InputError, match=r"queue is full \(4 takes\)"):
        line.join(GREEDY)
    last = line.waiting[-1]
    line.join(POLITE)
    with pytest.raises(InputError, match="Your take was dropped"):
        next(last[2])
    line.waiting.remove(last)
    line.end()
    assert line.run(1) == [POLITE]
    assert line.run(2) == [GREEDY, GREEDY]


def test_nothing_is_remembered_of_who_is_gone():
    line = Line(3)
    for number in range(50):
        line.join(Visitor(f"10.0.0.{number}", "s"))
        line.run(1)
    assert line.queue._served == {}


def test_only_a_visitor_without_a_row_may_have_a_spare_place():
    queue = Queue(20)
    with queue.enter(Caller(POLITE)) as polite, queue.enter(Caller(GREEDY)) as greedy:
        for ticket in (polite, greedy):
            for _ in queue.wait(ticket, threading.Event(), lambda: True):
                raise AssertionError("it shares the engine")
            queue.open(ticket)
        first, second, third = (SimpleNamespace(owner=owner) for owner in (greedy, greedy, polite))
        assert queue.may_exceed(first)
        queue.begin(first)
        assert not queue.may_exceed(second) and queue.may_exceed(third)
        assert not queue.may_exceed(SimpleNamespace(owner=None))
