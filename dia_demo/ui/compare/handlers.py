"""The events of the Compare tab: thin functions between the page and the services."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import gradio as gr

from dia_demo.errors import DiaDemoError
from dia_demo.services.listening.claims import abx_warning, what_it_can_show
from dia_demo.services.listening.comparison import Comparison
from dia_demo.services.listening.plan import differences
from dia_demo.services.listening.render import RenderEnded, RenderEvent, RenderProgress
from dia_demo.services.listening.store import ComparisonStore, is_key, new_key
from dia_demo.services.synthesis import Synthesis
from dia_demo.services.wording import duration, plural
from dia_demo.text.normaliser import Reading
from dia_demo.ui import html
from dia_demo.ui.compare.form import SIDE_FIELDS, CompareForm, default_side, side_of
from dia_demo.ui.compare.html import label_of, plan_note, problem_note
from dia_demo.ui.compare.layout import CompareParts
from dia_demo.ui.generate import form
from dia_demo.ui.runs import SECONDS_BETWEEN_UPDATES, LongRun, Updates
from dia_demo.ui.status import Status, explain, factor

SOME_FAILED = "Some takes failed. Press Resume to retry them."
AUDIO_REMOVED = (
    "Its audio was removed to free space on this machine; votes and result are kept. Resume "
    "generates the same audio again."
)


class CompareHandlers:
    """The events of the Compare tab, over one `ComparisonStore`."""

    def __init__(
        self, synthesis: Synthesis, comparisons: ComparisonStore, parts: CompareParts
    ) -> None:
        self.synthesis = synthesis
        self.comparisons = comparisons
        self.parts = parts
        self.run = LongRun([parts.make, parts.resume], parts.stop)
        self._tick = 0

    # -- stored comparisons --------------------------------------------------------------------

    def enter(self, key):
        """Check the key of the browser or create one, and list its comparisons."""
        key = key if is_key(key) else new_key()
        return key, gr.update(choices=self._choices(key), value=None)

    def _choices(self, key: str) -> list[tuple[str, str]]:
        return [(_title(stored), name) for name, stored in self.comparisons.list(key)]

    def show(self, key: str, identity: str) -> Updates:
        """Open a stored comparison in the listening room."""
        return self._or_failure(lambda: self._opened(key, identity))

    def load(self, key: str, path: str) -> Updates:
        """Store and open a comparison from a zip; the uploaded file is removed."""
        try:
            return self._or_failure(
                lambda: self._opened(key, self.comparisons.load(key, Path(path)))
            )
        finally:
            Path(path).unlink(missing_ok=True)

    def again(self, key: str, identity: str) -> Updates:
        """A new comparison with the same plan and no takes."""
        return self._or_failure(lambda: self._opened(key, self.comparisons.again(key, identity)))

    def delete(self, key: str, identity: str) -> Updates:
        """Delete a comparison permanently."""

        def delete() -> Updates:
            self.comparisons.delete(key, identity)
            parts = self.parts
            return {
                parts.kept: gr.update(choices=self._choices(key), value=None),
                parts.lab: {},
                parts.resume: gr.update(interactive=False),
                parts.zip: gr.update(interactive=False),
            }

        return self._or_failure(delete)

    def zip(self, key: str, identity: str) -> Updates:
        """The comparison as a zip for the page to download."""

        def export() -> Updates:
            return {self.parts.zip_file: {"file": str(self.comparisons.export(key, identity))}}

        return {self.parts.zip_file: {}} | self._or_failure(export)

    def voted(self, key: str, identity: str) -> Updates:
        """After a change in the listening room, which may unlock the zip."""
        return self._or_failure(
            lambda: {
                self.parts.zip: self._zip_button(key, identity),
                self.parts.kept: gr.update(choices=self._choices(key), value=identity),
            }
        )

    def _or_failure(self, work) -> Updates:
        try:
            return work()
        except Exception as error:
            return {self.parts.status: html.status_card(_failed(error))}

    def _opened(self, key: str, identity: str) -> Updates:
        comparison = self.comparisons.get(key, identity)
        parts = self.parts
        return {
            parts.kept: gr.update(choices=self._choices(key), value=identity),
            parts.lab: self._room(key, identity),
            parts.setup: gr.update(open=False),
            parts.resume: gr.update(interactive=self._can_resume(key, identity)),
            parts.zip: self._zip_button(key, identity),
            parts.status: html.status_card(_status_of(comparison)),
        }

    def _room(self, key: str, identity: str) -> dict:
        # A new value every time, so that the room reloads the comparison.
        self._tick += 1
        return {"key": key, "id": identity, "tick": self._tick}

    def _zip_button(self, key: str, identity: str):
        """The zip contains the answers, so it is available only after the reveal."""
        is_open = bool(identity) and self.comparisons.get(key, identity).is_unblinded
        return gr.update(interactive=is_open)

    # -- setting up ----------------------------------------------------------------------------

    def describe(self, *values):
        """What differs, what it costs, what it can show."""
        try:
            asked = CompareForm.of(values)
            settings = asked.settings(self.synthesis)
            scripts, seeds = len(asked.scripts()), asked.seeds()
            return plan_note(
                asked.head["kind"],
                differences(settings),
                self._cost(asked, settings),
                what_it_can_show(asked.kind, scripts, seeds) if scripts * seeds else "",
                abx_warning(asked.kind, settings),
                self._read_as(asked, settings),
            )
        except DiaDemoError as error:
            return problem_note(str(error))

    def _read_as(self, asked: CompareForm, settings) -> list[Reading]:
        """Scripts as the nano voice reads them, where that differs from what was written."""
        models = [self.synthesis.info(setting.runtime.model) for setting in settings]
        readings = (info.reading(script) for info in models for script in asked.scripts())
        return list(dict.fromkeys(reading for reading in readings if reading.changes))

    def _cost(self, asked: CompareForm, settings) -> str:
        count = len(settings)
        pairs = asked.seeds() * len(asked.scripts())
        trials = pairs * count * (count - 1) // 2
        scripts = plural(len(asked.scripts()), "script")
        seconds = asked.seconds_to_make(self.synthesis, settings)
        return (
            f"{plural(trials, 'pair')} to listen to, {plural(pairs * count, 'take')} to "
            f"generate ({scripts} × {plural(asked.seeds(), 'seed')}), about "
            f"{duration(seconds)} of audio."
        )

    def choose_kind(self, kind: str):
        """A round varies one value of settings A; the other kinds compare with settings B."""
        is_round = kind == "round"
        beside = [gr.update(visible=not is_round) for _ in self.parts.second]
        return [gr.update(visible=is_round), *beside]

    def copy(self, *values):
        """The script and both sides from the fields of the Generate tab."""
        named = dict(zip(form.FIELDS, values, strict=True))
        return [named["script"], *self.both_sides(named)]

    def both_sides(self, values: dict) -> list:
        """The same values for A and B, in the order of the fields."""
        default = default_side(self.synthesis, values["model"])
        side = side_of(values, default)
        return [side[name] for name in SIDE_FIELDS] * 2

    # -- a run ---------------------------------------------------------------------------------

    def make(self, request: gr.Request, key: str, *values) -> Iterator[Updates]:
        """Generate a new comparison from the fields."""
        try:
            asked = CompareForm.of(values)
            identity = self.comparisons.create(key, asked.plan(self.synthesis), asked.voice)
        except Exception as error:
            yield {self.parts.status: html.status_card(_failed(error))}
            return
        yield from self.resume(request, key, identity)

    def resume(self, request: gr.Request, key: str, identity: str) -> Iterator[Updates]:
        """Generate the takes that a comparison lacks."""

        def work(cancel: threading.Event) -> Iterator[Updates]:
            yield from self._run(key, identity, cancel)
            yield self._after_run(key, identity)

        def error_update(error: Exception) -> Updates:
            status = html.status_card(_failed(error))
            return self._after_run(key, identity) | {self.parts.status: status}

        try:
            first = self._opened(key, identity)
        except Exception as error:
            yield {self.parts.status: html.status_card(_failed(error))}
            return
        yield from self.run.updates(request, first, work, error_update)

    def _after_run(self, key: str, identity: str) -> Updates:
        parts, stop = self.parts, gr.update(interactive=False)
        try:
            opened = self._opened(key, identity)
        except DiaDemoError:
            return {parts.stop: stop}
        # The run's last status stays, and Resume follows in `idle`.
        del opened[parts.status], opened[parts.resume]
        return opened | {parts.stop: stop}

    def idle(self, key: str, identity: str) -> Updates:
        """The buttons once a run is over."""
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

    def _run(self, key: str, identity: str, cancel: threading.Event) -> Iterator[Updates]:
        shown_at, pairs_made, room = 0.0, -1, {}
        with closing(self.comparisons.run(key, identity, cancel)) as events:
            for event in events:
                more = isinstance(event, RenderProgress) and event.pairs_made != pairs_made
                soon = time.monotonic() - shown_at < SECONDS_BETWEEN_UPDATES
                if soon and not more and not isinstance(event, RenderEnded):
                    continue
                shown_at = time.monotonic()
                if more:
                    pairs_made, room = event.pairs_made, self._room(key, identity)
                # In every update: otherwise gradio's page would empty the room.
                yield {
                    self.parts.status: html.status_card(status_of(event)),
                    self.parts.lab: room,
                }


def status_of(event: RenderEvent) -> Status:
    """The progress of the whole plan in one line."""
    if isinstance(event, RenderEnded):
        return _ended(event)
    made = f"{event.pairs_made} of {plural(event.pairs, 'pair')} ready"
    parts = [made]
    if event.realtime_factor is not None:
        parts.append(f"{factor(event.realtime_factor)} realtime")
    if event.seconds_left is not None:
        parts.append(f"about {duration(event.seconds_left)} left")
    if event.takes_failed:
        parts.append(f"{plural(event.takes_failed, 'take')} failed")
    return Status("running", event.phase, ", ".join(parts), min(0.98, event.fraction), "Generating")


def _ended(event: RenderEnded) -> Status:
    made = f"{event.pairs_made} of {plural(event.pairs, 'pair')}"
    reached = event.pairs_made / event.pairs
    if event.failures:
        detail = f"{made} ready. {SOME_FAILED} The first error: {event.failures[0]}"
        return Status("failed", "Incomplete", detail, reached, SOME_FAILED)
    if event.stopped:
        detail = f"{made} ready. Press Resume to generate the rest."
        return Status("stopped", "Stopped", detail, reached, f"Stopped, {detail}")
    return Status("done", "Done", f"{made} ready.", 1.0, "All pairs are ready")


def _failed(error: Exception) -> Status:
    message = explain(error)
    return Status("failed", "Not possible", message, 0.0, f"Failed: {message}")


def _status_of(comparison: Comparison) -> Status:
    plan = comparison.plan
    made = sum(trial.made for trial in plan.trials)
    if made == len(plan.trials):
        return Status("done", "Ready", f"{made} of {plural(made, 'pair')} ready.", 1.0)
    if plan.sound_removed:
        return Status("stopped", "Audio removed", AUDIO_REMOVED, 0.0)
    ready = f"{made} of {plural(len(plan.trials), 'pair')} ready."
    reached = made / len(plan.trials)
    if failed := comparison.failed():
        detail = f"{ready} {SOME_FAILED} The first error: {failed[0].message}"
        return Status("failed", "Incomplete", detail, reached)
    return Status("stopped", "Incomplete", f"{ready} Press Resume to generate the rest.", reached)


def _title(comparison: Comparison) -> str:
    plan = comparison.plan
    kinds = {"preference": "A/B", "abx": "ABX", "sighted": "side by side"}
    kind = "round" if len(plan.settings) > 2 else kinds[plan.kind]
    differing = differences(plan.settings)
    named = ", ".join(
        f"{label_of(name)} {' / '.join(map(str, values))}" for name, values in differing.items()
    )
    when = plan.created[:16].replace("T", " ")
    state = f"{len(comparison.votes)} of {len(plan.trials)} judged"
    state += ", audio removed" if plan.sound_removed else ""
    return f"{when} · {kind} · {named or 'identical settings'} · {state}"[:160]
