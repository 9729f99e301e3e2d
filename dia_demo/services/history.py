"""Earlier takes on the disk: each a WAV with its settings and seed inside, private to a person."""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import shutil
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from dia_demo import audio
from dia_demo.config import PRECISIONS
from dia_demo.errors import InputError, RunError
from dia_demo.files import write_atomic
from dia_demo.services.listening.store import folder_of
from dia_demo.services.quota import size_of
from dia_demo.services.take import Take

# The oldest go: a shared machine's disk is not without end. Of each person's takes MAX_TAKES stay;
# of everybody's together as many as fit into MAX_BYTES, and whoever keeps most loses first.
MAX_TAKES = 30
MAX_BYTES = 10**9
MAX_TAKE_BYTES = 32 * 10**6
# The end of a name while a take is being copied.
_NAME = re.compile(r"[0-9]{13,16}-[0-9a-f]{12}")


@dataclass(frozen=True)
class Kept:
    """One earlier take. settings, script, speed and normalise are what its file contains."""

    id: str
    path: Path
    created: datetime
    script: str
    settings: dict
    speed: float
    figures: dict
    voice_transcript: str | None = None
    normalise: bool = False

    def values(self) -> dict:
        """What a form takes from it (see `form_values`)."""
        return form_values(vars(self))


class MadeTakes:
    """The takes that this process made of late, each to be kept by one person."""

    SIZE = 1000

    def __init__(self) -> None:
        self._owners: OrderedDict[str, str | None] = OrderedDict()
        self._lock = threading.Lock()

    def add(self, wav: Path) -> None:
        """Note a take's file as it was written here."""
        with self._lock:
            self._owners.setdefault(_digest(wav))
            while len(self._owners) > self.SIZE:
                self._owners.popitem(last=False)

    def claim(self, wav: Path, key: str) -> bool:
        """Whether this person may keep this file: it was made here, and nobody else keeps it."""
        digest = _digest(wav)
        with self._lock:
            if digest not in self._owners:
                return False
            owner = self._owners[digest] = self._owners[digest] or key
            return owner == key


