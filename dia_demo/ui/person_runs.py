"""Runs that go on without their page: one for each person, watched by any number of pages.

A person is recognised by the browser's key. A page that is closed or reloaded, or loses its
connection, only stops watching. A run that nobody watches is stopped after UNATTENDED_SECONDS; one
without a key is stopped with its page.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import gradio as gr

from dia_demo.services.people import Caller, is_key
from dia_demo.services.wording import duration
from dia_demo.ui.runs import RunButtons, Updates, visitor_of

# Strangers' runs must not use the machine for ever.
UNATTENDED_SECONDS = 15 * 60.0
# Of one address; those that nobody has watched for longest are stopped first.
MAX_UNATTENDED = 4
# Ended runs in memory: their last status is shown when the person comes back.
MAX_ENDED = 50
ABANDONED = (
    "Note: the run was stopped because this page was closed for "
    f"{duration(UNATTENDED_SECONDS)}, and others may be waiting."
)


class WatchedRun:
    """One run. `shown`: the latest update of every component; `key`: the person's, if known."""

    def __init__(self, cancel: Caller, key: str | None) -> None:
        self.cancel = cancel
        self.key = key
        self.shown: Updates = {}
        self.ended = False
        # Stopped because nobody watched it.
        self.abandoned = False
        # When its last page left, in monotonic seconds; None while there is one.
        self.left_at: float | None = time.monotonic()
        self._pages: list[Updates] = []
        self._changed = threading.Condition()

    def publish(self, update: Updates) -> None:
        """Show an update on every page that watches."""
        with self._changed:
            self.shown |= update
            for unseen in self._pages:
                unseen |= update
            self._changed.notify_all()
        if self.left_at is not None and time.monotonic() - self.left_at > UNATTENDED_SECONDS:
            self.abandon()

    def abandon(self) -> None:
        """Stop a run that nobody watches."""
        self.abandoned = True
        self.cancel.set()

    def end(self) -> None:
        """No update follows."""
        with self._changed:
            self.ended = True
            self._changed.notify_all()

    def watch(self) -> Iterator[Updates]:
        """What a page has to show now, then every update until the end.

        Updates that come faster than the page takes them are merged, the last one included.
        """
        with self._changed:
            unseen = dict(self.shown)
            self._pages.append(unseen)
            self.left_at = None
        try:
            while True:
                with self._changed:
                    self._changed.wait_for(lambda: unseen or self.ended)
                    if not unseen:
                        return
                    update = dict(unseen)
                    unseen.clear()
                yield update
        finally:
            self._leave(unseen)

    def _leave(self, page: Updates) -> None:
        with self._changed:
            # By identity: pages that have seen everything are equal.
            self._pages = [unseen for unseen in self._pages if unseen is not page]
            if self._pages:
                return
            self.left_at = time.monotonic()
        if self.key is None:
            self.cancel.set()


Work = Callable[[WatchedRun], Iterator[Updates]]


class PersonRuns(RunButtons):
    """The buttons of a run that goes on without its page, and everybody's runs.

    start_thread: runs a function in a thread of its own and sets its cancel flag at the program's
    end (`Synthesis.run_in_background`).
    """

    def __init__(
        self,
        start: list[gr.Button],
        stop: gr.Button,
        start_thread: Callable[[Callable[[], None], Caller], None],
    ) -> None:
        super().__init__(start, stop)
        self._start_thread = start_thread
        self._runs: OrderedDict[str, WatchedRun] = OrderedDict()
        self._lock = threading.Lock()

    def find(self, request: gr.Request, key: object) -> WatchedRun | None:
        """The person's latest run, unless it ended long ago."""
        with self._lock:
            return self._runs.get(_owner(request, key))

    def begin(
        self,
        request: gr.Request,
        key: object,
        first: Updates,
        work: Work,
        error_update: Callable[[Exception], Updates],
    ) -> tuple[WatchedRun, bool]:
        """Start `work` in the background; if the person's run is not over yet, that one and False.

        `first` comes once, unlike in `LongRun.updates`.
        """
        owner, cancel = _owner(request, key), Caller(visitor_of(request))
        with self._lock:
            run = self._runs.get(owner)
            if run is not None and not run.ended:
                return run, False
            run = self._runs[owner] = WatchedRun(cancel, str(key) if is_key(key) else None)
            self._runs.move_to_end(owner)
            self._forget_ended()
        run.publish(first | self.busy())
        try:
            self._start_thread(partial(_publish_all, run, work, error_update), cancel)
        except Exception:
            run.end()
            raise
        return run, True

    def adopt(self, request: gr.Request, key: str) -> None:
        """Give a run that began before this page had its key to the person with the key."""
        with self._lock:
            if (run := self._runs.pop(_owner(request, None), None)) is not None:
                run.key = key
                self._runs[key] = run

    def watch(self, run: WatchedRun) -> Iterator[Updates]:
        """`run.watch` with the buttons in every update (see `busy`), and what its end means for the
        runs that nobody watches."""
        try:
            for update in run.watch():
                yield self.busy(run.cancel.is_set()) | update
        finally:
            self._abandon_excess(run.cancel.visitor.address)

    def stop(self, request: gr.Request, key: object = None) -> dict[str, Any]:
        """Ask this person's run to stop; its own updates say how it ended."""
        run = self.find(request, key)
        if run is not None:
            run.cancel.set()
        return gr.update(interactive=False)

    def page_closed(self, request: gr.Request) -> None:
        """A run without a key stops with its page."""
        self.stop(request)

    def idle_of(self, request: gr.Request, key: object) -> Updates:
        """The buttons of this person's page, which may not watch a run that goes on."""
        run = self.find(request, key)
        return self.idle() if run is None or run.ended else self.busy()

    def _abandon_excess(self, address: str) -> None:
        with self._lock:
            alone = [
                (run.left_at, run)
                for run in self._runs.values()
                if run.left_at is not None
                and not run.ended
                and not run.cancel.is_set()
                and run.cancel.visitor.address == address
            ]
        alone.sort(key=lambda entry: entry[0])
        for _, run in alone[: max(0, len(alone) - MAX_UNATTENDED)]:
            run.abandon()

    def _forget_ended(self) -> None:
        ended = [owner for owner, run in self._runs.items() if run.ended]
        for owner in ended[: max(0, len(ended) - MAX_ENDED)]:
            del self._runs[owner]


def _publish_all(run: WatchedRun, work: Work, error_update: Callable[[Exception], Updates]) -> None:
    try:
        for update in work(run):
            run.publish(update)
    except Exception as error:
        run.publish(error_update(error))
    finally:
        run.end()


def _owner(request: gr.Request, key: object) -> str:
    """Whose run it is: the person's, or a page's without a key."""
    return str(key) if is_key(key) else f"page {request.session_hash}"
