"""One side of a comparison: how its takes are generated, and what two sides may differ in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

from dia_demo.config import SEED_LIMIT, GenerationParams, RuntimeConfig
from dia_demo.engine.family import ModelInfo
from dia_demo.errors import InputError
from dia_demo.services.take import Request, VoicePrompt
from dia_demo.services.voices.choice import add_voices
from dia_demo.services.voices.kept import KeptVoices
from dia_demo.text.pronunciations import NONE, Pronunciations
from dia_demo.voices import VOICE_FIELDS, VoiceNames

_PARAMS = tuple(param.name for param in fields(GenerationParams) if param.name != "seed")
_RUNTIME = ("model", "precision", "device")
_BESIDE = {"speed": float, "seed_shift": int, "normalise": bool, **dict.fromkeys(VOICE_FIELDS, str)}
_YES, _NO = ("yes", "true", "on", "1"), ("no", "false", "off", "0")
# Everything that a person may let two sides differ in, with its type.
SETTING_FIELDS: dict[str, type] = {
    **{
        param.name: type(param.default)
        for param in fields(GenerationParams)
        if param.name in _PARAMS
    },
    **_BESIDE,
    **dict.fromkeys(_RUNTIME, str),
}
# The field that is a list, of a person and not of a side.
LISTED = "pronunciations"
# The field of clips that were uploaded, which nobody can choose.
SYSTEM = "system"


@dataclass(frozen=True)
class Setting:
    """One side: how its takes are generated. params.seed is ignored. seed_shift: added to the seed
    of every pair, so that two sides can differ only in the seed. normalise, pronunciations: see
    `Request`; the list differs between sides only for two takes that exist already. voice_s1,
    voice_s2: names of kept voices or of the model's own, blank for those of the seed."""

    params: GenerationParams
    runtime: RuntimeConfig = field(default_factory=RuntimeConfig)
    speed: float = 1.0
    seed_shift: int = 0
    normalise: bool = False
    pronunciations: Pronunciations = NONE
    voice_s1: str = ""
    voice_s2: str = ""
    system: str = ""

    def values(self) -> dict[str, object]:
        """Every field that two sides can differ in with its value."""
        values = asdict(self.params) | asdict(self.runtime) | asdict(self)
        values[LISTED] = self.pronunciations.text
        return {name: values[name] for name in (*SETTING_FIELDS, LISTED, SYSTEM)}

    def change(self, changes: Mapping[str, Any]) -> Setting:
        """With some fields replaced. Raises InputError for an unknown field or unreadable value."""
        values = {name: _read(name, value) for name, value in changes.items()}
        params = {name: value for name, value in values.items() if name in _PARAMS}
        runtime = {name: value for name, value in values.items() if name in _RUNTIME}
        beside = {name: value for name, value in values.items() if name in _BESIDE}
        return replace(
            self,
            params=replace(self.params, **params),
            runtime=replace(self.runtime, **runtime),
            **beside,
        )

    def params_of(self, seed: int) -> GenerationParams:
        """The parameters of the take with this seed of the plan."""
        return replace(self.params, seed=(seed + self.seed_shift) % (SEED_LIMIT + 1))

    @property
    def voice_names(self) -> VoiceNames:
        """The chosen voices of S1 and S2, None for those of the seed."""
        return self.voice_s1 or None, self.voice_s2 or None

    def request(
        self, info: ModelInfo, script: str, seed: int, voice: VoicePrompt | None, kept: KeptVoices
    ) -> Request:
        """The request of one take. info: the model that `runtime` names. kept: the voices that may
        be chosen beside the model's own. Raises InputError for a voice that does not exist or does
        not fit."""
        request = Request(
            script,
            self.params_of(seed),
            info,
            self.runtime,
            voice,
            self.speed,
            normalise=self.normalise,
            pronunciations=self.pronunciations,
        )
        return add_voices(request, self.voice_names, kept)


def _read(name: str, value: Any) -> Any:
    kind = SETTING_FIELDS.get(name)
    if kind is None:
        raise InputError(f"No setting is called {name!r}: use {', '.join(SETTING_FIELDS)}.")
    if kind is bool:
        return _read_bool(name, value)
    if isinstance(value, bool) or (kind is str and not isinstance(value, str)):
        raise InputError(f"{name} cannot be {value!r}.")
    try:
        if kind is int and float(value) != int(float(value)):
            raise ValueError
        return int(float(value)) if kind is int else kind(value)
    except (TypeError, ValueError, OverflowError):
        expected = {int: "a whole number", float: "a number"}[kind]
        shown = "blank" if value in (None, "") else repr(value)
        raise InputError(f"{name} must be {expected}, not {shown}.") from None


def _read_bool(name: str, value: Any) -> bool:
    text = str(value).lower()
    if text not in (*_YES, *_NO):
        raise InputError(f"{name} must be yes or no, not {value!r}.")
    return text in _YES


def differences(settings: Sequence[Setting]) -> dict[str, tuple[object, ...]]:
    """The fields in which settings differ, each with the value of every setting."""
    table = [setting.values() for setting in settings]
    by_field = {name: tuple(row[name] for row in table) for name in table[0]}
    return {name: values for name, values in by_field.items() if len(set(values)) > 1}
