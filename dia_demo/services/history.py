"""Earlier takes on the disk: each a WAV with its settings and seed inside, private to a person."""

from __future__ import annotations

import filecmp
import os
import re
import secrets
import shutil
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from dia_demo import audio
from dia_demo.config import PRECISIONS
from dia_demo.errors import InputError, RunError
from dia_demo.services.people import folder_of
from dia_demo.services.room import size_of
from dia_demo.services.synthesis import Take

# The oldest go: a shared machine's disk is not without end. Of each person's takes MAX_TAKES stay,
# of everybody's together as many as fit into MAX_BYTES.
MAX_TAKES = 30
MAX_BYTES = 10**9
_NAME = re.compile(r"[0-9]{13,16}-[0-9a-f]{12}")


@dataclass(frozen=True)
class Kept:
    """One earlier take. settings, script and speed are what the file says of itself."""

    id: str
    path: Path
    created: datetime
    script: str
    settings: dict
    speed: float
    figures: dict
    voice_transcript: str | None = None

    def values(self) -> dict:
        """What a form takes from it (see `form_values`)."""
        return form_values(vars(self))


class History:
    """Everybody's earlier takes, reached with their own key alone."""

    def __init__(self, home: Path, limit: int = MAX_BYTES) -> None:
        self.home = home
        self.limit = limit
        self._copying = threading.Lock()

    def add(self, key: str, take: Take) -> str:
        """Keep a take; the oldest beyond the bounds go. Raises RunError where it cannot be kept."""
        path = self._new_path(key)
        take.save(path)
        self._drop_oldest(key)
        return path.stem

    def copy(self, key: str, wav: Path) -> str:
        """Keep a WAV that `Take.save` wrote, once however often it comes in a row.

        InputError where it says nothing of itself.
        """
        if read_take(wav) is None:
            raise InputError("This file carries no settings, so it was not kept.")
        with self._copying:
            latest = self._paths(key)[:1]
            if latest and filecmp.cmp(latest[0], wav, shallow=False):
                return latest[0].stem
            path = self._new_path(key)
            try:
                shutil.copyfile(wav, path)
            except OSError as error:
                said = f"{path} could not be written: {error.strerror or error}. Free some space."
                raise RunError(said) from error
        self._drop_oldest(key)
        return path.stem

    def _new_path(self, key: str) -> Path:
        home = self._home(key)
        try:
            home.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            reason = error.strerror or error
            raise RunError(
                f"{home} cannot be written: {reason}. Name another folder in DIA_KEPT."
            ) from error
        now = datetime.now(UTC).timestamp()
        return home / f"{int(now * 1e6):013d}-{secrets.token_hex(6)}.wav"

    def _drop_oldest(self, key: str) -> None:
        for path in self._paths(key)[MAX_TAKES:]:
            path.unlink(missing_ok=True)
        everybodys = sorted(self.home.glob("*/takes/*.wav"), key=lambda path: path.name)
        excess = sum(map(size_of, everybodys)) - self.limit
        # The one just kept stays, and a name begins with the time.
        for path in everybodys[:-1]:
            if excess <= 0:
                break
            excess -= size_of(path)
            path.unlink(missing_ok=True)

    def list(self, key: str) -> list[Kept]:
        """The person's takes, the latest first."""
        found = (self._read(path) for path in self._paths(key))
        return [kept for kept in found if kept is not None]

    def get(self, key: str, identity: str) -> Kept:
        """One of them. InputError where there is none of that id."""
        kept = self._read(self._path(key, identity))
        if kept is None:
            raise InputError("This take is not kept any more.")
        return kept

    def delete(self, key: str, identity: str) -> None:
        """Remove one for good."""
        self._path(key, identity).unlink(missing_ok=True)

    def _home(self, key: str) -> Path:
        return folder_of(self.home, key) / "takes"

    def _path(self, key: str, identity: str) -> Path:
        if not isinstance(identity, str) or not _NAME.fullmatch(identity):
            raise InputError("There is no such take.")
        return self._home(key) / f"{identity}.wav"

    def _paths(self, key: str) -> list[Path]:
        home = self._home(key)
        names = os.listdir(home) if home.is_dir() else []
        wavs = [name for name in names if _NAME.fullmatch(name.removesuffix(".wav"))]
        return [home / name for name in sorted(wavs, reverse=True)]

    def _read(self, path: Path) -> Kept | None:
        found = read_take(path)
        if found is None:
            return None
        created = datetime.fromtimestamp(int(path.stem.split("-")[0]) / 1e6, UTC)
        return Kept(path.stem, path, created, **found)


def read_take(path: Path) -> dict | None:
    """What a WAV or FLAC saved here says of itself: script, settings, speed, figures, and the
    words of its voice prompt, if it had one; else None."""
    raw = audio.read_metadata(path)
    if raw is None or not isinstance(raw.get("script"), str):
        return None
    settings, figures = raw.get("settings"), raw.get("figures")
    if not isinstance(settings, dict) or not isinstance(figures, dict):
        return None
    numbers = {
        name: value
        for name, value in settings.items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    }
    speed = raw.get("speed")
    speed = speed if isinstance(speed, int | float) and 0.5 <= speed <= 2.0 else 1.0
    voice = raw.get("voice_transcript")
    return {
        "script": raw["script"],
        "settings": numbers,
        "speed": float(speed),
        "figures": figures,
        "voice_transcript": voice if isinstance(voice, str) else None,
    }


def form_values(take: Mapping[str, Any]) -> dict:
    """What a form takes from a take that `read_take` read: script, speed, every sampling setting,
    seed, model, and the precision it was made in, whichever one was asked for."""
    figures = take["figures"]
    values = {"script": take["script"], "speed": take["speed"], **take["settings"]}
    values |= {name: figures[name] for name in ("model",) if name in figures}
    if figures.get("precision") in PRECISIONS:
        values["precision"] = figures["precision"]
    return values
