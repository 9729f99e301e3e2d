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
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from math import ceil

from dia_demo.config import RuntimeConfig
from dia_demo.engine.engine_thread import EventStream
from dia_demo.engine.events import Event, Waiting
from dia_demo.engine.rows.base_row import BaseRow
from dia_demo.engine.scheduler import PLACES
from dia_demo.engine.time_left import NOTHING, TimeLeft, longest_time, soonest_time
from dia_demo.errors import BusyError
from dia_demo.services.people import Caller, Visitor
from dia_demo.services.wording import plural

POSITION_SECONDS = 0.5
# Per session: a run and the next one.
RUNS = 2
# Per address, and per token.
ADDRESS_RUNS = 64
# Where it is not known when there will be room.
RETRY_SECONDS = 5


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


def never_share() -> bool:
    """A run that shares the engine with nobody."""
    return False


class Queue:
    """At most `size` runs wait while others have places. runs: the most of one session;
    address_runs: of one address or token. places: of the engine, until it says how many it has.

    It is the `Turns` of the engine's scheduler.
    """

    def __init__(
        self,
        size: int,
        runs: int = RUNS,
        places: int = PLACES,
        address_runs: int = ADDRESS_RUNS,
    ) -> None:
        self._size, self._runs, self._address_runs = size, runs, address_runs
        self.places = places
        self._tickets: list[Ticket] = []
        # Those that use the engine: one that is not open, or any number of open ones.
        self._active: list[Ticket] = []
        # One clock for arrivals and turns. `_served`: the last turn of each address and visitor.
        self._clock = count(1)
        self._served: dict[str | Visitor, int] = {}
        # Set while there is any ticket: background work stops then.
        self.busy = threading.Event()
        # When the last ticket left, in seconds of `time.monotonic`.
        self.left_at = time.monotonic()
        self._lock = threading.Lock()

    @contextmanager
    def enter(self, cancel: threading.Event | None = None) -> Iterator[Ticket]:
        """A ticket for the owner of `cancel`, until the block ends.

        Raises BusyError if the visitor has too many tickets, or the queue is full.
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
    def waiting(self) -> int:
        """How many runs wait for their first place."""
        with self._lock:
            return len(self._line())

    @property
    def rows(self) -> int:
        """How many rows have a place."""
        with self._lock:
            return self._rows()

    def time_to_place(self, may_share: bool) -> TimeLeft | None:
        """How long a new run would wait for its first place; None if unknown."""
        with self._lock:
            until, waiting = self._time_until(may_share), len(self._line())
            if not self._active:
                return NOTHING
            return None if until is None else until * (1 + waiting)

    def wait(
        self,
        ticket: Ticket,
        cancel: threading.Event,
        may_share: Callable[[], bool] = never_share,
    ) -> Iterator[Waiting]:
        """Yield the ticket's position at intervals, until it may use the engine or `cancel` is set.
        Yields nothing if that is at once.

        It then has the engine for itself, until `open`; or shares it with others that are open, if
        `may_share` says so. Raises BusyError if the ticket was removed to make room for another
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
                waiting = self._waiting_event(ticket, line, shares)
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
        it has begun. Raises BusyError if it was removed."""
        with self._lock:
            if ticket.has_begun:
                return None
            return self._waiting_event(ticket, self._check(ticket), shares=True)

    # -- the turns of the scheduler --------------------------------------------------------------

    def next(self, waiting: Sequence[BaseRow]) -> BaseRow:
        """The row that gets the next place."""
        with self._lock:
            turn = self._turns()
            return min(waiting, key=lambda row: turn(row.owner))

    def begin(self, row: BaseRow) -> None:
        """A row has got a place."""
        with self._lock:
            if isinstance(row.owner, Ticket):
                row.owner.rows += 1
                row.owner.has_begun = True
                self._serve(row.owner)

    def end(self, row: BaseRow) -> None:
        """A row has left its place."""
        with self._lock:
            if isinstance(row.owner, Ticket):
                row.owner.rows -= 1
                self._serve(row.owner)

    def may_exceed(self, row: BaseRow) -> bool:
        """Whether the row's visitor has no other, so that it may have a spare place."""
        with self._lock:
            if not isinstance(row.owner, Ticket):
                return False
            visitor = row.owner.visitor
            return not any(each.rows for each in self._active if each.visitor == visitor)

    # --------------------------------------------------------------------------------------------

    def _rows(self) -> int:
        return sum(ticket.rows for ticket in self._active)

    def _turns(self) -> Callable[[object], tuple[int, ...]]:
        """The turn of an owner, as things are now: whoever has the smallest is next."""
        rows: Counter[str | Visitor] = Counter()
        for ticket in (each for each in self._active if each.rows):  # Few have any.
            rows[ticket.visitor.address] += ticket.rows
            rows[ticket.visitor] += ticket.rows

        def turn(owner: object) -> tuple[int, ...]:
            if not isinstance(owner, Ticket):  # The program's own.
                return (-1,)
            holders = owner.visitor.address, owner.visitor
            turns = (max(owner.arrival, self._served.get(each, 0)) for each in holders)
            return *(rows[each] for each in holders), *turns, owner.arrival

        return turn

    def _line(self) -> list[Ticket]:
        """Those that have not begun, in the order of their turns."""
        waiting = [ticket for ticket in self._tickets if not ticket.has_begun]
        return sorted(waiting, key=self._turns())

    def _check(self, ticket: Ticket) -> list[Ticket]:
        """The line. Raises BusyError if the ticket was removed."""
        if ticket not in self._tickets:
            raise BusyError(
                "Your take was dropped: the queue is full and you had the most takes waiting. Try "
                "again when your other takes are done.",
                self._retry_seconds(),
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

    def _waiting_event(self, ticket: Ticket, line: Sequence[Ticket], shares: bool) -> Waiting:
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
        return soonest_time(known) if shares else longest_time(known)

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
        self._check_own(visitor)
        is_open = all(ticket.is_open for ticket in self._active)
        has_place = is_open and self._rows() < self.places
        if len(self._line()) >= self._size + has_place and not self._make_room(visitor):
            raise BusyError(
                f"The queue is full ({plural(len(self._tickets), 'take')}). Try again in a moment.",
                self._retry_seconds(),
            )

    def _check_own(self, visitor: Visitor) -> None:
        """Raise BusyError if a session, an address or a token has too many tickets."""
        for who, limit, of in (
            ("page or program", self._runs, lambda other: other.session and other),
            ("address", self._address_runs, lambda other: other.address),
            ("token", self._address_runs, lambda other: other.token),
        ):
            own = sum(of(ticket.visitor) == of(visitor) for ticket in self._tickets)
            if of(visitor) and own >= limit:
                raise BusyError(
                    f"You have {own} takes running or waiting, the maximum for one {who}. "
                    "Wait for one to end, or stop it.",
                    self._retry_seconds(),
                )

    def _retry_seconds(self) -> int:
        """Until there may be room: until the first row leaves its place."""
        ends = [each.next_end for each in self._active if each.next_end is not None]
        return max(1, ceil(soonest_time(ends).high)) if ends else RETRY_SECONDS

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
            self.left_at = time.monotonic()
        self._call_next()
