"""The queue while the engine is shared: whose row is next, who has to wait, and for how long."""

import random
import threading

import pytest

from dia_demo.config import RuntimeConfig
from dia_demo.engine.events import Waiting
from dia_demo.engine.time_left import NOTHING, TimeLeft
from dia_demo.errors import InputError
from dia_demo.services import queue as queue_module
from dia_demo.services.people import Caller, Visitor
from dia_demo.services.queue import Queue, Ticket

ANN, BEN, EVE = (Visitor(f"10.0.0.{number}", "page") for number in range(3))


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    monkeypatch.setattr(queue_module, "POSITION_SECONDS", 0.001)


class Row:
    def __init__(self, owner: Ticket | None) -> None:
        self.owner = owner


class Engine:
    """The places of an engine with a queue, as its scheduler fills them."""

    def __init__(self, places: int, size: int = 20) -> None:
        self.queue, self.places = Queue(size), places
        self.waiting: list = []
        self.running: list = []
        self.entries: dict[Ticket, object] = {}

    def enter(self, visitor: Visitor) -> Ticket:
        entry = self.queue.enter(Caller(visitor))
        ticket = entry.__enter__()
        self.entries[ticket] = entry
        return ticket

    def leave(self, ticket: Ticket) -> None:
        self.entries.pop(ticket).__exit__(None, None, None)

    def may_use(self, ticket: Ticket, shares: bool = True) -> bool:
        return next(self.wait(ticket, shares), None) is None

    def wait(self, ticket: Ticket, shares: bool = True):
        return self.queue.wait(ticket, threading.Event(), lambda: shares)

    def run(self, visitor: Visitor, rows: int = 1) -> Ticket:
        """A run that is let in at once, with so many rows."""
        ticket = self.enter(visitor)
        assert self.may_use(ticket)
        self.queue.open(ticket, self.places)
        self.submit(ticket, rows)
        return ticket

    def submit(self, ticket: Ticket, rows: int = 1) -> None:
        self.waiting += [Row(ticket) for _ in range(rows)]
        self.fill()

    def fill(self) -> None:
        while self.waiting and len(self.running) < self.places:
            row = self.queue.next(self.waiting)
            self.waiting.remove(row)
            self.running.append(row)
            self.queue.begin(row)

    def end(self, row=None) -> Visitor | None:
        """One row ends; returns whose row got its place."""
        row = row or self.running[0]
        self.running.remove(row)
        self.queue.end(row)
        before = list(self.running)
        self.fill()
        return next((row.owner.visitor for row in self.running if row not in before), None)


def test_a_run_of_the_same_model_joins_once_the_model_is_loaded():
    engine = Engine(places=8)
    first, second = engine.enter(ANN), engine.enter(BEN)
    assert engine.may_use(first)
    assert not engine.may_use(second), "it joined while the first was loading"
    engine.queue.open(first, 8)
    assert engine.may_use(second) and second.is_open and not second.has_begun


def test_a_single_take_gets_the_next_place_beside_a_comparison():
    """16 rows of one person in 8 places: whoever comes waits for one row to end."""
    engine = Engine(places=8)
    engine.run(ANN, rows=16)
    engine.run(BEN)
    assert engine.end() == BEN
    engine.run(EVE)
    assert engine.end() == EVE
    assert engine.end() == ANN, "the places of the others are theirs only once"


def test_places_are_shared_equally_between_those_who_could_use_all():
    engine = Engine(places=6)
    for visitor in (ANN, BEN, EVE):
        engine.run(visitor, rows=40)
    rows = random.Random(1)
    for _ in range(30):
        engine.end(rows.choice(engine.running))
    held = [sum(row.owner.visitor == visitor for row in engine.running) for visitor in (ANN, BEN)]
    assert held == [2, 2]


def test_nobody_who_waits_is_passed_by_for_ever():
    """Visitors without end, each new, beside one whose comparison waits for places."""
    engine = Engine(places=2)
    engine.run(ANN, rows=20)
    served = []
    for number in range(40):
        engine.run(Visitor(f"10.1.0.{number}", "page"))
        served.append(engine.end())
    assert all(ANN in served[at : at + 20] for at in (0, 20)), "one turn in so many"


