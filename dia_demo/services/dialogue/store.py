"""The takes of a dialogue's chunks on disk, so that a run that was interrupted can go on.

A folder has one file for every attempt at a chunk. Each is written whole or not at all; one that
cannot be read counts as not made.
"""

from __future__ import annotations

import errno
import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from zipfile import BadZipFile

import numpy as np

from dia_demo.engine.events import Figures, FinishReason
from dia_demo.errors import RunError
from dia_demo.files import write_atomic
from dia_demo.services.dialogue.judging.chunk_take import ChunkTake
from dia_demo.services.dialogue.plan import DialoguePlan

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class DialogueStore:
    """The folder of one dialogue, made when the first take is written."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @classmethod
    def beside(cls, output: Path, plan: DialoguePlan) -> DialogueStore:
        """The folder beside an output file, by the script and its settings."""
        return cls(output.with_name(f".{output.name[:100]}.{plan.key}.parts"))

    def write(self, take: ChunkTake) -> None:
        """Keep a take. Raises RunError if that fails; what was kept before stays."""
        about = {"said": take.said, "voices": take.voices, "figures": asdict(take.figures)}
        arrays = {
            "samples": take.samples,
            "codes": take.codes,
            "text": np.frombuffer(take.text, np.uint8),
            "about": np.frombuffer(json.dumps(about, default=str).encode(), np.uint8),
        }
        if take.places is not None:
            arrays["places"] = take.places
        with self._writing():
            self.folder.mkdir(parents=True, exist_ok=True)
            with write_atomic(self._path(take.chunk, take.attempt), sync=True) as part:
                with open(part, "wb") as file:
                    np.savez(file, allow_pickle=False, **arrays)

    def read(self, chunk: int, attempt: int) -> ChunkTake | None:
        """A take; None if it was not made, or cannot be read."""
        try:
            with np.load(self._path(chunk, attempt), allow_pickle=False) as file:
                about = json.loads(bytes(file["about"]))
                places = file["places"] if "places" in file else None
                arrays = file["samples"], file["codes"], places, bytes(file["text"])
            figures = about["figures"]
            figures["finish_reason"] = FinishReason(figures["finish_reason"])
            voices = about["voices"] and tuple(about["voices"])
            return ChunkTake(chunk, attempt, *arrays, about["said"], Figures(**figures), voices)
        except (OSError, ValueError, KeyError, TypeError, EOFError, BadZipFile):
            return None

    def remove(self) -> None:
        """Remove the folder: the dialogue is complete."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _path(self, chunk: int, attempt: int) -> Path:
        return self.folder / f"chunk-{chunk:04d}-{attempt}.npz"

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            reason = error.strerror or str(error)
            what = "Free some space" if error.errno in _FULL else "Choose another folder"
            raise RunError(
                f"{self.folder} could not be written: {reason}. {what} and run it again: the parts "
                "made so far are kept there, and only the others are made."
            ) from error
