"""The scheduler: one loop for the rows of all requests.

Rows wait, get a place, are read (prefilled) while the others go on, and then advance together, one
decoder step at a time. A row leaves when it ends, is stopped or fails, and its place is free for
the next one at the same boundary between two steps. Every row is computed as if it were alone.
"""

from __future__ import annotations

import logging
from collections.abc import Generator, Sequence
from typing import Protocol

from dia_demo.engine.batch import Batch, Prefill
from dia_demo.engine.decoder_model import DecoderModel, DeviceFailed
from dia_demo.engine.events import FinishReason
from dia_demo.engine.row import Row
from dia_demo.errors import DiaDemoError, RunError

# Each step reads the weights once for all rows, so further rows cost little until the arithmetic is
# the limit.
PLACES = 8

log = logging.getLogger(__name__)


class Turns(Protocol):
    """Whose row is next. Called in the thread of the scheduler."""

    def next(self, waiting: Sequence[Row]) -> Row:
        """The waiting row that gets the next place."""

    def begin(self, row: Row) -> None:
        """The row has got a place."""

    def end(self, row: Row) -> None:
        """The row has left its place."""


class FirstCome:
    """The turns of rows that all belong to one caller: in order."""

    def next(self, waiting: Sequence[Row]) -> Row:
        return waiting[0]

    def begin(self, row: Row) -> None: ...

    def end(self, row: Row) -> None: ...


class Scheduler:
    """The rows of one model. One thread calls all methods, `schedule` and `step` in turn.

    waiting: rows without a place. running: those with one, at most `places`; a row without a cache
    has not been read yet.
    """

    def __init__(
        self, model: DecoderModel, places: int = PLACES, turns: Turns | None = None
    ) -> None:
        self.waiting: list[Row] = []
        self.running: list[Row] = []
        self._model, self._places, self._turns = model, places, turns or FirstCome()
        self._prefill = Prefill(model)
        self._batch: Batch | None = None
        self._next: Row | None = None

    def add(self, rows: Sequence[Row]) -> None:
        """Let rows wait for places."""
        self.waiting += rows
        self._next = None

    def schedule(self) -> tuple[list[Row], list[Row]]:
        """Remove stopped rows, then fill the free places; returns both: (stopped, placed)."""
        stopped = [row for row in self.running + self.waiting if row.is_stopped]
        for row in stopped:
            row.finish_reason = FinishReason.CANCELLED
            self.remove(row)
        placed = []
        while self.waiting and len(self.running) < self._places:
            row = self._next_waiting()
            self.waiting.remove(row)
            self.running.append(row)
            self._turns.begin(row)
            self._next = None
            placed.append(row)
        return stopped, placed

    def step(self) -> list[Row]:
        """Advance the running rows that have been read; returns those and the ones that could not
        be read. Rows that are done or have failed leave."""
        unreadable = self._read()
        batch = [row for row in self.running if row.cache is not None]
        if batch:
            self._batch = self._batch or Batch(self._model, batch)
            self._batch.step()
        for row in unreadable + [row for row in batch if row.done]:
            self.remove(row)
        return unreadable + batch

    def remove(self, row: Row) -> None:
        """Take a row out, wherever it is, and free its memory."""
        if row in self.waiting:
            self.waiting.remove(row)
            self._next = None
        elif row in self.running:
            self.running.remove(row)
            self._turns.end(row)
            row.cache = self._batch = None

    def close(self) -> None:
        """Take all rows out, and wait for the thread that reads them."""
        for row in self.running + self.waiting:
            self.remove(row)
        self._prefill.close()

    def _next_waiting(self) -> Row:
        self._next = self._next or self._turns.next(self.waiting)
        return self._next

    def _read(self) -> list[Row]:
        """Read what can be read without delaying the rows that advance; returns the rows that
        cannot be read, with their `failure` set."""
        unread = [row for row in self.running if row.cache is None]
        if len(unread) == len(self.running):
            return [row for row in unread if not self._can_read(row)]
        if not self._prefill.can_read_beside:  # Between two steps, one at a time.
            return [row for row in unread[:1] if not self._can_read(row)]
        were_read = [row for row in unread if self._prefill.has_read(row)]
        unreadable = [row for row in were_read if not self._can_read(row)]
        if still_unread := [row for row in unread if row not in were_read]:
            self._prefill.begin(still_unread[0])
        elif self.waiting:  # Ahead of its place.
            self._prefill.begin(self._next_waiting())
        return unreadable

    def _can_read(self, row: Row) -> bool:
        try:
            self._prefill.read(row)
            self._batch = None  # It joins.
        except DeviceFailed:
            raise
        except Exception as error:
            row.fail(reason_of(error))
        return row.failure is None


def reason_of(error: Exception) -> str:
    """Why a row failed, for people."""
    if isinstance(error, DiaDemoError):
        return str(error)
    log.error("a row failed", exc_info=error)
    return f"The run failed: {type(error).__name__}: {error}. The app is still usable."


def run(
    model: DecoderModel, rows: Sequence[Row], places: int = PLACES
) -> Generator[Row, None, None]:
    """Yield each row after each of its steps until all are done, stopped or failed.

    At most `places` rows advance together, and each of the others joins when a row leaves. A
    stopped row is yielded once more, without a step; a row whose logits are not finite, or that
    cannot be read, has its `failure` set.
    """
    scheduler = Scheduler(model, places)
    scheduler.add(rows)
    try:
        while scheduler.waiting or scheduler.running:
            stopped, _ = scheduler.schedule()
            yield from stopped
            yield from scheduler.step()
    finally:
        scheduler.close()


def run_to_end(model: DecoderModel, rows: Sequence[Row]) -> None:
    """`run` without looking at its steps. Raises RunError where a row failed."""
    for row in run(model, rows):
        if row.failure is not None:
            raise RunError(row.failure)
