"""Earlier takes on the disk: each a file with its settings and seed inside, private to a person."""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import shutil
import threading
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from dia_demo.audio import STORED_SUFFIX
from dia_demo.errors import InputError, RunError
from dia_demo.files import size_of, write_atomic
from dia_demo.services.earlier.formats import REMOVED, convert_take
from dia_demo.services.earlier.labels import (
    Label,
    checked_name,
    file_stem,
    make_distinct,
    read_labels,
    write_labels,
)
from dia_demo.services.earlier.take_metadata import form_values, read_take
from dia_demo.services.people import folder_of
from dia_demo.services.take import NO_KEPT, Take

# A person has at most MAX_TAKES earlier takes, and all people together MAX_BYTES of them. Beyond
# that the oldest takes are removed, first those of the person who uses the most space.
MAX_TAKES = 30
MAX_BYTES = 10**9
MAX_TAKE_BYTES = 32 * 10**6
BYTES_A_SAMPLE = 2
_NAME = re.compile(r"[0-9]{13,16}-[0-9a-f]{12}")
# Files beside a person's takes: the time of the latest take that was removed to free space, and a
# marker of a run that has not finished; and names and stars.
_REMOVED, _UNFINISHED, _LABELS = "removed", "unfinished", "labels.json"


@dataclass(frozen=True)
class EarlierTake:
    """One earlier take. settings, script, speed, normalise, pronunciations, voices and
    kept_voices (see `read_take`) are what its file contains."""

    id: str
    path: Path
    created: datetime
    script: str
    settings: dict
    speed: float
    figures: dict
    voice_transcript: str | None = None
    normalise: bool = False
    pronunciations: str | None = None
    voices: tuple[str, str] = ("", "")
    kept_voices: tuple[str, str] = NO_KEPT
    label: Label = Label()

    @property
    def file_stem(self) -> str:
        """See `labels.file_stem`."""
        return file_stem(self.script, self.figures, self.label.name)

    def values(self) -> dict:
        """The values for a form (see `form_values`)."""
        return form_values(vars(self))


