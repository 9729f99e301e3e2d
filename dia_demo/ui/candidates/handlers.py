"""The runs that make candidates, and what is done with them: choose one, make one again, delete
the others."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import gradio as gr

from dia_demo.engine.events import (
    AudioChunk,
    Cancelled,
    Event,
    Failed,
    Finished,
    FinishReason,
    Progress,
    Result,
    Started,
)
from dia_demo.errors import DiaDemoError, InputError
from dia_demo.services.dialogue.plan import needs_chunks
from dia_demo.services.dialogue.single_take import report_of_take, with_words
from dia_demo.services.earlier.candidates import Candidate, CandidateLists, Candidates
from dia_demo.services.earlier.history import History
from dia_demo.services.people import is_key
from dia_demo.services.take import finished_result
from dia_demo.services.wording import ENDINGS, plural, time_left
from dia_demo.ui import form, html
from dia_demo.ui.dialogue.layout import NO_PARTS
from dia_demo.ui.generate.candidate_list import NO_CANDIDATES
from dia_demo.ui.generate.handlers import GenerateHandlers
from dia_demo.ui.generate.live_audio import LiveRun
from dia_demo.ui.generate.take_files import player_take, take_updates
from dia_demo.ui.person_runs import ABANDONED, WatchedRun, Work
from dia_demo.ui.runs import SECONDS_BETWEEN_UPDATES, Updates, event_value
from dia_demo.ui.status import PREPARING, Status, explain, failed_status, in_page_words, status_of

NO_STORAGE = (
    "Candidates are kept as earlier takes, and this browser stores nothing for this page. Allow it "
    "to store data, or press Generate."
)
IN_PARTS = (
    "This script is too long for one take, so it is made in parts: press Generate. Every part can "
    "be made again. Candidates are for shorter scripts."
)
RUNNING = "A take is being generated. Wait for it, or press Stop."


def answer(history: History, served: Path, request: object) -> dict:
    """Answer {do: hear, key, id} of the list: {file}; an error is returned as {error}.

    served: the folder of files that the page may download.
    """
    try:
        question = request if isinstance(request, dict) else {}
        key, identity = str(question.get("key")), str(question.get("id"))
        return {"file": str(history.serve(key, identity, served))}
    except Exception as error:
        return {"error": explain(error)}


class CandidateHandlers:
    """The events of candidates, over those of the Generate tab."""

    def __init__(self, page: GenerateHandlers, history: History) -> None:
        self.page, self.history, self.parts = page, history, page.parts
        self.lists = CandidateLists()

    def make(self, request: gr.Request, key: str, count: object, *values) -> Iterator[Updates]:
        """Make `count` candidates from the page's fields; key: the person who keeps them."""
        if not is_key(key):
            raise InputError(NO_STORAGE)

        def work(run: WatchedRun) -> Iterator[Updates]:
            self.page.files.check_space()
            asked = self.page.request_of(form.Form.from_values(values), key)
            self.page.synthesis.downloads.check_here(asked.model)
            if needs_chunks(asked):
                raise InputError(IN_PARTS)
            candidates = Candidates(asked, count if isinstance(count, int) else 0)
            self.lists.put(key, candidates)
            yield from self._run(candidates, range(len(candidates.all)), run)

        first = {self.parts.dialogue: NO_PARTS, self.parts.candidates: NO_CANDIDATES}
        yield from self._begin_and_watch(request, key, first, work)

    def press(self, request: gr.Request, event: gr.EventData, key: str) -> Iterator[Updates]:
        """Make the candidate {id} again with another seed. It stays if that fails."""
        candidates = self.lists.get(key)
        index = candidates.index_of(event_value(event, "id"))

        def work(run: WatchedRun) -> Iterator[Updates]:
            self.page.files.check_space()
            before = candidates.begin_again(index)
            try:
                yield from self._run(candidates, [index], run)
            finally:
                if not candidates.all[index].is_made:
                    candidates.all[index] = before
                else:
                    self.history.delete(key, before.identity, self.page.files.home)
            yield {self.parts.candidates: candidates.rows() | {"key": key}}

        first = {self.parts.candidates: candidates.rows(running=True) | {"key": key}}
        yield from self._begin_and_watch(request, key, first, work)

    def choose(self, request: gr.Request, event: gr.EventData, key: str) -> Updates:
        """Show the candidate {id} in the player, or, with {do: discard}, delete the others."""
        run, candidates = self.page.run.find(request, key), self.lists.get(key)
        if run is not None and not run.ended:
            raise InputError(RUNNING)
        if event_value(event, "do") == "discard":
            update = self._discard(key, candidates)
        else:
            candidates.chosen = candidates.index_of(event_value(event, "id"))
            update = self._show(key, candidates)
        update[self.parts.candidates] = candidates.rows() | {"key": key}
        if run is not None:
            run.publish(update)  # What another page of this person shows.
        return update

    def _discard(self, key: str, candidates: Candidates) -> Updates:
        others = candidates.keep_chosen()
        for identity in others:
            self.history.delete(key, identity, self.page.files.home)
        deleted = f"{plural(len(others), 'other candidate')} deleted."
        status = Status("done", "Done", f"Your take is in the player. {deleted}", 1.0, deleted)
        return {self.parts.status: html.status_card(status)}

    def _show(self, key: str, candidates: Candidates) -> Updates:
        assert candidates.chosen is not None, "one was chosen"
        chosen = candidates.all[candidates.chosen]
        saved = self.page.files.restore(key, self.history.get(key, chosen.identity))
        shown = {"take": player_take(saved, f"Candidate {chosen.name}")}
        return take_updates(self.parts, saved) | {self.parts.player: shown}

    def _begin_and_watch(
        self, request: gr.Request, key: str, first: Updates, work: Work
    ) -> Iterator[Updates]:
        def make(run: WatchedRun) -> Iterator[Updates]:
            with self.page.files.mark_unfinished(key):
                yield from work(run)

        def error_update(error: Exception) -> Updates:
            rows = self.lists.get(key).rows() if self.lists.has(key) else NO_CANDIDATES
            return self.page.failed_updates(error) | {self.parts.candidates: rows | {"key": key}}

        yield from self.page.begin_and_watch(request, key, LiveRun(), first, make, error_update)

    def _run(
        self, candidates: Candidates, indices: Sequence[int], run: WatchedRun
    ) -> Iterator[Updates]:
        """Make these candidates together; the best of them is in the player afterwards."""
        rows = [candidates.all[index] for index in indices]
        requests, status, shown_at = [row.request for row in rows], PREPARING, 0.0
        stream = self.page.synthesis.stream_together(requests, run.cancel, in_int8_meanwhile=True)
        with closing(stream) as events:
            for event in events:
                if isinstance(event, AudioChunk):
                    continue
                status = self._note(event, rows, status, str(run.key))
                if isinstance(event, Progress):
                    if time.monotonic() - shown_at < SECONDS_BETWEEN_UPDATES:
                        continue
                    shown_at = time.monotonic()
                yield self._updates(candidates, status, run, running=True)
        best = candidates.best(indices)
        candidates.chosen = candidates.chosen if best is None else best
        update = self._updates(candidates, _ended_status(rows, status, run), run, running=False)
        update[self.parts.stop] = gr.update(interactive=False)
        if best is not None:
            update |= self._show(str(run.key), candidates)
        yield update

    def _updates(
        self, candidates: Candidates, status: Status, run: WatchedRun, running: bool
    ) -> Updates:
        return {
            self.parts.status: html.status_card(status),
            self.parts.on_cpu: gr.update(visible=False),
            self.parts.candidates: candidates.rows(running) | {"key": run.key},
        }

    def _note(self, event: Event, rows: Sequence[Candidate], status: Status, key: str) -> Status:
        """Change the candidate that an event is about; the status after it."""
        row = rows[event.row]
        match event:
            case Progress():
                row.state, row.seconds = "running", event.audio_seconds
                return _progress(rows, event, status)
            case Failed():
                row.state, row.verdict = "failed", in_page_words(event.message)
            case Finished() | Cancelled():
                self._keep(row, finished_result(event), key)
            case Started():
                # The first seed means nothing here; notes are the same for all.
                return replace(_progress(rows, event, status), notes=event.notes)
            case _:
                return status_of(event, status)
        return status

    def _keep(self, row: Candidate, result: Result | None, key: str) -> None:
        """Keep what was made of a candidate as an earlier take."""
        if result is None:
            row.state, row.verdict = "failed", "stopped before there was any speech"
            return
        try:
            take = self.page.synthesis.take(row.request, result)
            identity = self.history.add(key, with_words(take, result))
        except DiaDemoError as error:
            row.state, row.verdict = "failed", in_page_words(str(error))
            return
        report, ending = report_of_take(row.request, result), result.figures.finish_reason
        row.identity, row.seconds = identity, report.seconds
        row.verdict = "" if report.verdict == "good" else report.verdict
        if ending == FinishReason.END:
            row.words_per_second = report.words_per_second
        else:
            row.verdict = ENDINGS[ending]
        row.state = "faulty" if row.verdict else "good"


