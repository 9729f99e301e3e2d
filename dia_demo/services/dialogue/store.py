"""The takes of a dialogue's chunks on disk, so that a run that was interrupted can go on.

A folder has one file for every attempt at a chunk, and one for a chunk that was stopped before it
was complete, for listening. Each is written whole or not at all; one that cannot be read counts as
not made.
"""

from __future__ import annotations

import errno
import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from zipfile import BadZipFile

import numpy as np

from dia_demo.engine.events import Figures, FinishReason, SpokenWord
from dia_demo.errors import RunError
from dia_demo.files import write_atomic
from dia_demo.prompt.voice_traits import VoiceTraits
from dia_demo.services.dialogue.plan import DialoguePlan
from dia_demo.services.judging.chunk_take import ChunkTake

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class DialogueStore:
    """The folder of one dialogue, made when the first take is written.

    is_kept: a later run goes on with what is there; otherwise the folder is removed after the run,
    and whoever asked for the dialogue does not know of it.
    """

    def __init__(self, folder: Path, is_kept: bool = True) -> None:
        self.folder, self._is_kept = folder, is_kept

    @classmethod
    def for_output(cls, output: Path, plan: DialoguePlan) -> DialogueStore:
        """The folder beside an output file, by the script and its settings."""
        return cls(output.with_name(f".{output.name[:100]}.{plan.key}.parts"))

    def write(self, take: ChunkTake) -> None:
        """Keep a take. Raises RunError if that fails; what was kept before stays."""
        self._write(take, self._path(take.chunk, take.attempt))
        self.remove_stopped(take.chunk)

    def write_stopped(self, take: ChunkTake) -> None:
        """Keep the beginning of a take that was stopped; raises as `write` does."""
        self._write(take, self._path_of_stopped(take.chunk))

    def remove_stopped(self, chunk: int) -> None:
        """Remove the beginning of a take of this chunk, if there is one."""
        with suppress(OSError):
            self._path_of_stopped(chunk).unlink(missing_ok=True)

    def _write(self, take: ChunkTake, path: Path) -> None:
        about = {
            "said": take.said,
            "voices": take.voices,
            "expected_voices": [traits and asdict(traits) for traits in take.expected_voices],
            "figures": asdict(take.figures),
            "words": take.words and [asdict(word) for word in take.words],
        }
        arrays = {
            "samples": take.samples,
            "codes": take.codes,
            "text": np.frombuffer(take.text, np.uint8),
            "about": np.frombuffer(json.dumps(about, default=str).encode(), np.uint8),
        }
        if take.places is not None:
            arrays["places"] = take.places
        with self._wrap_write_errors():
            self.folder.mkdir(parents=True, exist_ok=True)
            with write_atomic(path, sync=True) as part:
                with open(part, "wb") as file:
                    np.savez(file, allow_pickle=False, **arrays)

    def read(self, chunk: int, attempt: int) -> ChunkTake | None:
        """A take; None if it was not made, or cannot be read."""
        return self._read(self._path(chunk, attempt), chunk, attempt)

    def read_stopped(self, chunk: int) -> ChunkTake | None:
        """The beginning of a take of this chunk; None if there is none, or it cannot be read."""
        return self._read(self._path_of_stopped(chunk), chunk)

    def _read(self, path: Path, chunk: int, attempt: int = 0) -> ChunkTake | None:
        try:
            with np.load(path, allow_pickle=False) as file:
                about = json.loads(bytes(file["about"]))
                places = file["places"] if "places" in file else None
                arrays = file["samples"], file["codes"], places, bytes(file["text"])
            figures = about["figures"]
            figures["finish_reason"] = FinishReason(figures["finish_reason"])
            voices = about["voices"] and tuple(about["voices"])
            # Takes of earlier versions have none.
            one, two = (
                traits and VoiceTraits(traits["semitones"], tuple(traits["spectrum"]))
                for traits in about.get("expected_voices", (None, None))
            )
            words = about.get("words")
            spoken = None if words is None else tuple(SpokenWord(**word) for word in words)
            known = about["said"], Figures(**figures), voices, (one, two)
            return ChunkTake(chunk, attempt, *arrays, *known, words=spoken)
        except (OSError, ValueError, KeyError, TypeError, EOFError, BadZipFile):
            return None

    def remove(self) -> None:
        """Remove the folder: the dialogue is complete."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _path_of_stopped(self, chunk: int) -> Path:
        return self.folder / f"stopped-{chunk:04d}.npz"

    def _path(self, chunk: int, attempt: int) -> Path:
        return self.folder / f"chunk-{chunk:04d}-{attempt}.npz"

    @contextmanager
    def _wrap_write_errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            reason = error.strerror or str(error)
            if not self._is_kept:
                raise RunError(
                    f"The parts of this dialogue could not be stored: {reason}. The server needs "
                    "free space in its folder for temporary files (DIA_TAKES)."
                ) from error
            what = "Free some space" if error.errno in _FULL else "Choose another folder"
            raise RunError(
                f"{self.folder} could not be written: {reason}. {what} and run it again: the parts "
                "made so far are kept there and will be reused."
            ) from error
