"""The models and voices that programs may name, with OpenAI's names for those of this app.

Clients come with names of OpenAI's models and voices built in, and some can send no others.
"""

from __future__ import annotations

import hashlib

from dia_demo.config import SEED_LIMIT
from dia_demo.engine.family import ModelInfo
from dia_demo.errors import InputError
from dia_demo.services.models import Models
from dia_demo.services.settings import Settings
from dia_demo.services.voices.kept import KeptVoices

# OpenAI's, and that of SillyTavern's Dia extension.
USUAL_MODELS = ("tts-1", "tts-1-hd", "gpt-4o-mini-tts", "dia")
OPENAI_VOICES = (
    "alloy", "ash", "ballad", "cedar", "coral", "echo", "fable", "marin", "nova", "onyx", "sage",
    "shimmer", "verse",
)  # fmt: skip
# The voice that the seed chooses.
NO_VOICE = ("", "default")
_SHOWN = 12


class Catalogue:
    """What programs may name."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.models = Models(settings.models, settings.runtime.model)

    def model_names(self) -> list[str]:
        """The models of this app, and the usual names."""
        return [*self.models, *USUAL_MODELS]

    def find_model(self, name: str) -> ModelInfo:
        """The model of a name; the usual names mean the model that the app was started with. Raises
        InputError for any other."""
        if name in USUAL_MODELS:
            return self.models.first
        if name in self.models:
            return self.models[name]
        raise InputError(
            f"There is no model {name[: _SHOWN * 5]!r} here. There are: "
            f"{', '.join(self.model_names())}."
        )

    def voice_names(self, owner: str = "") -> list[str]:
        """The kept voices of a person (see SpeechJob), those of the model, and OpenAI's names."""
        kept = KeptVoices.for_person(self._settings, owner).list()
        own = self.models.first.config.voices
        names = [voice.name for voice in kept]
        names += [voice.name for voice in own.voices] if own is not None else []
        return list(dict.fromkeys([*names, *OPENAI_VOICES]))

    def find_voice(self, name: str, info: ModelInfo, owner: str = "") -> str:
        """A voice as a job names it. OpenAI's names mean voices of the model; where it has none by
        name, the seed chooses (see `seed_of`). Raises InputError if there is none."""
        if name.casefold() in NO_VOICE:
            return ""
        kept = KeptVoices.for_person(self._settings, owner)
        own = () if info.config.voices is None else info.config.voices.voices
        if kept.find(name) is not None or any(
            voice.name.casefold() == name.casefold() for voice in own
        ):
            return name
        if name.casefold() in OPENAI_VOICES:
            drawn = [voice.name for voice in own if voice.is_drawn]
            return drawn[OPENAI_VOICES.index(name.casefold()) % len(drawn)] if drawn else ""
        known = self.voice_names(owner)
        more = f" and {len(known) - _SHOWN} more (/v1/audio/voices)" if len(known) > _SHOWN else ""
        raise InputError(
            f"There is no voice {name[:60]!r}. There are: {', '.join(known[:_SHOWN])}{more}."
        )


def seed_of(voice: str) -> int:
    """The seed that stands for a voice's name with a model without voices by name."""
    digest = hashlib.sha256(voice.casefold().encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8], "big") % (SEED_LIMIT + 1)