def test_a_run_of_another_model_waits_for_all_and_nobody_passes_it():
    engine = Engine(places=8)
    first = engine.run(ANN)
    other = engine.enter(BEN)
    assert not engine.may_use(other, shares=False)
    later = engine.enter(EVE)
    assert not engine.may_use(later), "it passed the one that needs another model"
    engine.end()
    engine.leave(first)
    assert not engine.may_use(later)
    assert engine.may_use(other, shares=False) and not engine.may_use(later)
    engine.queue.open(other, 8)
    assert not engine.may_use(later, shares=False)
    engine.leave(other)
    assert engine.may_use(later)


def test_nobody_joins_a_model_that_was_replaced_while_it_asked():
    engine = Engine(places=8)
    engine.run(ANN).runtime = RuntimeConfig(precision="int8")
    late = engine.enter(BEN)
    late.runtime = RuntimeConfig(precision="float32")
    assert not engine.may_use(late)


def test_who_needs_the_machine_alone_shares_it_with_nobody():
    engine = Engine(places=8)
    first = engine.run(ANN)
    alone = engine.enter(BEN)
    waiting = engine.queue.wait(alone, threading.Event())
    assert next(waiting).place == 1
    engine.leave(first)
    assert next(waiting, None) is None
    assert not engine.may_use(engine.enter(EVE))


def test_who_waits_for_a_place_knows_its_position_and_the_time():
    engine = Engine(places=2)
    first, second = engine.run(ANN), engine.run(BEN)
    third, fourth = engine.run(EVE), engine.run(Visitor("10.0.0.9"))
    first.next_end, second.next_end = TimeLeft(20, 30), TimeLeft(5, 9)
    first.left, second.left = TimeLeft(50, 60), TimeLeft(5, 9)
    assert engine.queue.position(first) is None
    assert engine.queue.position(third) == Waiting(1, TimeLeft(5, 9))
    assert engine.queue.position(fourth) == Waiting(2, None)
    engine.end(engine.running[1])
    assert engine.queue.position(third) is None
    assert engine.queue.position(fourth).place == 1


def test_who_needs_another_model_is_told_when_all_are_done():
    engine = Engine(places=8)
    first, second = engine.run(ANN), engine.run(BEN)
    first.left, second.left = TimeLeft(50, 60), TimeLeft(5, 9)
    first.next_end = second.next_end = TimeLeft(1, 2)
    other = engine.enter(EVE)
    assert next(engine.wait(other, shares=False)) == Waiting(1, TimeLeft(50, 60))
    second.left = None
    assert next(engine.wait(other, shares=False)) == Waiting(1, None)


def test_who_will_get_a_free_place_does_not_wait():
    engine = Engine(places=2)
    engine.run(ANN)
    joining = engine.enter(BEN)
    assert engine.may_use(joining)
    assert engine.queue.position(joining) == Waiting(1, NOTHING)


def test_only_those_without_a_place_count_as_waiting():
    engine = Engine(places=2, size=1)
    engine.run(ANN)
    engine.run(BEN)
    engine.run(EVE)
    with pytest.raises(InputError, match=r"queue is full \(3 takes\)"):
        engine.enter(Visitor("10.0.0.9", "page"))
    engine.end()
    engine.run(Visitor("10.0.0.9", "page"))


def test_who_is_dropped_while_it_waits_for_a_place_is_told_so():
    engine = Engine(places=1, size=2)
    greedy = Visitor("10.0.0.7")
    engine.run(greedy)
    last = [engine.run(greedy), engine.run(greedy)][-1]
    engine.enter(ANN)
    with pytest.raises(InputError, match="Your take was dropped"):
        engine.queue.position(last)


def test_rows_of_the_program_itself_come_first():
    engine = Engine(places=1)
    engine.run(ANN, rows=3)
    own = Row(None)
    assert engine.queue.next([*engine.waiting, own]) is own
    engine.queue.begin(own)
    engine.queue.end(own)
