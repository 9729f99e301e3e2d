"""One engine, one run at a time: the others wait, people take turns, and each is told the place.

Turns go to addresses, within an address to its visitors, and for one visitor in order of arrival:
whoever was served longest ago comes next, so that twelve requests of one wait beside one of
another for at most the run that goes on.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count

from dia_demo.engine.events import Waiting
from dia_demo.errors import InputError
from dia_demo.services.wording import plural

SAY_AGAIN_SECONDS = 0.5
# Of one session: a run and the next one.
PLACES = 2


@dataclass(frozen=True)
class Visitor:
    """Who asks. session: a page's or a client's own; programs without one share "" and, with all
    who come from their address, its turn. The command line is the visitor without an address."""

    address: str = ""
    session: str = ""


class Caller(threading.Event):
    """A run's cancel flag that knows who asked for the run."""

    def __init__(self, visitor: Visitor) -> None:
        super().__init__()
        self.visitor = visitor


class Ticket:
    """A place in the queue. `seconds_left` is the holder's own estimate while it runs."""

    def __init__(self, visitor: Visitor, arrival: int) -> None:
        self.visitor = visitor
        self.arrival = arrival
        self.seconds_left: float | None = None
        # Something to look at: its turn has come, or its place is gone.
        self.called = threading.Event()


class Queue:
    """At most `size` wait beside the one that runs."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._tickets: list[Ticket] = []
        self._running: Ticket | None = None
        # Arrivals and services in one order. `_served`: the last of each address and visitor.
        self._clock = count(1)
        self._served: dict[str | Visitor, int] = {}
        # Set while there is any ticket: who works in the background stops then.
        self.busy = threading.Event()
        self._lock = threading.Lock()

    @contextmanager
    def place(self, cancel: threading.Event | None = None) -> Iterator[Ticket]:
        """A ticket for whoever holds `cancel`, given back on leaving.

        Raises InputError where the visitor has enough places, or the queue is full.
        """
        visitor = cancel.visitor if isinstance(cancel, Caller) else Visitor()
        with self._lock:
            self._admit(visitor)
            ticket = Ticket(visitor, next(self._clock))
            self._tickets.append(ticket)
            self.busy.set()
        try:
            yield ticket
        finally:
            with self._lock:
                self._leave(ticket)

    def wait(self, ticket: Ticket, cancel: threading.Event) -> Iterator[Waiting]:
        """Until it is the ticket's turn or `cancel` is set: its place, now and then. Yields nothing
        where nobody is before it.

        Raises InputError where the ticket had to make room for somebody else.
        """
        while not cancel.is_set():
            with self._lock:
                if ticket not in self._tickets:
                    raise InputError(
                        "The queue is full and most of it was yours, so this take was removed for "
                        "another visitor. Try again when your other takes are done."
                    )
                line = self._line()
                place = line.index(ticket)
                if place == 0:
                    self._running = ticket
                    self._serve(ticket)
                    return
                seconds = line[0].seconds_left if place == 1 else None
            yield Waiting(place, seconds)
            if ticket.called.wait(SAY_AGAIN_SECONDS):
                ticket.called.clear()

    def _line(self) -> list[Ticket]:
        """The one that runs, then the others as their turns come."""

        def turn(ticket: Ticket) -> tuple:
            visitor, arrival = ticket.visitor, ticket.arrival
            served = [self._served.get(holder, 0) for holder in (visitor.address, visitor)]
            return ticket is not self._running, *(max(arrival, when) for when in served), arrival

        return sorted(self._tickets, key=turn)

    def _serve(self, ticket: Ticket) -> None:
        """Others who are here go before the ticket's visitor from now on."""
        now = next(self._clock)
        self._served |= {ticket.visitor.address: now, ticket.visitor: now}

    def _admit(self, visitor: Visitor) -> None:
        if visitor.session:
            own = sum(ticket.visitor == visitor for ticket in self._tickets)
            if own >= PLACES:
                raise InputError(
                    f"You have {own} takes running or waiting, the maximum for one page or "
                    "program. Wait for one to end, or stop it."
                )
        if len(self._tickets) > self._size and not self._make_room(visitor):
            raise InputError(
                f"The queue is full ({plural(len(self._tickets), 'take')}). Try again in a moment."
            )

    def _make_room(self, visitor: Visitor) -> bool:
        """Whoever holds most gives a place to a newcomer who holds less, by at least two: first
        among the addresses, then among all visitors."""
        waiting = [ticket for ticket in self._line() if ticket is not self._running]
        for group in (lambda holder: holder.address, lambda holder: holder):
            held = Counter(group(ticket.visitor) for ticket in self._tickets)
            most = max(held.values())
            if most < held[group(visitor)] + 2:
                continue
            last = [ticket for ticket in waiting if held[group(ticket.visitor)] == most]
            if last:
                self._leave(last[-1])
                return True
        return False

    def _leave(self, ticket: Ticket) -> None:
        if ticket not in self._tickets:
            return
        self._tickets.remove(ticket)
        if self._running is ticket:
            self._running = None
            self._serve(ticket)
        visitors = {waiting.visitor for waiting in self._tickets}
        here = visitors | {visitor.address for visitor in visitors}
        self._served = {holder: when for holder, when in self._served.items() if holder in here}
        ticket.called.set()
        if not self._tickets:
            self.busy.clear()
        else:
            # The next one alone: to wake all of a long line costs more than a short take.
            self._line()[0].called.set()
