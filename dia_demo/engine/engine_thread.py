"""The thread of an engine: it owns the scheduler, and is the only one that runs steps.

Requests come in from any thread, and each reads its events from a stream of its own. Where the
steps leave cores free, audio is decoded there; otherwise between two steps. A slow reader delays
nobody; its events wait in its stream.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from math import inf
from time import perf_counter
from weakref import WeakSet

from dia_demo.engine.decoder_model import DecoderModel, DeviceFailed
from dia_demo.engine.events import Cancelled, Event, Failed, Finished
from dia_demo.engine.row_stream import Part, RowStream
from dia_demo.engine.rows.base_row import BaseRow
from dia_demo.engine.scheduler import PLACES, Scheduler, Turns, is_awaited, reason_of
from dia_demo.engine.sound.side_threads import SideThreads
from dia_demo.errors import RunError
from dia_demo.machine.background import Background
from dia_demo.model.cpu_model import torch_threads

# The longest time to wait for a step.
END_SECONDS = 20.0
# How often rows that all wait for text are looked at.
TEXT_SECONDS = 0.02
# Without rows for so long the thread ends, and with it its hold on the model; the next request
# starts another.
IDLE_SECONDS = 5.0
CLOSED = "The model was closed, so this take was cancelled. Generate it again."


class EventStream(Iterator[Event]):
    """The events of one request's rows, in order; it ends after the last event of the last row.

    `close` cancels the rows that have not ended, within a step.
    """

    def __init__(self, rows: Sequence[RowStream], is_inside: Callable[[], bool]) -> None:
        self._rows, self._is_inside = rows, is_inside
        self._events: queue.SimpleQueue[Event] = queue.SimpleQueue()
        self._ends_read = 0
        self._all_left = threading.Event()

    @property
    def is_over(self) -> bool:
        """Whether all events were read, or the stream is closed."""
        return self._ends_read >= len(self._rows)

    def get(self, timeout: float | None = None) -> Event | None:
        """The next event of a stream that is not over; None if none comes within `timeout`
        seconds."""
        try:
            event = self._events.get(timeout=timeout)
        except queue.Empty:
            return None
        self._ends_read += isinstance(event, Finished | Cancelled | Failed)
        return event

    def __next__(self) -> Event:
        if self.is_over:
            raise StopIteration
        event = self.get()
        assert event is not None
        return event

    def close(self) -> None:
        """Cancel the rows that have not ended, and wait until they have left.

        It does not wait in the engine's own thread, where a forgotten stream may be collected.
        """
        self._ends_read = len(self._rows)
        for stream in self._rows:
            stream.row.abandon()
        if not self._is_inside():
            self._all_left.wait(END_SECONDS)

    def put(self, event: Event) -> None:
        """Add an event. Called by the engine's thread."""
        self._events.put(event)
        if all(stream.ended for stream in self._rows):
            self._all_left.set()


