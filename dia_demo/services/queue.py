"""One engine, one run at a time: the other runs wait in a fair queue and know their position.

Addresses take turns, then the visitors of an address, then the requests of a visitor in order of
arrival: the one that was served least recently is next. A single request therefore waits for the
current run at most, even if another visitor has twelve requests in the queue.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count

from dia_demo.config import RuntimeConfig
from dia_demo.engine.events import Waiting
from dia_demo.engine.time_left import TimeLeft
from dia_demo.errors import InputError
from dia_demo.services.wording import plural

POSITION_SECONDS = 0.5
# Per session: a run and the next one.
PLACES = 2


@dataclass(frozen=True)
class Visitor:
    """Who made a request. session: that of a page or client; programs without one share "" and the
    turns of their address. The command line is the visitor without an address."""

    address: str = ""
    session: str = ""


class Caller(threading.Event):
    """A run's cancel flag that knows who asked for the run."""

    def __init__(self, visitor: Visitor) -> None:
        super().__init__()
        self.visitor = visitor


class Ticket:
    """A place in the queue. `left`: the time left of the holder's run while it runs. `runtime`:
    whose model that run leaves in memory."""

    def __init__(self, visitor: Visitor, arrival: int) -> None:
        self.visitor = visitor
        self.arrival = arrival
        self.left: TimeLeft | None = None
        self.runtime: RuntimeConfig | None = None
        # Set when its turn has come, or when it was removed from the queue.
        self.called = threading.Event()


class Queue:
    """At most `size` tickets wait while one runs. places: of one session."""

    def __init__(self, size: int, places: int = PLACES) -> None:
        self._size, self._places = size, places
        self._tickets: list[Ticket] = []
        self._running: Ticket | None = None
        # One clock for arrivals and turns. `_served`: the last turn of each address and visitor.
        self._clock = count(1)
        self._served: dict[str | Visitor, int] = {}
        # Set while there is any ticket: background work stops then.
        self.busy = threading.Event()
        self._lock = threading.Lock()

    @contextmanager
    def enter(self, cancel: threading.Event | None = None) -> Iterator[Ticket]:
        """A ticket for the owner of `cancel`, until the block ends.

        Raises InputError if the visitor has too many tickets, or the queue is full.
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

    @property
    def first(self) -> Ticket | None:
        """The ticket that runs, or is next."""
        with self._lock:
            return self._line()[0] if self._tickets else None

    def wait(self, ticket: Ticket, cancel: threading.Event) -> Iterator[Waiting]:
        """Yield the ticket's position at intervals, until it is its turn or `cancel` is set. Yields
        nothing if it is first.

        Raises InputError if the ticket was removed to make room for another visitor.
        """
        while not cancel.is_set():
            with self._lock:
                if ticket not in self._tickets:
                    raise InputError(
                        "Your take was dropped: the queue is full and you had the most takes "
                        "waiting. Try again when your other takes are done."
                    )
                line = self._line()
                position = line.index(ticket)
                if position == 0:
                    self._running = ticket
                    self._serve(ticket)
                    return
                left = line[0].left if position == 1 else None
            yield Waiting(position, left)
            if ticket.called.wait(POSITION_SECONDS):
                ticket.called.clear()

    def _line(self) -> list[Ticket]:
        """The running ticket, then the others in the order of their turns."""

        def turn(ticket: Ticket) -> tuple:
            visitor, arrival = ticket.visitor, ticket.arrival
            served = [self._served.get(holder, 0) for holder in (visitor.address, visitor)]
            return ticket is not self._running, *(max(arrival, when) for when in served), arrival

        return sorted(self._tickets, key=turn)

    def _serve(self, ticket: Ticket) -> None:
        """Record a turn: all others who wait now come before the ticket's visitor."""
        now = next(self._clock)
        self._served |= {ticket.visitor.address: now, ticket.visitor: now}

    def _admit(self, visitor: Visitor) -> None:
        if visitor.session:
            own = sum(ticket.visitor == visitor for ticket in self._tickets)
            if own >= self._places:
                raise InputError(
                    f"You have {own} takes running or waiting, the maximum for one page or "
                    "program. Wait for one to end, or stop it."
                )
        if len(self._tickets) > self._size and not self._make_room(visitor):
            raise InputError(
                f"The queue is full ({plural(len(self._tickets), 'take')}). Try again in a moment."
            )

    def _make_room(self, visitor: Visitor) -> bool:
        """Remove the last ticket of the address with the most, or else of the visitor with the
        most, if that is at least two more than the newcomer has."""
        waiting = [ticket for ticket in self._line() if ticket is not self._running]
        for group in (lambda holder: holder.address, lambda holder: holder):
            counts = Counter(group(ticket.visitor) for ticket in self._tickets)
            most = max(counts.values())
            if most < counts[group(visitor)] + 2:
                continue
            last = [ticket for ticket in waiting if counts[group(ticket.visitor)] == most]
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
            # Only the next one: waking a long queue costs more than a short take.
            self._line()[0].called.set()