def _digest(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class History:
    """Everybody's earlier takes, reached with their own key alone."""

    def __init__(self, home: Path, limit: int = MAX_BYTES) -> None:
        self.home = home
        self.limit = limit
        self._copying = threading.Lock()
        self._secret = secrets.token_bytes(16)

    def add(self, key: str, take: Take) -> str:
        """Keep a take; the oldest beyond the bounds go. Raises RunError where it cannot be kept."""
        with self._copying:
            path = self._new_path(key)
            take.save(path)
            self._drop_oldest(path)
        return path.stem

    def copy(self, key: str, wav: Path) -> str:
        """Keep a WAV that `Take.save` wrote, once however often it comes in a row.

        InputError where it says nothing of itself, and where it is too large.
        """
        if (size := size_of(wav)) > MAX_TAKE_BYTES:
            raise InputError(
                f"This take has {size / 1e6:.0f} MB, and earlier takes may have up to "
                f"{MAX_TAKE_BYTES / 1e6:.0f} MB: download it to keep it."
            )
        if read_take(wav) is None:
            raise InputError("This file carries no settings, so it was not kept.")
        with self._copying:
            latest = self._paths(key)[:1]
            if latest and _digest(latest[0]) == _digest(wav):
                return latest[0].stem
            path = self._new_path(key)
            try:
                with write_atomic(path) as part:
                    shutil.copyfile(wav, part)
            except OSError as error:
                message = f"The take could not be kept: {error.strerror or error}. Free some space."
                raise RunError(message) from error
            self._drop_oldest(path)
        return path.stem

    def _new_path(self, key: str) -> Path:
        home = self._home(key)
        try:
            home.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            reason = error.strerror or error
            raise RunError(
                f"Takes cannot be kept: {reason}. Name another folder in DIA_KEPT."
            ) from error
        # Later than every other, even where the clock was set back.
        newest = max((_stamp(path) for path in self._paths(key)), default=0)
        now = int(datetime.now(UTC).timestamp() * 1e6)
        return home / f"{max(now, newest + 1):016d}-{secrets.token_hex(6)}.wav"

    def _drop_oldest(self, new: Path) -> None:
        """Keep to both bounds; the one just kept, `new`, stays."""
        for path in _takes_in(new.parent)[MAX_TAKES:]:
            path.unlink(missing_ok=True)
        people = [_sizes(home) for home in self.home.glob("*/takes")]
        while sum(sum(held.values()) for held in people) > self.limit:
            people = [held for held in people if held.keys() - {new}]
            if not people:
                return
            # Of two who keep as much, the one with the older take.
            held = max(people, key=lambda held: (sum(held.values()), -_stamp([*held][-1])))
            oldest = next(path for path in reversed(held) if path != new)
            del held[oldest]
            oldest.unlink(missing_ok=True)

    def list(self, key: str) -> list[Kept]:
        """The person's takes, the latest first."""
        takes = (self._read(path) for path in self._paths(key))
        return [take for take in takes if take is not None]

    def get(self, key: str, identity: str) -> Kept:
        """One of them. InputError where there is none of that id."""
        take = self._read(self._path(key, identity))
        if take is None:
            raise InputError("This take is not kept any more.")
        return take

    def served(self, key: str, identity: str, folder: Path) -> Path:
        """One of them as a file in `folder`, under a name that cannot be guessed."""
        path = self.get(key, identity).path
        served = self._served(path, folder)
        try:
            served.parent.mkdir(parents=True, exist_ok=True)
            if not served.exists():
                _link(path, served)
            # Temporary files go by their age.
            os.utime(served)
        except OSError as error:
            reason = error.strerror or error
            raise RunError(f"The take cannot be handed out: {reason}. Try again.") from error
        return served

    def _served(self, path: Path, folder: Path) -> Path:
        secret = hashlib.blake2b(str(path).encode(), key=self._secret).hexdigest()[:40]
        return folder / f"earlier-{secret}" / "take.wav"

    def delete(self, key: str, identity: str, folder: Path) -> None:
        """Remove one for good, and what `served` put into `folder`."""
        path = self._path(key, identity)
        path.unlink(missing_ok=True)
        self._served(path, folder).unlink(missing_ok=True)

    def _home(self, key: str) -> Path:
        return folder_of(self.home, key) / "takes"

    def _path(self, key: str, identity: str) -> Path:
        if not isinstance(identity, str) or not _NAME.fullmatch(identity):
            raise InputError("There is no such take.")
        return self._home(key) / f"{identity}.wav"

    def _paths(self, key: str) -> Sequence[Path]:
        return _takes_in(self._home(key))

    def _read(self, path: Path) -> Kept | None:
        contents = read_take(path)
        if contents is None:
            return None
        created = datetime.fromtimestamp(_stamp(path) / 1e6, UTC)
        return Kept(path.stem, path, created, **contents)


def _takes_in(home: Path) -> list[Path]:
    """The takes of one folder, the latest first."""
    names = os.listdir(home) if home.is_dir() else []
    wavs = [name for name in names if _NAME.fullmatch(name.removesuffix(".wav"))]
    return [home / name for name in sorted(wavs, reverse=True)]


def _sizes(home: Path) -> dict[Path, int]:
    return {path: size_of(path) for path in _takes_in(home)}


def _stamp(path: Path) -> int:
    """When a take was kept, in microseconds since 1970: its name begins with it."""
    return int(path.stem.split("-")[0])


def _link(path: Path, other: Path) -> None:
    """`path` under another name too, or a copy of it where that is on another disk."""
    with suppress(OSError):
        os.link(path, other)
        return
    with write_atomic(other) as part:
        shutil.copyfile(path, part)


def read_take(path: Path) -> dict | None:
    """What a WAV or FLAC saved here says of itself: script, settings, speed, figures, whether it
    was normalised, and the words of its voice prompt, if it had one; else None."""
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
        "normalise": raw.get("normalise") is True,
    }


def form_values(take: Mapping[str, Any]) -> dict:
    """What a form takes from a take that `read_take` read: script, speed, every sampling setting,
    seed, model, whether it is normalised, and the precision it was made in, whichever one was
    asked for."""
    figures = take["figures"]
    values = {name: take[name] for name in ("script", "speed", "normalise")} | take["settings"]
    values |= {name: figures[name] for name in ("model",) if name in figures}
    if figures.get("precision") in PRECISIONS:
        values["precision"] = figures["precision"]
    return values
