"""Answers to the list of parts: the sound of one, subtitles, and zips of parts and speakers."""

from __future__ import annotations

import secrets
import threading
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dia_demo import audio
from dia_demo.errors import InputError, RunError
from dia_demo.services.dialogue.kept import KeptDialogue
from dia_demo.services.dialogue.output import words_in_file, write_speakers, write_with_notice
from dia_demo.services.dialogue.run import DialogueRun
from dia_demo.services.dialogue.store import DialogueStore
from dia_demo.services.dialogue.subtitles import write_subtitles
from dia_demo.services.earlier.labels import file_stem, make_distinct, slug
from dia_demo.services.synthesis import Synthesis
from dia_demo.ui.status import explain

GONE = "This dialogue is no longer kept. Press Generate to make it again."
_FILES = ("srt", "vtt", "speakers", "parts")
WAIT_SECONDS = 10.0
_WRITING = threading.Lock()


def kept_dialogue(synthesis: Synthesis, key: object) -> KeptDialogue:
    """The person's last dialogue. Raises InputError without a key."""
    return KeptDialogue(synthesis.settings.kept_folder, str(key)).load(synthesis.models.get)


def run_of(kept: KeptDialogue, synthesis: Synthesis) -> DialogueRun:
    """The dialogue with the parts that were made. Raises InputError if it is gone."""
    if kept.plan is None:
        raise InputError(GONE)
    run = DialogueRun(synthesis, kept.plan, kept.store)
    run.find_made()
    return run


def answer(synthesis: Synthesis, request: object) -> dict:
    """Answer {do: hear, key, index, take} or {do: one of the files, key, format}: {sound} or
    {file}; an error is returned as {error}."""
    try:
        question = request if isinstance(request, dict) else {}
        kept = kept_dialogue(synthesis, question.get("key"))
        if question.get("do") == "hear":
            return {"sound": _sound(kept.store, question.get("index"), question.get("take"))}
        if (name := question.get("do")) in _FILES:
            with _one_at_a_time():
                run = run_of(kept, synthesis)
                return {"file": str(_file(synthesis, run, str(name), question))}
        raise InputError("This page sent an unknown request. Reload it.")
    except Exception as error:
        return {"error": explain(error)}


def _sound(store: DialogueStore, index: object, number: object) -> str:
    """A take of a part, by the number that the list has: judging all parts would take seconds.
    number: None for one that was stopped."""
    take = None
    if isinstance(index, int):
        if isinstance(number, int):
            take = store.read(index, number)
        else:
            take = store.read_stopped(index)
    if take is None:
        raise InputError("This part is not made yet.")
    return audio.data_url(take.samples, take.sample_rate)


def _file(synthesis: Synthesis, run: DialogueRun, name: str, question: Mapping[str, Any]) -> Path:
    if run.made < len(run.plan.chunks):
        raise InputError("Some parts are not made yet: press Resume first.")
    stem = file_stem(
        run.plan.text, {"model": run.plan.info.name, "seed": run.plan.request.params.seed}
    )
    folder = synthesis.settings.served_folder / f"dialogue-{secrets.token_hex(20)}"
    suffix = audio.suffix_of(question.get("format"))
    try:
        folder.mkdir(parents=True)
        if name in ("srt", "vtt"):
            return write_subtitles(folder / f"{stem}.{name}", words_in_file(run))
        with _open_zip(folder / f"{stem}-{name}.zip") as archive:
            if name == "speakers":
                files = write_speakers(folder, run, suffix)
            else:
                files = _write_parts(folder, run, suffix)
            for file in files:
                archive.write(file, file.name)
                file.unlink()
        return folder / f"{stem}-{name}.zip"
    except OSError as error:
        reason = error.strerror or error
        raise RunError(f"The file could not be written: {reason}. Free some space.") from error


def _write_parts(folder: Path, run: DialogueRun, suffix: str) -> Iterator[Path]:
    """A file for each part, named after its number and words."""
    chunks = run.plan.chunks
    names = make_distinct([f"{chunk.index + 1:03d}-{slug(chunk.script)}" for chunk in chunks])
    for chunk, name in zip(chunks, names, strict=True):
        take = run.take(chunk)
        about = {"script": chunk.script, "model": run.plan.info.name}
        path = folder / f"{name}{suffix}"
        yield write_with_notice(path, run, take.samples, take.sample_rate, about)


@contextmanager
def _one_at_a_time() -> Iterator[None]:
    """Judging and joining a long dialogue takes seconds of a core: people wait for each other.
    Raises InputError if that takes long."""
    if not _WRITING.acquire(timeout=WAIT_SECONDS):
        raise InputError("The files of other dialogues are being written: try again in a moment.")
    try:
        yield
    finally:
        _WRITING.release()


@contextmanager
def _open_zip(path: Path) -> Iterator[zipfile.ZipFile]:
    with zipfile.ZipFile(path, "w") as archive:
        yield archive
