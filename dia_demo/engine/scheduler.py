"""The scheduler: one loop for the rows of all requests.

Rows wait, get a place, are read (prefilled) while the others go on, and then advance together, one
decoder step at a time. A row leaves when it ends, is stopped or fails, and its place is free for
the next one at the same boundary between two steps. Every row is computed as if it were alone, so
that a step may leave rows out: those whose text is still being written and has not come far enough,
and those whose listeners have enough sound left while another listener has little.
"""

from __future__ import annotations

import logging
from collections.abc import Generator, Sequence
from time import perf_counter
from typing import Protocol

from dia_demo.engine.batch import Prefill
from dia_demo.engine.decoder_model import DecoderModel, DeviceFailed
from dia_demo.engine.events import FinishReason
from dia_demo.engine.rows.base_row import BaseRow, Steps
from dia_demo.errors import DiaDemoError, RunError

# Each step reads the weights once for all rows, so further rows cost little until the arithmetic is
# the limit.
PLACES = 8
# Beyond the places, so that somebody who has no row need not wait for one to end.
SPARE_PLACES = 4
# A listener with less sound than this is served first.
ENOUGH_SECONDS = 2.0
# A row without a listener is left out for so long at most.
LONGEST_BREAK_SECONDS = 0.25
# Batches that are kept while the same rows run: of all, and of those served first.
_MOST_BATCHES = 4

log = logging.getLogger(__name__)


class Turns(Protocol):
    """Whose row is next. Called in the thread of the scheduler."""

    def next(self, waiting: Sequence[BaseRow]) -> BaseRow:
        """The waiting row that gets the next place."""

    def begin(self, row: BaseRow) -> None:
        """The row has got a place."""

    def end(self, row: BaseRow) -> None:
        """The row has left its place."""

    def may_exceed(self, row: BaseRow) -> bool:
        """Whether the row may have a spare place, beyond those that are shared."""


class FirstCome:
    """The turns of rows that all belong to one caller: in order."""

    def next(self, waiting: Sequence[BaseRow]) -> BaseRow:
        return waiting[0]

    def begin(self, row: BaseRow) -> None: ...

    def end(self, row: BaseRow) -> None: ...

    def may_exceed(self, row: BaseRow) -> bool:
        return False


