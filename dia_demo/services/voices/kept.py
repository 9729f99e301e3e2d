"""A folder of kept voices. Importing and exporting is copying the file."""

from __future__ import annotations

import hashlib
import threading
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from dia_demo.errors import InputError, RunError
from dia_demo.files import size_of
from dia_demo.prompt.voice_file import SUFFIX, VoiceFile, checked_name
from dia_demo.services.earlier.labels import slug
from dia_demo.services.people import folder_of, is_key
from dia_demo.services.settings import Settings

MAX_VOICES = 200
# Of all people of a page together.
MOST_BYTES = 200 * 10**6


class KeptVoices:
    """The voices in one folder, each with a name of its own, whatever its case.

    shared: others that may be used from here, but not changed.
    """

    def __init__(self, folder: Path, shared: KeptVoices | None = None) -> None:
        self.folder, self.shared = folder, shared
        self._changing = threading.Lock()

    @classmethod
    def for_user(cls, settings: Settings) -> KeptVoices:
        """Those of the command line and of programs, which every page may use."""
        return cls(settings.kept_folder / "voices")

    @classmethod
    def for_person(cls, settings: Settings, key: object) -> KeptVoices:
        """Those of a person of the page, beside `for_user`; without a key, only the latter."""
        shared = cls.for_user(settings)
        if not is_key(key):
            return shared
        return cls(folder_of(settings.kept_folder, str(key)) / "voices", shared)

    def own_voices(self) -> list[VoiceFile]:
        """The voices in the folder itself by name; a damaged file is left out."""
        voices = []
        for path in self.folder.glob(f"*{SUFFIX}"):
            with suppress(InputError):
                voices.append(VoiceFile.read(path))
        return sorted(voices, key=lambda voice: voice.name.casefold())

    def list(self) -> list[VoiceFile]:
        """All voices that may be used, the own ones first."""
        own = self.own_voices()
        names = {voice.name.casefold() for voice in own}
        shared = [] if self.shared is None else self.shared.list()
        return own + [voice for voice in shared if voice.name.casefold() not in names]

    def find(self, name: str) -> VoiceFile | None:
        """The voice of this name; None if there is none. Raises InputError for a damaged file."""
        path = self._path(name)
        if path.exists():
            return VoiceFile.read(path)
        return None if self.shared is None else self.shared.find(name)

    def name_of(self, identity: str) -> str | None:
        """The name of the voice with this `VoiceFile.identity`; None if it is not kept."""
        return next((voice.name for voice in self.list() if voice.identity == identity), None)

    def get(self, name: str) -> VoiceFile:
        """The voice of this name. Raises InputError if there is none."""
        voice = self.find(name)
        if voice is None:
            names = ", ".join(voice.name for voice in self.list()) or "none yet"
            raise InputError(f"There is no kept voice {name!r}. Kept voices: {names}.")
        return voice

    def add(self, voice: VoiceFile) -> VoiceFile:
        """Keep a voice. Raises InputError if its name exists or there are too many, RunError if it
        cannot be written."""
        voice = replace(voice, name=checked_name(voice.name))
        with self._changing:
            path = self._path(voice.name)
            if path.exists():
                raise InputError(
                    f"There is already a voice {voice.name!r}: choose another name, or remove that "
                    "one first."
                )
            if len(list(self.folder.glob(f"*{SUFFIX}"))) >= MAX_VOICES:
                raise InputError(
                    f"At most {MAX_VOICES} voices can be kept: remove one that you no longer need."
                )
            if self.shared is not None and self._total_bytes() > MOST_BYTES:
                raise InputError(
                    f"The kept voices on this machine use {MOST_BYTES / 1e6:.0f} MB, the maximum: "
                    "remove one of yours, or download this take to keep its voice elsewhere."
                )
            try:
                self.folder.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise RunError(
                    f"Voices cannot be kept in {self.folder}: {error.strerror}. Set DIA_KEPT to "
                    "another folder."
                ) from error
            voice.write(path)
        return voice

    def rename(self, name: str, new: str) -> VoiceFile:
        """Give a voice another name. Raises InputError if there is no such voice, or `new` is the
        name of another one."""
        voice = self.get(name)
        if not self._path(name).exists():
            raise InputError(f"{name} is a shared voice, so it cannot be renamed.")
        if checked_name(new).casefold() == voice.name.casefold():  # Only its case changes.
            voice = replace(voice, name=checked_name(new))
            voice.write(self._path(new))
            return voice
        renamed = self.add(replace(voice, name=new))
        self.remove(name)
        return renamed

    def remove(self, name: str) -> None:
        """Delete a voice. Raises InputError if there is none of this name."""
        path = self._path(name)
        if not path.exists():
            self.get(name)
            raise InputError(f"{name} is a shared voice, so it cannot be removed.")
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise RunError(f"{name} could not be removed: {error.strerror}.") from error

    def import_file(self, path: Path, name: str | None = None) -> VoiceFile:
        """Keep a copy of a voice file. name: another than its own. Raises InputError for a file
        that is not a voice, and as `add` does."""
        voice = VoiceFile.read(path)
        return self.add(voice if name is None else replace(voice, name=name))

    def export_file(self, name: str, path: Path) -> Path:
        """Write a copy of a voice; in a folder, under its own name. Raises InputError if there is
        no such voice, RunError if the copy cannot be written."""
        voice = self.get(name)
        if path.is_dir():
            path /= self._path(name).name
        elif not path.name.endswith(SUFFIX):
            path = path.with_name(path.name + SUFFIX)
        return voice.write(path)

    def _total_bytes(self) -> int:
        """What the voices of all people use, whose folders lie beside one another."""
        files = self.folder.parent.parent.glob(f"*/{self.folder.name}/*{SUFFIX}")
        return sum(map(size_of, files))

    def _path(self, name: str) -> Path:
        return self.folder / file_name(name)


def file_name(name: str) -> str:
    """The file of a voice's name: readable, and one only for each name, whatever its case. Raises
    InputError for what is no name."""
    name = checked_name(name).casefold()
    digest = hashlib.sha256(name.encode()).hexdigest()[:8]
    return f"{slug(name) or 'voice'}-{digest}{SUFFIX}"
