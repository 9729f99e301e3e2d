"""A dialogue of any length for a program, which gets it when it is complete."""

from __future__ import annotations

import threading
import time
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path

from dia_demo.engine.events import AudioChunk, Figures
from dia_demo.errors import RunError
from dia_demo.services.dialogue.events import ChunkProgress, DialogueFailed, DialogueStopped
from dia_demo.services.dialogue.output import whole_figures, words_in_file
from dia_demo.services.dialogue.plan import DialoguePlan
from dia_demo.services.dialogue.run import DialogueRun
from dia_demo.services.dialogue.store import DialogueStore
from dia_demo.services.programs.takes import Note, tell_nobody
from dia_demo.services.scratch import Scratch
from dia_demo.services.synthesis import Synthesis
from dia_demo.services.take import TimedWord

# Parts in 32 bits; the file and a copy of it in 16.
_BYTES_A_SAMPLE = 4 + 2 + 2


@dataclass(frozen=True)
class MadeDialogue:
    """A complete dialogue, whose parts are in the folder of its run. words: with their times in its
    file."""

    run: DialogueRun
    figures: Figures
    words: tuple[TimedWord, ...]

    def report(self) -> dict:
        """The figures of the whole like those of a take, and what became of each part."""
        parts, request = self.run.reports(), self.run.plan.request
        return asdict(self.figures) | {
            "voices": self.run.take(self.run.plan.chunks[0]).voices,
            "remarks": [*request.notes, *(part.remark for part in parts if part.remark)],
            "words": [asdict(word) for word in self.words],
            "chunks": [asdict(part) for part in parts],
        }


def make_dialogue(
    synthesis: Synthesis,
    plan: DialoguePlan,
    folder: Path,
    cancel: threading.Event,
    note: Note = tell_nobody,
) -> MadeDialogue:
    """Make all parts of a dialogue. folder: for the parts; those that are in it are not made again.

    Raises InputError for what cannot be made and where temporary files have no room for it,
    RunError if a part failed or the run was stopped.
    """
    _check_room(synthesis, plan)
    run = DialogueRun(synthesis, plan, DialogueStore(folder, is_kept=False))
    began, first_audio = time.monotonic(), None
    with closing(run.stream(cancel)) as events:
        for event in events:
            match event:
                case ChunkProgress():
                    note(event.done_seconds, event.total_seconds)
                case AudioChunk() if first_audio is None:
                    first_audio = time.monotonic() - began
                case DialogueFailed(message=message):
                    raise RunError(message)
                case DialogueStopped(made=made, count=count):
                    raise RunError(
                        f"The run was stopped after {made} of {count} parts. Send the request "
                        "again."
                    )
    figures = whole_figures(run, time.monotonic() - began, first_audio)
    return MadeDialogue(run, figures, tuple(words_in_file(run)))


def _check_room(synthesis: Synthesis, plan: DialoguePlan) -> None:
    settings, seconds = synthesis.settings, plan.script.seconds / plan.request.speed
    needed = round(seconds * plan.info.sample_rate * _BYTES_A_SAMPLE)
    Scratch(settings.takes_folder, settings.temp_bytes).reserve(needed)