class History:
    """The earlier takes of all people; a person's takes can be reached only with their key."""

    def __init__(self, home: Path, limit: int = MAX_BYTES) -> None:
        self.home = home
        self.limit = limit
        self._adding = threading.Lock()
        self._secret = secrets.token_bytes(16)

    def add(self, key: str, take: Take) -> str:
        """Keep a take; the oldest beyond the limits are removed.

        Raises InputError if it is too large, RunError if it cannot be written.
        """
        return self.add_file(key, len(take.in_file), take.save)

    def add_file(
        self,
        key: str,
        samples: int,
        write: Callable[[Path], object],
        most_bytes: int | None = None,
    ) -> str:
        """The same for a take that `write` writes, of so many samples. most_bytes: MAX_TAKE_BYTES
        if it is not given."""
        most_bytes = MAX_TAKE_BYTES if most_bytes is None else most_bytes
        if (size := BYTES_A_SAMPLE * samples) > most_bytes:
            raise InputError(
                f"The take is {size / 1e6:.0f} MB, but an earlier take may be at most "
                f"{most_bytes / 1e6:.0f} MB. Download it to keep it."
            )
        with self._adding:
            path = self._new_path(key)
            write(path)
            self._drop_oldest(path)
        return path.stem

    def _new_path(self, key: str) -> Path:
        home = self._home(key)
        try:
            home.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            reason = error.strerror or error
            raise RunError(
                f"Earlier takes cannot be saved: {reason}. Free some space, or start the app with "
                "another folder in DIA_KEPT."
            ) from error
        # Later than every other, even where the clock was set back.
        newest = max((_stamp(path) for path in self._paths(key)), default=0)
        now = int(datetime.now(UTC).timestamp() * 1e6)
        return home / f"{max(now, newest + 1):016d}-{secrets.token_hex(6)}{STORED_SUFFIX}"

    def _drop_oldest(self, new: Path) -> None:
        """Remove the oldest takes above both limits, starred ones last, but not `new`, the one just
        added."""
        for path in _order_takes(_takes_in(new.parent), new)[MAX_TAKES:]:
            path.unlink(missing_ok=True)
        people = [_sizes(home) for home in self.home.glob("*/takes")]
        while sum(sum(takes.values()) for takes in people) > self.limit:
            people = [takes for takes in people if takes.keys() - {new}]
            if not people:
                return
            # Of two people who use the same space, the one with the older take.
            takes = max(people, key=lambda takes: (sum(takes.values()), -_stamp([*takes][-1])))
            oldest = _order_takes(takes, new)[-1]
            del takes[oldest]
            oldest.unlink(missing_ok=True)
            # On a full disk the note is missing, but the take is removed all the same.
            with suppress(OSError):
                (oldest.parent / _REMOVED).write_text(str(_stamp(oldest)))

    def list(self, key: str) -> list[EarlierTake]:
        """The person's takes, the latest first. Files that cannot be read are left out."""
        labels = read_labels(self._home(key) / _LABELS)
        takes = (self._read(path, labels) for path in self._paths(key))
        return [take for take in takes if take is not None]

    def latest(self, key: str) -> EarlierTake | None:
        """The person's last take, if there is one."""
        labels = read_labels(self._home(key) / _LABELS)
        takes = (self._read(path, labels) for path in self._paths(key))
        return next((take for take in takes if take is not None), None)

    def latest_removal(self, key: str) -> datetime | None:
        """When the latest of the person's takes was generated that was removed to free space."""
        try:
            return _time_of(int((self._home(key) / _REMOVED).read_text()))
        except (OSError, ValueError, OverflowError):
            return None

    @contextmanager
    def mark_unfinished(self, key: str) -> Iterator[None]:
        """Keep a marker of a run on the disk until the block ends, for `was_lost`."""
        note = self._home(key) / _UNFINISHED
        with suppress(OSError):
            note.parent.mkdir(parents=True, exist_ok=True)
            note.touch()
        try:
            yield
        finally:
            with suppress(OSError):
                note.unlink(missing_ok=True)

    def was_lost(self, key: str) -> bool:
        """Whether the program ended during a run. Call it while no run of the person is active."""
        return (self._home(key) / _UNFINISHED).exists()

    def get(self, key: str, identity: str) -> EarlierTake:
        """One of the person's takes. Raises InputError if there is none with this id."""
        take = self._read(self._path(key, identity), read_labels(self._home(key) / _LABELS))
        if take is None:
            raise InputError(REMOVED)
        return take

    def label(self, key: str, identity: str, name: object = None, starred: object = None) -> None:
        """Name or star one of the takes; None leaves what it has. Raises InputError for a name that
        is too long, RunError if it cannot be saved."""
        with self._adding:
            take = self.get(key, identity)
            label = Label(
                take.label.name if name is None else checked_name(name),
                take.label.starred if starred is None else starred is True,
            )
            labels = read_labels(self._home(key) / _LABELS) | {identity: label}
            try:
                ids = [path.stem for path in self._paths(key)]
                write_labels(self._home(key) / _LABELS, labels, ids)
            except OSError as error:
                reason = error.strerror or error
                raise RunError(f"It could not be saved: {reason}. Free some space.") from error

    def archive(
        self, key: str, identities: Sequence[str], folder: Path, suffix: str = STORED_SUFFIX
    ) -> Path:
        """A zip of these takes, in the format of a suffix, in a new folder in `folder` whose name
        cannot be guessed."""
        takes = [self.get(key, identity) for identity in identities[:MAX_TAKES]]
        if not takes:
            raise InputError("There is no take to download.")
        files = [self.serve(key, take.id, folder, suffix) for take in takes]
        try:
            folder.mkdir(parents=True, exist_ok=True)
            path = folder / f"takes-{secrets.token_hex(20)}" / "takes.zip"
            path.parent.mkdir()
            with zipfile.ZipFile(path, "w") as archive:
                names = make_distinct([take.file_stem for take in takes])
                for name, file in zip(names, files, strict=True):
                    archive.write(file, f"{name}{suffix}")
        except OSError as error:
            shutil.rmtree(path.parent, ignore_errors=True)
            reason = error.strerror or error
            raise RunError(f"The zip could not be written: {reason}. Free some space.") from error
        return path

    def serve(self, key: str, identity: str, folder: Path, suffix: str = STORED_SUFFIX) -> Path:
        """One of the takes as a file in `folder`, in the format of a suffix, in a subfolder whose
        name cannot be guessed."""
        take = self.get(key, identity)
        served = self._served_folder(take.path, folder) / f"{take.file_stem}{STORED_SUFFIX}"
        try:
            served.parent.mkdir(parents=True, exist_ok=True)
            if not served.exists():
                _link(take.path, served)
            # The oldest temporary files are removed first.
            os.utime(served)
        except OSError as error:
            reason = error.strerror or error
            raise RunError(f"The take could not be prepared: {reason}. Free some space.") from error
        return convert_take(served, suffix)

    def _served_folder(self, path: Path, folder: Path) -> Path:
        secret = hashlib.blake2b(str(path).encode(), key=self._secret).hexdigest()[:40]
        return folder / f"earlier-{secret}"

    def delete(self, key: str, identity: str, folder: Path) -> None:
        """Delete a take permanently, with its copy in `folder`."""
        path = self._path(key, identity)
        path.unlink(missing_ok=True)
        shutil.rmtree(self._served_folder(path, folder), ignore_errors=True)

    def _home(self, key: str) -> Path:
        return folder_of(self.home, key) / "takes"

    def _path(self, key: str, identity: str) -> Path:
        if not isinstance(identity, str) or not _NAME.fullmatch(identity):
            raise InputError("There is no such take. Reload the page to see your earlier takes.")
        return self._home(key) / f"{identity}{STORED_SUFFIX}"

    def _paths(self, key: str) -> Sequence[Path]:
        return _takes_in(self._home(key))

    def _read(self, path: Path, labels: Mapping[str, Label]) -> EarlierTake | None:
        contents = read_take(path)
        if contents is None:
            return None
        label = labels.get(path.stem, Label())
        return EarlierTake(path.stem, path, _time_of(_stamp(path)), **contents, label=label)


