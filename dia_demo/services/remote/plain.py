"""Requests as plain values, which can be sent to another process, and the requests they mean there.

The other process has its own models, settings and folders; a voice travels with the request.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from dia_demo.config import PARAMS, GenerationParams
from dia_demo.engine.events import SpokenWord
from dia_demo.engine.family import ModelInfo
from dia_demo.errors import InputError
from dia_demo.prompt.codes import pack_codes, unpack_codes
from dia_demo.prompt.voice_file import WordTime
from dia_demo.services.scratch import work_folder
from dia_demo.services.settings import Settings
from dia_demo.services.take import Request, VoicePrompt
from dia_demo.text.pronunciations import Pronunciations

# In base64 it fits into a message of 16 MB, which servers accept.
MOST_AUDIO_BYTES = 11 * 10**6
_SUFFIX = re.compile(r"\.[a-z0-9]{1,8}")


@dataclass(frozen=True)
class PlainVoice:
    """A voice prompt: codes as `pack_codes` writes them, or an audio file in base64 and its suffix.
    The rest: see `VoicePrompt`."""

    codes: str = ""
    audio: str = ""
    suffix: str = ""
    transcript: str = ""
    has_own_words: bool = False
    codec: str = ""
    words: tuple[WordTime, ...] = ()
    are_words_estimated: bool = False

    @classmethod
    def from_voice(cls, voice: VoicePrompt) -> PlainVoice:
        """Raises InputError if its file cannot be read, or is too large."""
        rest = voice.transcript, voice.has_own_words, voice.codec
        if voice.codes is not None:
            words = tuple((word.word, word.seconds, word.speaker) for word in voice.words)
            return cls(pack_codes(voice.codes), "", "", *rest, words, voice.are_words_estimated)
        assert voice.audio is not None, "a prompt is audio or codes"
        try:
            data = voice.audio.read_bytes()
        except OSError as error:
            raise InputError(f"{voice.audio} cannot be read: {error.strerror}.") from error
        if len(data) > MOST_AUDIO_BYTES:
            raise InputError(
                f"The file of the voice prompt has {len(data) / 1e6:.0f} MB, and at most "
                f"{MOST_AUDIO_BYTES / 1e6:.0f} MB can be sent to the engine: shorten it, or save "
                "it in another format."
            )
        audio = base64.b64encode(data).decode("ascii")
        return cls("", audio, voice.audio.suffix.lower(), *rest)

    @property
    def key(self) -> str:
        """A hash of how it sounds: an engine that has read this voice has it ready."""
        return hashlib.sha256((self.codes or self.audio).encode("ascii")).hexdigest()[:16]

    def voice(self, folder: Path) -> VoicePrompt:
        """The prompt; its audio is written to `folder`. Raises InputError if it is damaged."""
        rest = self.transcript, self.has_own_words, self.codec
        if self.codes:
            words = tuple(SpokenWord(*word) for word in self.words)
            return VoicePrompt(
                None, unpack_codes(self.codes), *rest, words=words,
                are_words_estimated=self.are_words_estimated,
            )  # fmt: skip
        try:
            audio = base64.b64decode(self.audio, validate=True)
        except (binascii.Error, ValueError):
            raise InputError("The audio of the voice prompt is not base64.") from None
        suffix = self.suffix if _SUFFIX.fullmatch(self.suffix) else ""
        path = folder / f"{self.key}{suffix}"
        path.write_bytes(audio)
        return VoicePrompt(path, None, *rest)


@dataclass(frozen=True)
class PlainRequest:
    """See `Request`. params: all of them, by name. pronunciations: as `Pronunciations.text`."""

    script: str
    model: str
    params: Mapping[str, float]
    precision: str = "auto"
    voice: PlainVoice | None = None
    speed: float = 1.0
    with_audio: bool = True
    normalise: bool = False
    pronunciations: str = ""
    voices: tuple[str | None, str | None] = (None, None)

    @classmethod
    def from_request(cls, request: Request) -> PlainRequest:
        """Raises InputError for a request that only this machine could run."""
        if (device := request.runtime.device) != "cpu":
            raise InputError(f"The engine is another machine, whose {device!r} cannot be chosen.")
        assert request.more_text is None, "its engine takes whole requests"
        return cls(
            script=request.script,
            model=request.model.name,
            params=asdict(request.params),
            precision=request.runtime.precision,
            voice=None if request.voice is None else PlainVoice.from_voice(request.voice),
            speed=request.speed,
            with_audio=request.with_audio,
            normalise=request.normalise,
            pronunciations=request.pronunciations.text,
            voices=request.voices,
        )

    @property
    def voice_key(self) -> str:
        """See `PlainVoice.key`; "" without a voice prompt."""
        return "" if self.voice is None else self.voice.key

    def request(self, models: Mapping[str, ModelInfo], settings: Settings, folder: Path) -> Request:
        """What it means here; models: those that may be asked for. Raises InputError for what does
        not exist here."""
        if self.model not in models:
            raise InputError(
                f"The engine does not have the model {self.model!r}; it has "
                f"{', '.join(models)} (see DIA_MODELS there)."
            )
        info = models[self.model]
        return Request(
            script=self.script,
            params=_params(info, self.params),
            model=info,
            runtime=replace(settings.runtime, model=self.model, precision=self.precision),
            voice=None if self.voice is None else self.voice.voice(folder),
            speed=self.speed,
            with_audio=self.with_audio,
            normalise=self.normalise,
            pronunciations=Pronunciations.parse(self.pronunciations),
            voices=self.voices,
        )


def _params(info: ModelInfo, given: Mapping[str, Any]) -> GenerationParams:
    if unknown := sorted(given.keys() - PARAMS.keys()):
        raise InputError(f"{unknown[0]!r} is not a parameter; there are {', '.join(PARAMS)}.")
    return replace(info.config.defaults, **given).check(info.config)


@contextmanager
def requests_here(
    plain: Sequence[PlainRequest], models: Mapping[str, ModelInfo], settings: Settings
) -> Iterator[list[Request]]:
    """The requests that they mean here. The files of their voices exist until the block ends."""
    with work_folder(settings.takes_folder, "voices-") as folder:
        yield [each.request(models, settings, folder) for each in plain]
