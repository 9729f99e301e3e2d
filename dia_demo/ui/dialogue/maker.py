"""Makes a dialogue for the page: its events as statuses, rows of the list, and live sound."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from dia_demo.engine.events import AudioChunk, Figures, Loading, Waiting
from dia_demo.services.dialogue.events import (
    ChunkFinished,
    ChunkProgress,
    DialogueEvent,
    DialogueFailed,
    DialogueFinished,
    DialoguePlanned,
    DialogueStopped,
)
from dia_demo.services.dialogue.kept import KeptDialogue
from dia_demo.services.dialogue.output import whole_figures
from dia_demo.services.dialogue.plan import DialoguePlan
from dia_demo.services.dialogue.run import DialogueRun
from dia_demo.services.people import Caller
from dia_demo.services.synthesis import Synthesis
from dia_demo.text.dialogue.chunks import Chunk
from dia_demo.ui.dialogue import wording
from dia_demo.ui.status import PREPARING, Status, status_of

SECONDS_BETWEEN_UPDATES = 0.5


@dataclass(frozen=True)
class DialogueUpdate:
    """What a run shows now. live: of the player, if it changed; figures: of the whole, once it is
    complete; is_over: the last update."""

    status: Status
    rows: dict[str, Any]
    sound: AudioChunk | None = None
    progress: ChunkProgress | None = None
    figures: Figures | None = None
    is_over: bool = False


class DialogueMaker:
    """One run of a kept dialogue."""

    def __init__(self, synthesis: Synthesis, kept: KeptDialogue, plan: DialoguePlan) -> None:
        self.kept, self.plan = kept, plan
        self.dialogue = DialogueRun(synthesis, plan, kept.store)
        self.status = PREPARING
        self._audible: dict[int, float] = {}  # seconds of a part that is being made
        self._starts: list[float] = []  # of the parts that can be heard, in seconds of the whole
        self._found = 0

    def updates(self, cancel: Caller) -> Iterator[DialogueUpdate]:
        """All updates of the run, the last with `is_over`."""
        began, first_audio, shown_at = time.monotonic(), None, 0.0
        try:
            with closing(self.dialogue.stream(cancel)) as events:
                for event in events:
                    if isinstance(event, AudioChunk):
                        first_audio = first_audio or time.monotonic() - began
                        notice = self.dialogue.synthesis.notice.seconds
                        self._starts.append(round(event.start_seconds + notice, 2))
                        yield DialogueUpdate(self.status, self._rows(), sound=event)
                        continue
                    self._note(event)
                    if isinstance(event, ChunkProgress):
                        if time.monotonic() - shown_at < SECONDS_BETWEEN_UPDATES:
                            continue
                        shown_at = time.monotonic()
                        yield DialogueUpdate(self.status, self._rows(), progress=event)
                    elif not isinstance(event, DialogueFinished):
                        is_over = isinstance(event, DialogueStopped | DialogueFailed)
                        yield DialogueUpdate(self.status, self._rows(is_over), is_over=is_over)
        finally:
            self.kept.note(self._rows(True), time.monotonic() - began)
        if isinstance(event, DialogueFinished):
            # Of this run, which did not begin at the beginning if some parts were there.
            first_audio = None if self._found else first_audio
            figures = whole_figures(self.dialogue, self.kept.wall_seconds, first_audio)
            self.status = wording.finished_status(figures, event.chunks)
            yield DialogueUpdate(self.status, self._rows(True), figures=figures, is_over=True)

    def _note(self, event: DialogueEvent) -> None:
        count, made = len(self.plan.chunks), self.dialogue.made
        match event:
            case Waiting() | Loading():
                self.status = status_of(event, self.status)
            case DialoguePlanned():
                self._found = event.found
                self.status = wording.planned_status(self.plan, event.found, event.left)
            case ChunkProgress():
                self._audible[event.chunk] = event.audio_seconds
                self.status = wording.progress_status(event, made, count)
            case ChunkFinished():
                self._audible.pop(event.chunk, None)
                self.kept.note(self._rows(True))  # What a page shows if the program ends now.
            case DialogueStopped():
                begun = len(self.dialogue.stopped)
                self.status = wording.stopped_status(made, count, begun, self.status.fraction)
            case DialogueFailed():
                self.status = wording.failed_status(event.message, made, count)

    def _rows(self, is_over: bool = False) -> dict[str, Any]:
        row = _row_of(self.dialogue, {} if is_over else self._audible)
        return {
            "parts": [row(chunk) for chunk in self.plan.chunks],
            "made": self.dialogue.made,
            "running": not is_over,
            "starts": self._starts[: len(self.plan.chunks)],
        }


def _row_of(run: DialogueRun, audible: dict[int, float]) -> Callable[[Chunk], dict[str, Any]]:
    def row(chunk: Chunk) -> dict[str, Any]:
        attempts = run.attempts[chunk.index]
        shown: dict[str, Any] = {"text": chunk.script, "state": "waiting"}
        if chunk.index in audible:
            return shown | {"state": "running", "seconds": round(audible[chunk.index], 1)}
        if chunk.index in run.stopped:
            return shown | {"state": "stopped", "seconds": round(run.stopped[chunk.index], 1)}
        if not attempts:
            return shown
        best = run.best(chunk)
        return shown | {
            "state": "good" if best.verdict.is_good else "faulty",
            "seconds": round(best.figures.audio_seconds, 1),
            "verdict": best.verdict.text,
            # Which take it is: another one is heard anew.
            "take": best.number,
        }

    return row