def _takes_in(home: Path) -> list[Path]:
    """The takes of one folder, the latest first."""
    names = os.listdir(home) if home.is_dir() else []
    takes = [name for name in names if _NAME.fullmatch(name.removesuffix(STORED_SUFFIX))]
    return [home / name for name in sorted(takes, reverse=True)]


def _order_takes(takes: Iterable[Path], new: Path) -> list[Path]:
    """The takes of one folder, the new one first, then the starred ones, the latest first."""
    takes = list(takes)
    labels = read_labels(takes[0].parent / _LABELS) if takes else {}
    starred = {identity for identity, label in labels.items() if label.starred}
    return sorted(takes, key=lambda path: (path != new, path.stem not in starred))


def _sizes(home: Path) -> dict[Path, int]:
    return {path: size_of(path) for path in _takes_in(home)}


def _stamp(path: Path) -> int:
    """When a take was kept, in microseconds since 1970: its name begins with it."""
    return int(path.stem.split("-")[0])


def _time_of(stamp: int) -> datetime:
    return datetime.fromtimestamp(stamp / 1e6, UTC)


def _link(path: Path, other: Path) -> None:
    """Make `other` a hard link to `path`, or a copy if it is on another disk."""
    with suppress(OSError):
        os.link(path, other)
        return
    with write_atomic(other) as part:
        shutil.copyfile(path, part)