class Scheduler:
    """The rows of one model. One thread calls all methods, `schedule` and `step` in turn.

    waiting: rows without a place. running: those with one; a row without a cache has not been read
    yet. places: the most rows that advance together. spare: the most that may run besides, see
    `Turns.may_exceed`.
    """

    def __init__(
        self,
        model: DecoderModel,
        places: int = PLACES,
        turns: Turns | None = None,
        spare: int = 0,
    ) -> None:
        self.waiting: list[BaseRow] = []
        self.running: list[BaseRow] = []
        self._model, self._places, self._turns = model, places, turns or FirstCome()
        self._spare = spare
        self._prefill = Prefill(model)
        self._batches: dict[tuple[int, ...], Steps] = {}
        self._next: BaseRow | None = None

    def add(self, rows: Sequence[BaseRow]) -> None:
        """Let rows wait for places."""
        self.waiting += rows
        self._next = None

    def schedule(self) -> tuple[list[BaseRow], list[BaseRow]]:
        """Remove stopped rows, then fill the free places; returns both: (stopped, placed)."""
        stopped = [row for row in self.running + self.waiting if row.is_stopped]
        for row in stopped:
            row.finish_reason = FinishReason.CANCELLED
            self.remove(row)
        placed = []
        while self.waiting and self._has_place(row := self._next_waiting()):
            self.waiting.remove(row)
            self.running.append(row)
            self._turns.begin(row)
            self._next = None
            placed.append(row)
        return stopped, placed

    def step(self, is_sound_awaited: bool = False) -> list[BaseRow]:
        """Advance running rows that have been read, see `choose_rows`; returns those and the ones
        that could not be read. Rows that are done or have failed leave.

        is_sound_awaited: somebody waits for the sound of a row, which may have left.
        """
        unreadable = self._read()
        read = [row for row in self.running if row.cache is not None]
        ready = [row for row in read if not row.needs_text()]
        batch = choose_rows(ready, self._places, perf_counter(), is_sound_awaited)
        if batch:
            self._batch_of(batch).step()
        for row in unreadable + [row for row in batch if row.done]:
            self.remove(row)
        return unreadable + batch

    def remove(self, row: BaseRow) -> None:
        """Take a row out, wherever it is, and free its memory."""
        if row in self.waiting:
            self.waiting.remove(row)
            self._next = None
        elif row in self.running:
            self.running.remove(row)
            self._turns.end(row)
            row.cache = None
            self._batches.clear()

    def close(self) -> None:
        """Take all rows out, and wait for the thread that reads them."""
        for row in self.running + self.waiting:
            self.remove(row)
        self._prefill.close()

    def _has_place(self, row: BaseRow) -> bool:
        free = self._places - len(self.running)
        return free > 0 or (free + self._spare > 0 and self._turns.may_exceed(row))

    def _batch_of(self, rows: Sequence[BaseRow]) -> Steps:
        key = tuple(map(id, rows))
        if key not in self._batches:
            if len(self._batches) >= _MOST_BATCHES:
                self._batches.clear()
            self._batches[key] = rows[0].make_batch(self._model, rows)
        return self._batches[key]

    def _next_waiting(self) -> BaseRow:
        self._next = self._next or self._turns.next(self.waiting)
        return self._next

    def _read(self) -> list[BaseRow]:
        """Read what can be read without delaying the rows that advance, first those with listeners;
        or all at once if those that advance are the fewer and none of them has sound left, since
        beside steps it takes longer. Returns the rows that cannot be read, with their `failure`
        set."""
        unread = [row for row in self.running if row.cache is None]
        if not unread and not self.waiting:
            return []
        now = perf_counter()
        unread.sort(key=lambda row: row.sound_left(now) is None)
        advancing = [row.sound_left(now) for row in self.running if row.cache is not None]
        heard = [seconds for seconds in advancing if seconds is not None]
        # Somebody who listens does not wait for rows to which nobody listens.
        urgent = [row for row in unread if not heard or row.sound_left(now) is not None]
        if len(urgent) > len(advancing) and max(heard, default=0.0) <= 0.0:
            return [row for row in urgent if not self._can_read(row)]
        if not self._prefill.can_read_beside:  # Between two steps, one at a time.
            return [row for row in unread[:1] if not self._can_read(row)]
        were_read = [row for row in unread if self._prefill.has_read(row)]
        unreadable = [row for row in were_read if not self._can_read(row)]
        if still_unread := [row for row in unread if row not in were_read]:
            self._prefill.begin(still_unread[0])
        elif self.waiting:  # Ahead of its place.
            self._prefill.begin(self._next_waiting())
        return unreadable

    def _can_read(self, row: BaseRow) -> bool:
        try:
            self._prefill.read(row)
            self._batches.clear()  # It joins.
        except DeviceFailed:
            raise
        except Exception as error:
            row.fail(reason_of(error))
        return row.failure is None


def choose_rows(
    rows: Sequence[BaseRow], most: int, now: float, is_sound_awaited: bool = False
) -> list[BaseRow]:
    """The rows of the next step, at most so many: those whose listeners have little sound left; all
    where there are none of these. Once one without a listener was left out for long, all of those
    take part, because the batch changes then.

    Under a load that leaves no listener enough, all rows take part in turn. now: by perf_counter.
    is_sound_awaited: a listener waits for what another thread reads or decodes, which takes longer
    beside steps of others.
    """
    spare = {row: _spare_seconds(row, now) for row in rows}
    unheard = [row for row in rows if row.sound_left(now) is None]
    is_overdue = any(spare[row] < 0 for row in unheard)
    chosen = [row for row in rows if (is_overdue if row in unheard else spare[row] < 0)]
    if not chosen and not is_sound_awaited:
        chosen = list(rows)
    if len(chosen) > most:
        kept = sorted(chosen, key=spare.__getitem__)[:most]
        chosen = [row for row in rows if row in kept]
    for row in chosen:
        row.stepped_at = now
    return chosen


def is_awaited(row: BaseRow, now: float) -> bool:
    """Whether somebody who listens has little sound left, or none yet."""
    left = row.sound_left(now)
    return left is not None and left < ENOUGH_SECONDS


def _spare_seconds(row: BaseRow, now: float) -> float:
    """How long a row may be left out."""
    left = row.sound_left(now)
    if left is None:
        return row.stepped_at + LONGEST_BREAK_SECONDS - now
    return left - ENOUGH_SECONDS


def reason_of(error: Exception) -> str:
    """Why a row failed, for people."""
    if isinstance(error, DiaDemoError):
        return str(error)
    log.error("a row failed", exc_info=error)
    return f"The run failed: {type(error).__name__}: {error}. The app is still usable."


def run(
    model: DecoderModel, rows: Sequence[BaseRow], places: int = PLACES
) -> Generator[BaseRow, None, None]:
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


def run_to_end(model: DecoderModel, rows: Sequence[BaseRow]) -> None:
    """`run` without looking at its steps. Raises RunError where a row failed."""
    for row in run(model, rows):
        if row.failure is not None:
            raise RunError(row.failure)