class EngineThread:
    """Runs the rows of all requests in one thread, which runs while there are any.

    places, turns, spare: see Scheduler. device: of the model. device_failed: called when the
    model's device fails, which ends all rows. free_cores: those that steps do not use.
    """

    def __init__(
        self,
        model: DecoderModel,
        places: int = PLACES,
        turns: Turns | None = None,
        device: str = "cpu",
        device_failed: Callable[[], None] = lambda: None,
        spare: int = 0,
        free_cores: int = 0,
    ) -> None:
        self._side = SideThreads(free_cores, self._is_somebody_waiting)
        self._scheduler = Scheduler(model, places, turns, spare)
        self._device, self._device_failed = device, device_failed
        self._arrivals: queue.SimpleQueue[tuple[EventStream, Sequence[RowStream]] | None] = (
            queue.SimpleQueue()
        )
        self._streams: dict[BaseRow, tuple[RowStream, EventStream]] = {}
        # Streams with listeners: of rows that advance, or that have left while another thread
        # decodes the rest of their audio.
        self._heard: WeakSet[RowStream] = WeakSet()
        self._lock = threading.Lock()
        self._thread: Background | None = None
        self._closed = False

    def submit(self, rows: Sequence[RowStream]) -> EventStream:
        """Let rows wait for places; returns their events. Raises RunError if it is closed."""
        stream = EventStream(rows, self._is_inside)
        with self._lock:
            if self._closed:
                raise RunError(CLOSED)
            if self._thread is None:
                self._thread = Background("engine", self._run).start()
            self._arrivals.put((stream, rows))
        return stream

    def close(self) -> None:
        """End the thread, and wait for it; rows that have not ended fail."""
        with self._lock:
            self._closed = True
            self._arrivals.put(None)
            thread = self._thread
        if thread is not None and not self._is_inside():
            thread.join(END_SECONDS)

    def _is_inside(self) -> bool:
        thread = self._thread
        return thread is not None and thread.is_current

    def _run(self) -> None:
        with torch_threads(1):  # The model's own operations use as many as it was loaded with.
            self._serve()

    def _serve(self) -> None:
        pause = 0.0
        while self._take_arrivals(pause):
            pause = 0.0
            try:
                pause = 0.0 if self._advance() else TEXT_SECONDS
            except DeviceFailed as error:
                self._fail(list(self._streams), str(error), self._device)
                self._device_failed()
            except Exception as error:  # Of the step, so of all rows in it.
                advancing = [row for row in self._scheduler.running if row.cache is not None]
                self._fail(advancing or list(self._streams), reason_of(error))
        self._side.close()
        self._fail(list(self._streams), CLOSED)
        self._scheduler.close()

    def _take_arrivals(self, pause: float) -> bool:
        """Let the rows wait that have come meanwhile; without any rows, wait for the first. Returns
        whether the thread goes on: it ends if none comes. pause: how long to wait in any case."""
        while True:
            timeout = pause if self._streams else IDLE_SECONDS
            try:
                arrival = self._arrivals.get(timeout > 0, timeout)
            except queue.Empty:
                if self._streams:
                    return True
                self._side.close()
                with self._lock:
                    if self._arrivals.empty():
                        self._thread = None
                        return False
                continue
            if arrival is None:
                return False
            events, streams = arrival
            self._streams |= {stream.row: (stream, events) for stream in streams}
            self._scheduler.add([stream.row for stream in streams])
            del arrival, events, streams  # The next one may be long in coming.
            pause = 0.0

    def _advance(self) -> bool:
        """One step of all rows that have a place, and their events. Returns whether there was
        anything to do."""
        began = perf_counter()
        stopped, placed = self._scheduler.schedule()
        for row in placed:
            stream, events = self._streams[row]
            events.put(stream.start(others=len(self._scheduler.running) - 1))
        self._find_heard()
        changed = self._scheduler.step(self._is_somebody_waiting())
        seconds = perf_counter() - began
        for row in changed:
            self._streams[row][0].note_step(seconds, others=len(changed) - 1)
        # Whoever waits for the rest of a text hears what there is of it.
        others = (row for row in self._scheduler.running if row not in changed)
        for row in stopped + changed + [row for row in others if row.needs_text()]:
            self._report(row)
        return bool(stopped or placed or changed)

    def _report(self, row: BaseRow) -> None:
        """The row's events after a step. It fails alone if its audio cannot be decoded."""
        stream, events = self._streams[row]
        if stream.ended:  # Its audio could not be decoded.
            self._streams.pop(row)
            return
        is_busy = stream.parts_left > 0
        is_due = stream.is_due or (stream.has_piece and self._may_decode_now(stream))
        if not is_due or (is_busy and not stream.is_over):
            return
        try:
            parts = stream.next_parts()
            deadline = stream.next_deadline()
            if is_busy or self._is_decoded_beside(stream, deadline):
                stream.parts_submitted += len(parts)
                for part in parts:
                    send = partial(_send_beside, stream, events, part)
                    self._side.submit(stream.serial, send, deadline)
                is_sent = parts[-1].is_last
            else:
                for part in parts:
                    _send(stream, events, part)
                is_sent = stream.ended
        except DeviceFailed:
            raise
        except Exception as error:
            self._fail([row], reason_of(error))
        else:
            if is_sent:
                self._streams.pop(row)

    def _may_decode_now(self, stream: RowStream) -> bool:
        """Whether a piece is decoded before it is due: where another thread does nothing, or comes
        to it soon because somebody waits for it."""
        if self._side.is_free(stream.serial):
            return True
        return self._side.number > 0 and is_awaited(stream.row, perf_counter())

    def _is_decoded_beside(self, stream: RowStream, deadline: float) -> bool:
        """Whether audio is decoded in another thread: where that would begin soon, or where only
        others wait."""
        if not self._side.number:
            return False
        is_patient = deadline == inf and self._is_somebody_waiting()
        return is_patient or self._side.has_room(stream.serial, deadline)

    def _find_heard(self) -> None:
        """Set `_heard`, without rows that wait for text."""
        running = [self._streams[row][0] for row in self._scheduler.running if row in self._streams]
        # Those of rows that have left stay until another thread has decoded all of their audio.
        leaving = [each for each in self._heard if not each.ended and each not in running]
        heard = [each for each in running if each.is_heard and not each.row.needs_text()]
        self._heard = WeakSet([*heard, *leaving])

    def _is_somebody_waiting(self) -> bool:
        """Whether a listener has little sound left, or none yet. Called in any thread."""
        now = perf_counter()
        return any(not each.ended and is_awaited(each.row, now) for each in self._heard)

    def _fail(self, rows: Sequence[BaseRow], message: str, device: str = "cpu") -> None:
        for row in rows:
            self._scheduler.remove(row)
            if row in self._streams:
                stream, events = self._streams.pop(row)
                stream.ended = True
                events.put(Failed(message, stream.index, device))


def _send(stream: RowStream, events: EventStream, part: Part) -> None:
    for event in stream.events_of(part):
        events.put(event)


def _send_beside(stream: RowStream, events: EventStream, part: Part) -> None:
    """The same in another thread. A row whose audio cannot be decoded leaves after its step."""
    try:
        if not stream.ended:
            _send(stream, events, part)
    except Exception as error:
        stream.ended = True
        stream.row.abandon()
        events.put(Failed(reason_of(error), stream.index))
    finally:
        stream.parts_done += 1
