"""What a page shows when it is opened again: the run that went on without it, or the last take."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import gradio as gr

from dia_demo.services.earlier.history import History
from dia_demo.services.people import is_key
from dia_demo.ui import html
from dia_demo.ui.dialogue.answers import kept_dialogue
from dia_demo.ui.dialogue.wording import incomplete_status
from dia_demo.ui.generate.events import run_outputs, take_outputs
from dia_demo.ui.generate.handlers import GenerateHandlers
from dia_demo.ui.generate.layout import GenerateParts
from dia_demo.ui.generate.take_files import player_take, take_updates
from dia_demo.ui.person_runs import WatchedRun
from dia_demo.ui.runs import IMMEDIATE, PRIVATE, Updates
from dia_demo.ui.status import Status

IN_PLAYER = Status("idle", "Ready", "Your last take is in the player.", 0.0)
LOST = Status(
    "failed",
    "Last take lost",
    "The program ended before it was complete. Your script is still here: press Generate.",
    0.0,
    "Your last take was lost because the program ended",
)
REMOVED = Status(
    "idle",
    "Ready",
    "Your last take was removed, because the space for takes on this machine was used up. "
    "Download a take to keep it.",
    0.0,
)


class ReturnHandlers:
    """The two events of a page that opens, which come in any order."""

    def __init__(self, generate: GenerateHandlers, history: History) -> None:
        self.generate = generate
        self.history = history

    def last_take(self, request: gr.Request, key: str) -> Updates:
        """The last take in the player with its figures, or why there is none."""
        parts = self.generate.parts
        # gradio does not take an empty dictionary for updates.
        shown: Updates = {parts.status: gr.skip()}
        if not is_key(key):
            return shown
        run = self._run(request, key)
        if run is not None and (not run.ended or self._take_of(run) is not None):
            return shown  # `rejoin` shows it.
        earlier = self.history.latest(key)
        if earlier is not None:
            saved = self.generate.files.restore(key, earlier)
            shown |= take_updates(parts, saved) | {parts.player: {"take": player_take(saved)}}
        if run is None:
            shown |= self._status(key, earlier is not None)
            shown |= self._dialogue(key, "" if earlier is None else earlier.script)
        return shown

    def _dialogue(self, key: str, script: str) -> Updates:
        """The list of parts, if the last dialogue is the last take, or is not complete."""
        kept = kept_dialogue(self.generate.synthesis, key)
        parts, plan = self.generate.parts, kept.plan
        made = kept.shown.get("made", 0)
        begun = sum(part.get("state") == "stopped" for part in kept.shown.get("parts", ()))
        if plan is None or not (made or begun):
            return {}
        rows = {parts.dialogue: kept.shown | {"key": key}}
        if made < len(plan.chunks):
            status = incomplete_status(made, len(plan.chunks), begun)
            return rows | {parts.status: html.status_card(status)}
        return rows if script == plan.text else {}

    def rejoin(self, request: gr.Request, key: str) -> Iterator[Updates]:
        """Watch the person's run, or show how it ended while no page was open."""
        run = self._run(request, key)
        if run is None:
            # gradio would empty the outputs of a generator without an update.
            yield {self.generate.parts.status: gr.skip()}
        else:
            yield from self.generate.run.watch(run)

    def _run(self, request: gr.Request, key: str) -> WatchedRun | None:
        """The person's last run, unless its take was deleted since."""
        run = self.generate.run.find(request, key)
        take = None if run is None else self._take_of(run)
        return None if take is not None and not Path(take["file"]).exists() else run

    def _take_of(self, run: WatchedRun) -> dict | None:
        """The take that a run's player has."""
        return run.shown.get(self.generate.parts.player, {}).get("take")

    def _status(self, key: str, has_take: bool) -> Updates:
        if self.history.was_lost(key):
            status = LOST
        elif has_take:
            status = IN_PLAYER
        elif self.history.latest_removal(key) is not None:
            status = REMOVED
        else:
            return {}
        return {self.generate.parts.status: html.status_card(status)}


def connect(
    page: gr.Blocks, parts: GenerateParts, handlers: ReturnHandlers, person: gr.BrowserState
) -> None:
    """Connect the events of a page that opens; `person` holds the key of this browser."""
    shown = [*take_outputs(parts), parts.status, parts.dialogue]
    page.load(handlers.last_take, person, shown, **IMMEDIATE)
    watching = page.load(handlers.rejoin, person, run_outputs(parts), **PRIVATE)
    buttons = handlers.generate.run.buttons
    for after in (watching.then, watching.failure):
        after(handlers.generate.run.idle_of, person, buttons, **IMMEDIATE)
