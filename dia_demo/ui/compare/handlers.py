"""The events of the Compare tab: thin functions between the page and the services."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from weakref import WeakKeyDictionary

import gradio as gr

from dia_demo.audio import suffix_of
from dia_demo.errors import DiaDemoError
from dia_demo.services.listening.plan.plan import TakeState
from dia_demo.services.listening.render import RenderEnded, RenderProgress
from dia_demo.services.listening.store import ComparisonStore
from dia_demo.services.people import Allowance, is_key, new_key
from dia_demo.services.synthesis import Synthesis
from dia_demo.ui import html
from dia_demo.ui.compare.form.fields import CompareForm
from dia_demo.ui.compare.html import press_problem
from dia_demo.ui.compare.layout import CompareParts
from dia_demo.ui.compare.progress import DELETED, failed_status, status_of, status_of_stored, title
from dia_demo.ui.compare.setup import SetupHandlers
from dia_demo.ui.person_runs import (
    ABANDONED,
    PersonRuns,
    WatchedRun,
)
from dia_demo.ui.runs import SECONDS_BETWEEN_UPDATES, Updates, visitor_of
from dia_demo.ui.status import explain

ALREADY_RUNNING = (
    "Your other comparison is still being generated, and this page now shows it. Wait for it, or "
    "press Stop generating, then try again."
)
ADDRESS_COMPARISONS = 100
# Time zones that are remembered, of the latest browsers.
MOST_ZONES = 1000


class CompareHandlers:
    """The events of the Compare tab, over one `ComparisonStore`."""

    def __init__(
        self, synthesis: Synthesis, comparisons: ComparisonStore, parts: CompareParts
    ) -> None:
        self.synthesis = synthesis
        self.comparisons = comparisons
        self.parts = parts
        self.setup = SetupHandlers(synthesis, parts)
        self._allowance = Allowance(ADDRESS_COMPARISONS, "comparisons")
        self.run = PersonRuns([parts.make, parts.resume], parts.stop, synthesis.run_in_background)
        # Comparisons whose last run was stopped because nobody watched it.
        self._abandoned: set[str] = set()
        # What a page's room shows during a run in place of the run's pairs, by the page's session.
        self._rooms: WeakKeyDictionary[WatchedRun, dict[str | None, dict]] = WeakKeyDictionary()
        self._zones: dict[str, str] = {}
        self._tick = 0

    # -- stored comparisons --------------------------------------------------------------------

    def enter(self, key, zone=None):
        """Check the key of the browser or create one, and list its comparisons. zone: the name of
        the browser's time zone."""
        key = key if is_key(key) else new_key()
        if isinstance(zone, str):
            self._zones[key] = zone[:100]
            while len(self._zones) > MOST_ZONES:
                self._zones.pop(next(iter(self._zones)))
        return key, gr.update(choices=self._choices(key), value=None)

    def _choices(self, key: str) -> list[tuple[str, str]]:
        return [
            (title(stored, self.zone_of(key)), name) for name, stored in self.comparisons.list(key)
        ]

    def zone_of(self, key: str) -> str | None:
        """The time zone of the browser with this key, if it said so since the program started."""
        return self._zones.get(key)

    def show(self, request: gr.Request, key: str, identity: str) -> Updates:
        """Open a stored comparison in the listening room."""
        return self._show_in_room(request, key, lambda: self._opened_updates(key, identity))

    def add(self, request: gr.Request, key: str, make: Callable[[], str]) -> Updates:
        """Open the comparison that `make` stores. Errors are the caller's."""
        identity = make()
        return self._show_in_room(request, key, lambda: self._opened_updates(key, identity))

    def load(self, request: gr.Request, key: str, path: str) -> Updates:
        """Store and open a comparison from a zip; the uploaded file is removed."""
        try:
            return self._show_in_room(
                request,
                key,
                lambda: self._opened_updates(key, self.comparisons.load(key, Path(path))),
            )
        finally:
            Path(path).unlink(missing_ok=True)

    def again(self, request: gr.Request, key: str, identity: str) -> Updates:
        """A new comparison with the same plan and no takes."""
        return self._show_in_room(
            request, key, lambda: self._opened_updates(key, self.comparisons.repeat(key, identity))
        )

    def delete(self, request: gr.Request, key: str, identity: str) -> Updates:
        """Delete a comparison permanently."""

        def delete() -> Updates:
            self.comparisons.delete(key, identity)
            return self._closed_updates(key) | {self.parts.status: html.status_card(DELETED)}

        return self._show_in_room(request, key, delete)

    def _show_in_room(self, request: gr.Request, key: str, work: Callable[[], Updates]) -> Updates:
        """What the person put into the room. The pairs that are being made for another comparison
        do not replace it: see `_watch`."""
        updates = self._or_failure(work, self.parts.kept_problem)
        run = self.run.find(request, key)
        if run is not None and not run.ended and self.parts.lab in updates:
            rooms = self._rooms.setdefault(run, {})
            rooms[request.session_hash] = updates[self.parts.lab]
        return updates

    def _closed_updates(self, key: str) -> Updates:
        """The page without a comparison: the form is open, the room is empty."""
        parts = self.parts
        return {
            parts.kept: gr.update(choices=self._choices(key), value=None),
            parts.lab: {},
            parts.setup: gr.update(open=True),
            parts.resume: gr.update(interactive=False),
            parts.downloads: gr.update(visible=False),
            parts.kept_problem: "",
        }

    def zip(self, key: str, identity: str) -> Updates:
        """The comparison as a zip for the page to download."""
        return self._download(lambda: self.comparisons.export(key, identity))

    def csv(self, key: str, identity: str) -> Updates:
        """The votes as a CSV file for the page to download."""
        return self._download(lambda: self.comparisons.export_table(key, identity))

    def audio(self, key: str, identity: str, name: object) -> Updates:
        """Both takes of every pair as a zip, in the format with this name."""
        return self._download(lambda: self.comparisons.export_takes(key, identity, suffix_of(name)))

    def _download(self, write: Callable[[], Path]) -> Updates:
        part = self.parts.file
        place = self.parts.download_problem
        written = self._or_failure(lambda: {part: {"file": str(write())}, place: ""}, place)
        return {part: {}} | written

    def refresh_downloads(self, key: str, identity: str) -> Updates:
        """After a change in the listening room, which may unlock the downloads."""
        return self._or_failure(
            lambda: {
                self.parts.downloads: self._downloads(key, identity),
                self.parts.kept: gr.update(choices=self._choices(key), value=identity),
            },
            self.parts.kept_problem,
        )

    def _or_failure(self, work: Callable[[], Updates], place: gr.HTML) -> Updates:
        """What `work` returns; its error in `place`, beside what was pressed."""
        try:
            return work()
        except Exception as error:
            return {place: press_problem(explain(error))}

    def _opened_updates(self, key: str, identity: str) -> Updates:
        comparison = self.comparisons.get(key, identity)
        parts = self.parts
        return {
            parts.kept: gr.update(choices=self._choices(key), value=identity),
            parts.lab: self._room(key, identity),
            parts.setup: gr.update(open=False),
            parts.resume: gr.update(interactive=self._can_resume(key, identity)),
            parts.downloads: self._downloads(key, identity),
            parts.status: html.status_card(
                status_of_stored(comparison, was_abandoned=identity in self._abandoned)
            ),
            parts.make_problem: "",
            parts.kept_problem: "",
        }

    def _room(self, key: str, identity: str) -> dict:
        # A new value every time, so that the room reloads the comparison.
        self._tick += 1
        return {"key": key, "id": identity, "tick": self._tick}

    def _downloads(self, key: str, identity: str):
        """The files contain the answers, so they are available only after the reveal."""
        is_open = bool(identity) and self.comparisons.get(key, identity).is_unblinded
        return gr.update(visible=is_open)

    # -- a run ---------------------------------------------------------------------------------

    def make(self, request: gr.Request, key: str, *values) -> Iterator[Updates]:
        """Generate a new comparison from the fields. One that could not begin is not kept."""
        run = self.run.find(request, key)
        if run is not None and not run.ended:
            yield from self._join(request, run)
            return
        try:
            compare_form = CompareForm.from_values(values)
            plan = compare_form.plan(self.synthesis)
            for setting in plan.settings:
                self.synthesis.downloads.check_here(self.synthesis.models[setting.runtime.model])
            with self._allowance.spend(visitor_of(request)):
                identity = self.comparisons.create(key, plan, compare_form.voice)
        except Exception as error:
            yield {self.parts.make_problem: press_problem(explain(error))}
            return

        def error_update(error: Exception) -> Updates:
            comparison = self.comparisons.get(key, identity)
            if any(slot.state != TakeState.WAITING for slot in comparison.plan.slots):
                return self._failed_run(key, identity, error)
            self.comparisons.delete(key, identity)
            return self._closed_updates(key) | self._failed_updates(error)

        yield from self._updates(request, key, identity, error_update)

    def resume(self, request: gr.Request, key: str, identity: str) -> Iterator[Updates]:
        """Generate the takes that a comparison lacks."""
        yield from self._updates(
            request, key, identity, lambda error: self._failed_run(key, identity, error)
        )

    def _updates(
        self,
        request: gr.Request,
        key: str,
        identity: str,
        error_update: Callable[[Exception], Updates],
    ) -> Iterator[Updates]:
        def work(run: WatchedRun) -> Iterator[Updates]:
            self._abandoned.discard(identity)
            yield from self._run(key, identity, run)
            yield self._ended_updates(key, identity)

        try:
            first = self._opened_updates(key, identity)
        except Exception as error:
            yield {self.parts.status: html.status_card(failed_status(error))}
            return
        run, is_new = self.run.begin(request, key, first, work, error_update)
        yield from self._watch(request, run) if is_new else self._join(request, run)

    def _join(self, request: gr.Request, run: WatchedRun) -> Iterator[Updates]:
        """Watch the person's run in place of a second one."""
        gr.Info(ALREADY_RUNNING, duration=20, title="One comparison at a time")
        self._rooms.get(run, {}).pop(request.session_hash, None)
        yield from self._watch(request, run)

    def _watch(self, request: gr.Request, run: WatchedRun) -> Iterator[Updates]:
        """The run's updates; only its progress where its page shows another comparison."""
        parts = self.parts
        progress = {parts.status, parts.make, parts.stop, parts.resume}
        for update in self.run.watch(run):
            room = self._rooms.get(run, {}).get(request.session_hash)
            if room is None or room.get("id") == run.shown[parts.lab].get("id"):
                yield update
            else:
                shown = {part: value for part, value in update.items() if part in progress}
                yield shown | {parts.lab: room}

    def rejoin(self, request: gr.Request, key: str) -> Iterator[Updates]:
        """Watch the run that went on while no page of this person was open."""
        run = self.run.find(request, key)
        if run is None or run.ended:
            # gradio would empty the outputs of a generator without an update.
            yield {self.parts.status: gr.skip()}
        else:
            yield from self._watch(request, run)

    def _failed_run(self, key: str, identity: str, error: Exception) -> Updates:
        return self._ended_updates(key, identity) | self._failed_updates(error)

    def _failed_updates(self, error: Exception) -> Updates:
        parts = self.parts
        return {
            parts.status: html.status_card(failed_status(error)),
            parts.stop: gr.update(interactive=False),
        }

    def _ended_updates(self, key: str, identity: str) -> Updates:
        parts, stop = self.parts, gr.update(interactive=False)
        try:
            opened = self._opened_updates(key, identity)
        except DiaDemoError:
            return {parts.stop: stop}
        # The run's last status stays, and Resume follows in `idle`.
        del opened[parts.status], opened[parts.resume]
        return opened | {parts.stop: stop}

    def idle(self, request: gr.Request, key: str, identity: str) -> Updates:
        """The buttons of a page that watches no run, or whose run is over."""
        run = self.run.find(request, key)
        if run is not None and not run.ended:
            return self.run.busy()
        resume = gr.update(interactive=self._can_resume(key, identity))
        return self.run.idle() | {self.parts.resume: resume}

    def _can_resume(self, key: str, identity: str) -> bool:
        """Whether this comparison lacks pairs that nobody is generating."""
        try:
            comparison = self.comparisons.get(key, identity)
        except DiaDemoError:
            return False
        missing = not all(trial.made for trial in comparison.plan.trials)
        return missing and not comparison.running

    def _run(self, key: str, identity: str, run: WatchedRun) -> Iterator[Updates]:
        shown_at, pairs_made, room = 0.0, -1, {}
        with closing(self.comparisons.run(key, identity, run.cancel)) as events:
            for event in events:
                more = isinstance(event, RenderProgress) and event.pairs_made != pairs_made
                soon = time.monotonic() - shown_at < SECONDS_BETWEEN_UPDATES
                if soon and not more and not isinstance(event, RenderEnded):
                    continue
                shown_at = time.monotonic()
                if more:
                    pairs_made, room = event.pairs_made, self._room(key, identity)
                status = status_of(event)
                if isinstance(event, RenderEnded) and event.stopped and run.abandoned:
                    self._abandoned.add(identity)
                    status = replace(status, notes=(ABANDONED,))
                # In every update: otherwise gradio's page would empty the room.
                yield {self.parts.status: html.status_card(status), self.parts.lab: room}
