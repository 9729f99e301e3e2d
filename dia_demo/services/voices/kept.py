"""A folder of kept voices. Importing and exporting is copying the file."""

from __future__ import annotations

import hashlib
import threading
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from dia_demo.errors import InputError, RunError
from dia_demo.prompt.voice_file import SUFFIX, VoiceFile, checked_name
from dia_demo.services.earlier.labels import slug
from dia_demo.services.settings import Settings

MAX_VOICES = 200


class KeptVoices:
    """The voices in one folder, each with a name of its own, whatever its case."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._changing = threading.Lock()

    @classmethod
    def of_this_user(cls, settings: Settings) -> KeptVoices:
        """Those of the command line, of programs, and of a page that runs on this machine."""
        return cls(settings.kept_folder / "voices")

    def list(self) -> list[VoiceFile]:
        """All voices by name; a damaged file is left out."""
        voices = []
        for path in self.folder.glob(f"*{SUFFIX}"):
            with suppress(InputError):
                voices.append(VoiceFile.read(path))
        return sorted(voices, key=lambda voice: voice.name.casefold())

    def find(self, name: str) -> VoiceFile | None:
        """The voice of this name; None if there is none. Raises InputError for a damaged file."""
        path = self._path(name)
        return VoiceFile.read(path) if path.exists() else None

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

    def _path(self, name: str) -> Path:
        """The file of a name: readable, and one only for each name, whatever its case."""
        name = checked_name(name).casefold()
        digest = hashlib.sha256(name.encode()).hexdigest()[:8]
        return self.folder / f"{slug(name) or 'voice'}-{digest}{SUFFIX}"
