"""The files of a take that the page shows, and the updates that show them.

A take of a person whose browser has a key is one of the earlier takes, and the page gets a link to
it; another take has files of its own. Both are temporary files with one limit
(services/scratch.py).
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import gradio as gr
import numpy as np

from dia_demo import audio
from dia_demo.engine.events import Figures
from dia_demo.errors import DiaDemoError, RunError
from dia_demo.services.dialogue.output import write_dialogue
from dia_demo.services.dialogue.run import DialogueRun
from dia_demo.services.dialogue.subtitles import cue_rows
from dia_demo.services.earlier.formats import read_samples
from dia_demo.services.earlier.history import EarlierTake, History
from dia_demo.services.earlier.labels import file_stem
from dia_demo.services.people import is_key
from dia_demo.services.scratch import work_folder
from dia_demo.services.take import Take, TimedWord
from dia_demo.ui import html
from dia_demo.ui.generate.layout import GenerateParts
from dia_demo.ui.runs import Updates
from dia_demo.ui.status import NO_FIGURES, figure_rows

# The longest take at half speed, another format of it, and the one that is kept.
TAKE_BYTES = 30_000_000
# The longest dialogue that is one of the earlier takes: an hour at 44.1 kHz.
DIALOGUE_BYTES = 320_000_000


@dataclass(frozen=True)
class SavedTake:
    """A take that can be shown. figures: None where its file has none that can be read."""

    file: Path
    samples: np.ndarray
    sample_rate: int
    seed: object
    figures: Figures | None
    notes: tuple[str, ...] = ()


class TakeFiles:
    """Writes the files of takes. home: the folder of files that the page may download."""

    def __init__(self, home: Path, history: History) -> None:
        self.home = home
        self.history = history

    def mark_unfinished(self, key: str) -> AbstractContextManager[None]:
        """See `History.mark_unfinished`; nothing for a page without a key."""
        return self.history.mark_unfinished(key) if is_key(key) else nullcontext()

    def check_space(self) -> None:
        """Raises RunError if there is no space for another take."""
        try:
            self.home.mkdir(parents=True, exist_ok=True)
            free = shutil.disk_usage(self.home).free
            if free < TAKE_BYTES:
                raise OSError(
                    f"{free / 1e6:.0f} MB are free, but a take needs {TAKE_BYTES / 1e6:.0f} MB"
                )
        except OSError as error:
            raise _not_writable(error) from error

    @contextmanager
    def scratch(self) -> Iterator[Path]:
        """A folder for the files of one take of a program, removed with the block: gradio copies a
        yielded file before it continues. Raises RunError if it cannot be created."""
        self.check_space()
        with ExitStack() as stack:
            try:
                folder = stack.enter_context(work_folder(self.home, "take-"))
            except OSError as error:
                raise _not_writable(error) from error
            yield folder

    def save(self, take: Take, key: str | None) -> SavedTake:
        """Keep a take for the person with this key, and write what the page shows of it."""
        notes: tuple[str, ...] = ()
        file: Path | None = None
        if key is not None:
            try:
                identity = self.history.add(key, take)
                file = self.history.serve(key, identity, self.home)
            except DiaDemoError as error:
                notes = (f"Note: this take is not among the earlier takes. {error}",)
        if file is None:
            stem = file_stem(take.request.script, vars(take.figures))
            file = take.save(self._own_folder() / f"{stem}{audio.STORED_SUFFIX}")
        figures = take.figures
        return SavedTake(file, take.in_file, take.sample_rate, figures.seed, figures, notes)

    def save_dialogue(self, run: DialogueRun, figures: Figures, key: str) -> SavedTake:
        """The same for a dialogue, which is one of the earlier takes if it is not too long."""
        rate, stem = figures.sample_rate, file_stem(run.plan.text, vars(figures))
        notes: tuple[str, ...] = ()

        def write(path: Path) -> None:
            write_dialogue(path, run, figures)

        try:
            samples = round(figures.audio_seconds * rate)
            identity = self.history.add_file(key, samples, write, DIALOGUE_BYTES)
            file = self.history.serve(key, identity, self.home)
        except DiaDemoError as error:
            notes = (f"Note: this take is not among the earlier takes. {error}",)
            file = self._own_folder() / f"{stem}{audio.STORED_SUFFIX}"
            write(file)
        return SavedTake(file, read_samples(file)[0], rate, figures.seed, figures, notes)

    def latest(self, key: object) -> SavedTake | None:
        """The person's last take, if there is one that can be read."""
        if not is_key(key):
            return None
        earlier = self.history.latest(str(key))
        with suppress(DiaDemoError):
            return None if earlier is None else self.restore(str(key), earlier)
        return None

    def restore(self, key: str, earlier: EarlierTake) -> SavedTake:
        """An earlier take as it was shown when it was made."""
        file = self.history.serve(key, earlier.id, self.home)
        samples, rate = read_samples(file)
        seed = earlier.figures.get("seed")
        return SavedTake(file, samples, rate, seed, figures_of(earlier.figures))

    def _own_folder(self) -> Path:
        try:
            return Path(tempfile.mkdtemp(prefix="take-", dir=self.home))
        except OSError as error:
            raise _not_writable(error) from error


