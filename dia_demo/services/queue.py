"""Who may run, and whose take gets the next place: fairness in front of the one engine.

Runs of the same model share its places (engine/scheduler.py), one for each of their rows. A run
that needs another model, or the machine for itself, waits until the engine is free; the runs behind
it wait as well, so that it is not passed by for ever.

Places are shared in turn between addresses, then between the visitors of an address, then between
the requests of a visitor in order of arrival: the next place goes to who has the fewest, and among
those to who was served least recently. So a single take waits for one place to become free, even
if another visitor has twelve takes in the queue.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count

from dia_demo.config import RuntimeConfig
from dia_demo.engine.engine_thread import EventStream
from dia_demo.engine.events import Event, Waiting
from dia_demo.engine.row import Row
from dia_demo.engine.scheduler import PLACES
from dia_demo.engine.time_left import NOTHING, TimeLeft, longest, soonest
from dia_demo.errors import InputError
from dia_demo.services.wording import plural

POSITION_SECONDS = 0.5
# Per session: a run and the next one.
RUNS = 2


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
    """A run in the queue. `runtime`: whose model it leaves in memory.

    has_begun: it has the engine for itself, or had a place. is_open: others may share the engine.
    rows: how many of its rows have a place. left: the time left of the run; next_end: until one of
    its rows leaves.
    """

    def __init__(self, visitor: Visitor, arrival: int) -> None:
        self.visitor = visitor
        self.arrival = arrival
        self.runtime: RuntimeConfig | None = None
        self.has_begun = self.is_open = False
        self.rows = 0
        self.left: TimeLeft | None = None
        self.next_end: TimeLeft | None = None
        # Set when its turn may have come, or when it was removed from the queue.
        self.called = threading.Event()


def never() -> bool:
    """A run that shares the engine with nobody."""
    return False


class Queue:
    """At most `size` runs wait while others have places. runs: the most of one session. places: of
    the engine, until it says how many it has.

    It is the `Turns` of the engine's scheduler.
    """

    def __init__(self, size: int, runs: int = RUNS, places: int = PLACES) -> None:
        self._size, self._runs, self.places = size, runs, places
        self._tickets: list[Ticket] = []
        # Those that use the engine: one that is not open, or any number of open ones.
        self._active: list[Ticket] = []
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
        """A ticket that uses the engine, or else the next one."""
        with self._lock:
            return next(iter([*self._active, *self._line()]), None)

    @property
    def rows(self) -> int:
        """How many rows have a place."""
        with self._lock:
            return self._rows()

    def wait(
        self,
        ticket: Ticket,
        cancel: threading.Event,
        may_share: Callable[[], bool] = never,
    ) -> Iterator[Waiting]:
        """Yield the ticket's position at intervals, until it may use the engine or `cancel` is set.
        Yields nothing if that is at once.

        It then has the engine for itself, until `open`; or shares it with others that are open, if
        `may_share` says so. Raises InputError if the ticket was removed to make room for another
        visitor.
        """
        while not cancel.is_set():
            shares = bool(self._active) and may_share()
            with self._lock:
                line = self._check(ticket)
                if self._may_use(ticket, line, shares):
                    self._active.append(ticket)
                    ticket.is_open = len(self._active) > 1
                    ticket.has_begun = not ticket.is_open
                    self._call_next()
                    return
                waiting = self._waiting(ticket, line, shares)
            yield waiting
            if ticket.called.wait(POSITION_SECONDS):
                ticket.called.clear()

    def open(self, ticket: Ticket, places: int = PLACES) -> None:
        """Let runs of the same model share the engine with this one. places: of the engine."""
        with self._lock:
            self.places, ticket.is_open = places, True
            self._call_next()

    def events(self, ticket: Ticket, stream: EventStream) -> Iterator[Event]:
        """A run's events, and before it has a place its position at intervals."""
        while not stream.is_over:
            event = stream.get(POSITION_SECONDS) or self.position(ticket)
            if event is not None:
                yield event

    def position(self, ticket: Ticket) -> Waiting | None:
        """The position of a ticket that shares the engine and waits for its first place; None once
        it has begun. Raises InputError if it was removed."""
        with self._lock:
            line = self._check(ticket)
            return None if ticket.has_begun else self._waiting(ticket, line, shares=True)

    # -- the turns of the scheduler --------------------------------------------------------------

    def next(self, waiting: Sequence[Row]) -> Row:
        """The row that gets the next place."""
        with self._lock:
            return min(waiting, key=lambda row: self._turn(row.owner))

    def begin(self, row: Row) -> None:
        """A row has got a place."""
        with self._lock:
            if isinstance(row.owner, Ticket):
                row.owner.rows += 1
                row.owner.has_begun = True
                self._serve(row.owner)

    def end(self, row: Row) -> None:
        """A row has left its place."""
        with self._lock:
            if isinstance(row.owner, Ticket):
                row.owner.rows -= 1
                self._serve(row.owner)

    # --------------------------------------------------------------------------------------------

    def _rows(self) -> int:
        return sum(ticket.rows for ticket in self._active)

    def _turn(self, owner: object) -> tuple[int, ...]:
        """Whoever has the smallest is next."""
        if not isinstance(owner, Ticket):  # The program's own.
            return (-1,)
        holders = owner.visitor.address, owner.visitor
        rows: Counter[str | Visitor] = Counter()
        for ticket in self._active:
            rows[ticket.visitor.address] += ticket.rows
            rows[ticket.visitor] += ticket.rows
        turns = (max(owner.arrival, self._served.get(holder, 0)) for holder in holders)
        return *(rows[holder] for holder in holders), *turns, owner.arrival

    def _line(self) -> list[Ticket]:
        """Those that have not begun, in the order of their turns."""
        waiting = [ticket for ticket in self._tickets if not ticket.has_begun]
        return sorted(waiting, key=self._turn)

    def _check(self, ticket: Ticket) -> list[Ticket]:
        """The line. Raises InputError if the ticket was removed."""
        if ticket not in self._tickets:
            raise InputError(
                "Your take was dropped: the queue is full and you had the most takes waiting. Try "
                "again when your other takes are done."
            )
        return self._line()

    def _may_use(self, ticket: Ticket, line: Sequence[Ticket], shares: bool) -> bool:
        """Whether a ticket may use the engine now: it is the first of those that do not."""
        if ticket is not next(each for each in line if each not in self._active):
            return False
        # What was loaded when `shares` was computed may have been replaced since.
        return not self._active or (
            shares and all(each.is_open and each.runtime == ticket.runtime for each in self._active)
        )

    def _waiting(self, ticket: Ticket, line: Sequence[Ticket], shares: bool) -> Waiting:
        position = line.index(ticket) + 1
        # Whoever is further back would be misled.
        return Waiting(position, self._time_until(shares) if position == 1 else None)

    def _time_until(self, shares: bool) -> TimeLeft | None:
        """Until a place is free, or the whole engine; None if unknown."""
        if shares and self._rows() < self.places:
            return NOTHING
        times = [each.next_end if shares else each.left for each in self._active if each.has_begun]
        known = [time for time in times if time is not None]
        if not known or (not shares and len(known) < len(times)):
            return None
        return soonest(known) if shares else longest(known)

    def _serve(self, ticket: Ticket) -> None:
        """Record a turn: all others who wait now come before the ticket's visitor."""
        now = next(self._clock)
        self._served |= {ticket.visitor.address: now, ticket.visitor: now}

    def _call_next(self) -> None:
        """Wake the next that does not use the engine yet. Only that one: waking a long queue costs
        more than a short take."""
        waiting = [ticket for ticket in self._line() if ticket not in self._active]
        if waiting:
            waiting[0].called.set()

    def _admit(self, visitor: Visitor) -> None:
        if visitor.session:
            own = sum(ticket.visitor == visitor for ticket in self._tickets)
            if own >= self._runs:
                raise InputError(
                    f"You have {own} takes running or waiting, the maximum for one page or "
                    "program. Wait for one to end, or stop it."
                )
        is_open = all(ticket.is_open for ticket in self._active)
        has_place = is_open and self._rows() < self.places
        if len(self._line()) >= self._size + has_place and not self._make_room(visitor):
            raise InputError(
                f"The queue is full ({plural(len(self._tickets), 'take')}). Try again in a moment."
            )

    def _make_room(self, visitor: Visitor) -> bool:
        """Remove the last ticket of the address with the most, or else of the visitor with the
        most, if that is at least two more than the newcomer has."""
        waiting = self._line()
        for group in (lambda holder: holder.address, lambda holder: holder):
            counts = Counter(group(ticket.visitor) for ticket in self._tickets)
            most = max(counts.values(), default=0)
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
        if ticket in self._active:
            self._active.remove(ticket)
            self._serve(ticket)
        visitors = {waiting.visitor for waiting in self._tickets}
        here = visitors | {visitor.address for visitor in visitors}
        self._served = {holder: when for holder, when in self._served.items() if holder in here}
        ticket.called.set()
        if not self._tickets:
            self.busy.clear()
        self._call_next()