def _progress(rows: Sequence[Candidate], event: Started | Progress, status: Status) -> Status:
    """Candidates are being made."""
    done = sum(row.is_made for row in rows)
    left = "" if event.left is None else f"{time_left(event.left)} left"
    detail = ", ".join(filter(None, [f"{done} of {plural(len(rows), 'candidate')} made", left]))
    audio = sum(row.seconds for row in rows)
    total = len(rows) * event.expected_seconds
    # The total is estimated, so only the end of the run fills the bar.
    fraction = min(0.98, audio / total) if total > 0 else 0.0
    return Status("running", "Generating", f"{detail}.", fraction, "Generating", status.notes, left)


def _ended_status(rows: Sequence[Candidate], status: Status, run: WatchedRun) -> Status:
    """The status after all have ended."""
    made = [row for row in rows if row.is_made]
    failures = list(dict.fromkeys(row.verdict for row in rows if not row.is_made))
    notes = status.notes + tuple(f"Note: {failure}" for failure in failures if made)
    if run.abandoned:
        notes = (*notes, ABANDONED)
    if run.cancel.is_set():
        detail = f"{len(made)} of {plural(len(rows), 'candidate')} kept."
        return Status("stopped", "Stopped", detail, status.fraction, f"Stopped, {detail}", notes)
    if not made:
        return replace(failed_status(failures[0]), notes=notes)
    detail = f"{plural(len(made), 'candidate')} made. Listen to them and choose one."
    if len(rows) == 1:
        detail = f"Candidate {made[0].name} was made again and is in the player."
    return Status("done", "Done", detail, 1.0, f"Done, {detail}", notes)