def figures_of(saved: Mapping[str, Any]) -> Figures | None:
    """The figures that a take's file contains; None if some are missing or of another type."""
    try:
        # Files of earlier versions lack what came later.
        later = {"expected_seconds", "numerics", "surplus_turns", "shared_with"}
        required = {field.name for field in fields(Figures)} - later
        optional = later & saved.keys()
        figures = Figures(**{name: saved[name] for name in required | optional})
        figure_rows(figures)
    except (KeyError, TypeError, ValueError, AttributeError):
        return None
    return figures


def take_updates(parts: GenerateParts, saved: SavedTake) -> Updates:
    """Everything on the page that shows a take, but the player (see `player_take`)."""
    picture = audio.spectrogram(saved.samples, saved.sample_rate, *html.SPECTROGRAM_SIZE)
    seconds = len(saved.samples) / saved.sample_rate
    rows = NO_FIGURES if saved.figures is None else figure_rows(saved.figures)
    return {
        parts.take_file: str(saved.file),
        parts.download_take: gr.update(interactive=True),
        parts.keep_seed: gr.update(interactive=True),
        parts.use_voice: gr.update(interactive=True),
        parts.take_seed: saved.seed,
        parts.figures: html.figures_table(rows),
        parts.spectrogram: html.spectrogram_figure(picture, seconds),
    }


def player_take(saved: SavedTake, label: str = "") -> dict:
    """What the page's player needs of a take. label: what it is, where it is not the last run's."""
    metadata = audio.read_metadata(saved.file) or {}
    return {
        "file": str(saved.file),
        "rate": saved.sample_rate,
        "label": label,
        "script": metadata.get("script", ""),
        "cues": _subtitles_in(metadata),
    }


def _subtitles_in(metadata: Mapping[str, Any]) -> list[dict]:
    """The subtitles of a take by the words in its file, with the start of each word; none in a file
    without them."""
    with suppress(TypeError):
        return cue_rows([TimedWord(**word) for word in metadata.get("words", ())])
    return []


def no_take(parts: GenerateParts) -> Updates:
    """The same parts of the page without a take."""
    return {
        parts.take_file: None,
        parts.download_take: gr.update(interactive=False),
        parts.keep_seed: gr.update(interactive=False),
        parts.use_voice: gr.update(interactive=False),
        parts.take_seed: None,
        parts.figures: html.figures_table(NO_FIGURES),
        parts.spectrogram: html.spectrogram_figure(None),
    }


def _not_writable(error: OSError) -> RunError:
    reason = error.strerror or error
    return RunError(
        f"The folder for takes is not writable: {reason}. Free some space, or start the app with "
        "another folder in DIA_TAKES."
    )
