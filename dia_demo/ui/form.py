"""The values of the Generate form: what they are, what they mean, what a reload restores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dia_demo.config import PARAMS, SEED_LIMIT, GenerationParams, RuntimeConfig, random_seed
from dia_demo.engine.family import ModelInfo
from dia_demo.errors import InputError
from dia_demo.services.take import Request, VoicePrompt
from dia_demo.text.pronunciations import MAX_CHARACTERS, Pronunciations
from dia_demo.voices import VOICE_FIELDS

# Parameters with a slider, in the order of the page.
SAMPLING = tuple(
    sorted((name for name, spec in PARAMS.items() if spec.step), key=lambda n: PARAMS[n].advanced)
)
# Also the order of the endpoint's arguments, which programs may pass by position: other parameters
# follow at the end.
FIRST_FIELDS = (
    "script",
    "temperature",
    "cfg_scale",
    "max_tokens",
    "top_p",
    "top_k",
    "seed",
    "speed",
    "voice_prompt",
    "voice_transcript",
    "model",
    "precision",
    "xpu",
    "normalise",
    "pronunciations",
)
# The longest text of a seed.
SEED_CHARACTERS = 40
# Only the page has it: what programs get is one take.
IN_PARTS = "in_parts"
FIELDS = (
    *FIRST_FIELDS,
    *VOICE_FIELDS,
    *(name for name in SAMPLING if name not in FIRST_FIELDS),
    IN_PARTS,
)
# Sound and words of a voice prompt: a reload brings both back, or neither.
VOICE = ("voice_prompt", "voice_transcript")
# The experimental toggle starts off every time.
REMEMBERED = tuple(name for name in FIELDS if name not in (*VOICE, "xpu"))
# What the script checker depends on.
CHECKED = ("script", "model", "max_tokens", *VOICE, "normalise", "pronunciations", IN_PARTS)


@dataclass(frozen=True)
class Form:
    """The values of the page's fields.

    sampling: by the names of SAMPLING. seed: None, blank or -1 for a random one. voice_prompt: the
    path of an upload. normalise: write the script out in words for a model that reads it as it is.
    pronunciations: words and how to say them, as `Pronunciations.parse` reads them. voice_s1,
    voice_s2: the names of the speakers' voices, blank for those that the seed chooses. in_parts:
    make a script that is too long for one take in parts.
    """

    script: str
    sampling: dict[str, Any]
    seed: str | float | None
    speed: float
    voice_prompt: str | None
    voice_transcript: str
    model: str
    precision: str
    xpu: bool
    normalise: bool
    pronunciations: str
    voice_s1: str | None
    voice_s2: str | None
    in_parts: bool

    @classmethod
    def from_values(cls, values: Sequence) -> Form:
        """From the values of FIELDS."""
        named = dict(zip(FIELDS, values, strict=True))
        return cls(sampling={name: named.pop(name) for name in SAMPLING}, **named)

    @property
    def voices(self) -> tuple[str, str]:
        """The chosen voices of S1 and S2, for `add_voices`."""
        return self.voice_s1 or "", self.voice_s2 or ""

    def to_request(self, info: ModelInfo, runtime: RuntimeConfig) -> Request:
        """The request for the services, but for the speakers' voices; what the page does not set is
        taken from `runtime`. info: the form's model.

        Raises InputError for an invalid seed, an unknown precision and a bad list.
        """
        voice = None
        if self.voice_prompt:
            voice = VoicePrompt.from_file(Path(self.voice_prompt), self.voice_transcript or "")
        params = GenerationParams(**self.sampling, seed=chosen_seed(self.seed))
        runtime = replace(
            runtime,
            model=info.name,
            precision=self.precision,
            device="xpu" if self.xpu else "cpu",
            # The page shows beside the toggle that the card is slower: turning it on insists.
            insist=self.xpu,
        )
        return Request(
            self.script or "",
            params,
            info,
            runtime,
            voice,
            self.speed,
            normalise=self.normalise is True,
            pronunciations=Pronunciations.parse(self.pronunciations or ""),
        )


def chosen_seed(seed: str | float | None) -> int:
    """The requested seed; a random one for blank and -1. Raises InputError for anything else."""
    text = "" if seed is None else str(seed).strip()
    if text in ("", "-1", "-1.0"):
        return random_seed()
    try:
        value = float(text)
        if value != int(value):
            raise ValueError
    except (ValueError, OverflowError):
        raise InputError(
            f"seed must be a whole number from 0 to {SEED_LIMIT}, or blank, not {text!r}."
        ) from None
    return int(value)


def defaults_of(info: ModelInfo) -> dict[str, float]:
    """The sampling settings a model asks for."""
    return {name: getattr(info.config.defaults, name) for name in SAMPLING}


def presets_of(info: ModelInfo) -> dict[str, dict[str, float]]:
    """The sampling settings of a model's presets, by name. Max tokens belongs to the script."""
    defaults = {name: value for name, value in defaults_of(info).items() if name != "max_tokens"}
    return {name: defaults | dict(preset) for name, preset in info.profile.presets.items()}


def preset_menu(info: ModelInfo, sampling: Mapping[str, Any]) -> dict[str, Any]:
    """The menu of a model's presets with the one that has these sampling settings, if one has.
    A model without presets has no menu. sampling: as typed."""
    presets = presets_of(info)
    chosen = (
        name
        for name, preset in presets.items()
        if all(sampling[key] == value for key, value in preset.items())
    )
    return {"choices": list(presets), "value": next(chosen, None), "visible": bool(presets)}


def slider_ends(info: ModelInfo) -> dict[str, tuple[float, float]]:
    """How far each slider reaches: as far as programs and the command line."""
    allowed = {name: PARAMS[name].range(info.config) for name in SAMPLING}
    return {name: (one.low, one.high) for name, one in allowed.items()}


def draft_of(info: ModelInfo, fields: Mapping[str, Any], pronunciations: Pronunciations) -> Request:
    """The request of a form that is being filled in, for what depends on its script and max tokens
    alone. fields: as typed."""
    return Request(
        fields["script"] or "",
        replace(info.config.defaults, max_tokens=int(fields["max_tokens"])),
        info,
        normalise=fields["normalise"] is True,
        pronunciations=pronunciations,
    )


def restored_values(saved: dict, ends: dict[str, tuple[float, float]]) -> dict:
    """The valid ones of the saved values, numbers within the ends of their sliders."""
    values = {name: saved[name] for name in REMEMBERED if name in saved}
    if not isinstance(values.get("normalise", False), bool):
        del values["normalise"]
    listed = values.get("pronunciations", "")
    if not isinstance(listed, str) or len(listed) > MAX_CHARACTERS:
        del values["pronunciations"]
    for name in VOICE_FIELDS:
        if not isinstance(values.get(name, ""), str):
            del values[name]
    for name, (low, high) in ends.items():
        value = values.pop(name, None)
        if isinstance(value, int | float) and not isinstance(value, bool) and value == value:
            values[name] = min(max(value, low), high)
    return values


def out_of_reach(saved: dict, ends: dict[str, tuple[float, float]]) -> dict[str, float]:
    """The saved numbers that `restored_values` moves to an end of their slider, with that end."""
    values = restored_values(saved, ends)
    return {name: values[name] for name in ends if name in values and values[name] != saved[name]}
