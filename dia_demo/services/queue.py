"""One engine, one at a time: the others wait in order and are told their place."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from dia_demo.engine.events import Waiting
from dia_demo.errors import InputError

SAY_AGAIN_SECONDS = 0.5


class Ticket:
    """A place in the queue. `seconds_left` is the holder's own estimate while it runs."""

    def __init__(self) -> None:
        self.seconds_left: float | None = None


class Queue:
    """First come, first served; at most `size` wait beside the one that runs."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._tickets: list[Ticket] = []
        self._changed = threading.Condition()

    @contextmanager
    def place(self) -> Iterator[Ticket]:
        """A ticket, given back on leaving. Raises InputError where the queue is full."""
        ticket = Ticket()
        with self._changed:
            if len(self._tickets) > self._size:
                raise InputError(
                    f"{len(self._tickets)} takes are running or waiting already, which is all "
                    "this machine accepts: try again in a little while."
                )
            self._tickets.append(ticket)
        try:
            yield ticket
        finally:
            with self._changed:
                self._tickets.remove(ticket)
                self._changed.notify_all()

    def wait(self, ticket: Ticket, cancel: threading.Event) -> Iterator[Waiting]:
        """Until the ticket is first or `cancel` is set: its place, whenever it changes and now
        and then. Yields nothing where nobody is before it."""
        while not cancel.is_set():
            with self._changed:
                place = self._tickets.index(ticket)
                seconds = self._tickets[0].seconds_left if place == 1 else None
            if place == 0:
                return
            yield Waiting(place, seconds)
            with self._changed:
                self._changed.wait(timeout=SAY_AGAIN_SECONDS)
