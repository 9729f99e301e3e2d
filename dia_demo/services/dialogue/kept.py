"""The last dialogue of each person: its parts and what they are made of, on disk.

So it can be resumed after it was stopped or the program ended, and its parts can be heard and made
again. It is kept until the person begins another one.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from dia_demo.config import GenerationParams, RuntimeConfig
from dia_demo.engine.family import ModelInfo
from dia_demo.errors import DiaDemoError, RunError
from dia_demo.files import bytes_in, write_atomic
from dia_demo.services.dialogue.plan import DialoguePlan, Join
from dia_demo.services.dialogue.store import DialogueStore
from dia_demo.services.people import folder_of
from dia_demo.services.take import NO_KEPT, Request, VoicePrompt
from dia_demo.text.dialogue.breaks import Break
from dia_demo.text.dialogue.chunks import Chunk, ChunkedScript, TurnPart
from dia_demo.text.pronunciations import Pronunciations

# Of all people together; the dialogues that were not used for longest are removed first.
MOST_BYTES = 2 * 10**9
_FOLDER, _ABOUT, _CODES, _RECORDING = "dialogue", "dialogue.json", "voice.npy", "voice"


class KeptDialogue:
    """The dialogue in a person's folder, if there is one.

    plan: None without one, and where its model is no longer offered. wall_seconds: that it took so
    far, in all its runs. shown: what the page showed of its parts when the last one was made.
    """

    def __init__(self, home: Path, key: str) -> None:
        """home: of all people. Raises InputError for an invalid key."""
        self._home, self._folder = home, folder_of(home, key) / _FOLDER
        self.store = DialogueStore(self._folder / "parts")
        self.plan: DialoguePlan | None = None
        self.wall_seconds = 0.0
        self.shown: dict[str, Any] = {}

    def load(self, model_of: Callable[[str], ModelInfo | None]) -> KeptDialogue:
        """Read what is kept; what cannot be read, or used any more, counts as nothing."""
        with suppress(OSError, ValueError, KeyError, TypeError, AttributeError, DiaDemoError):
            about = json.loads((self._folder / _ABOUT).read_text(encoding="utf-8"))
            info = model_of(about["model"])
            if info is not None:
                plan = self._plan(about, info)
                self.wall_seconds, self.shown = float(about["wall_seconds"]), dict(about["shown"])
                self.plan = plan
        return self

    def begin(self, plan: DialoguePlan) -> DialoguePlan:
        """The plan to make: that of before if the same dialogue is kept, with the parts that were
        changed; else this one in its place. Raises RunError if it cannot be written."""
        if self.plan is not None and self.plan.key == plan.key:
            return self.plan
        self.remove()
        self._make_room()
        self.plan, self.wall_seconds, self.shown = plan, 0.0, {}
        self._save()
        return plan

    def make_again(self, index: int, words: str | None) -> DialoguePlan:
        """The plan in which a part is to be made again, with other words if given.

        Raises InputError for words that are no part, RunError if it cannot be written.
        """
        plan = self.plan
        assert plan is not None, "there is a dialogue"
        self.plan = plan.remake_chunk(index, self._next_attempt(plan, index), words)
        self.store.remove_stopped(index)  # It may have other words.
        self._save()
        return self.plan

    def note(self, shown: dict[str, Any], seconds: float = 0.0) -> None:
        """What the page shows now, and the wall time of a run that has ended."""
        self.shown = shown
        self.wall_seconds += seconds
        with suppress(RunError):  # Its parts are there all the same.
            self._save()

    def remove(self) -> None:
        """Remove the dialogue, if there is one."""
        shutil.rmtree(self._folder, ignore_errors=True)
        self.plan = None

    def _next_attempt(self, plan: DialoguePlan, index: int) -> int:
        number = plan.first_attempt(plan.chunks[index])
        while self.store.read(index, number) is not None:
            number += 1
        return number

    def _make_room(self) -> None:
        """Remove the dialogues that were not used for longest, beyond the limit of all people."""
        folders = sorted(self._home.glob(f"*/{_FOLDER}"), key=_last_used)
        sizes = {folder: bytes_in(folder) for folder in folders}
        while folders and sum(sizes.values()) > MOST_BYTES:
            folder = folders.pop(0)
            shutil.rmtree(folder, ignore_errors=True)
            del sizes[folder]

    def _save(self) -> None:
        plan = self.plan
        assert plan is not None
        request = plan.request
        about: dict[str, Any] = {
            "model": request.model.name,
            "script": request.script,
            "params": asdict(request.params),
            "runtime": asdict(request.runtime),
            "speed": request.speed,
            "normalise": request.normalise,
            "pronunciations": request.pronunciations.text,
            "voices": request.voices,
            "voice": None if request.voice is None else self._save_voice(request.voice),
            "plan": {
                "script": asdict(plan.script),
                "join": plan.join,
                "retries": plan.retries,
                "parts_of_take": plan.parts_of_take,
                "first_attempts": plan.first_attempts,
                "has_other_words": plan.has_other_words,
            },
            "wall_seconds": self.wall_seconds,
            "shown": self.shown,
        }
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            with write_atomic(self._folder / _ABOUT) as part:
                part.write_text(json.dumps(about), encoding="utf-8")
        except OSError as error:
            raise _not_writable(error) from error

    def _save_voice(self, voice: VoicePrompt) -> dict[str, Any]:
        """The voice prompt's words; its codes or its file are kept beside them."""
        about: dict[str, Any] = {"transcript": voice.transcript, "codec": voice.codec}
        about |= {"has_own_words": voice.has_own_words, "recording": None, "kept": voice.kept}
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            if voice.codes is not None:
                np.save(self._folder / _CODES, voice.codes)
            elif voice.audio is not None:
                kept = self._folder / f"{_RECORDING}{voice.audio.suffix}"
                if voice.audio != kept:
                    shutil.copyfile(voice.audio, kept)
                about["recording"] = kept.name
        except OSError as error:
            raise _not_writable(error) from error
        return about

    def _plan(self, about: Mapping[str, Any], info: ModelInfo) -> DialoguePlan:
        """The plan as it was saved: a long script takes seconds to split."""
        saved = about["plan"]
        chunks = []
        for chunk in saved["script"]["chunks"]:
            parts = [part | {"before": Break(part["before"])} for part in chunk["parts"]]
            chunks.append(Chunk(**chunk | {"parts": tuple(TurnPart(**part) for part in parts)}))
        whole = {
            "request": self._request(about, info),
            "script": ChunkedScript(tuple(chunks), saved["script"]["pause"]),
            "join": Join(saved["join"]),
            "first_attempts": tuple(map(tuple, saved["first_attempts"])),
        }
        return DialoguePlan(**saved | whole)

    def _request(self, about: Mapping[str, Any], info: ModelInfo) -> Request:
        voice = about["voice"]
        return Request(
            about["script"],
            GenerationParams(**about["params"]),
            info,
            RuntimeConfig(**about["runtime"]),
            None if voice is None else self._voice(voice),
            about["speed"],
            normalise=about["normalise"],
            pronunciations=Pronunciations.parse(about["pronunciations"]),
            voices=tuple(about["voices"]),
        )

    def _voice(self, about: Mapping[str, Any]) -> VoicePrompt:
        one, two = about.get("kept", NO_KEPT)  # Those of earlier versions have none.
        prompt = VoicePrompt(
            transcript=about["transcript"],
            has_own_words=about["has_own_words"],
            codec=about["codec"],
            kept=(one, two),
        )
        if (name := about["recording"]) is not None:
            return replace(prompt, audio=self._folder / Path(name).name)
        return replace(prompt, codes=np.load(self._folder / _CODES, allow_pickle=False))


def _last_used(folder: Path) -> float:
    try:
        return (folder / _ABOUT).stat().st_mtime
    except OSError:
        return 0.0


def _not_writable(error: OSError) -> RunError:
    return RunError(
        f"The dialogue cannot be kept: {error.strerror or error}. Free some space, or start the "
        "app with another folder in DIA_KEPT."
    )
