"""The question of a comparison: which two values of a setting are worth comparing at first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dia_demo.config import PARAMS, PRECISIONS
from dia_demo.engine.family import ModelInfo
from dia_demo.ui.compare.form.fields import MENUS
from dia_demo.ui.form import slider_ends
from dia_demo.ui.voices.layout import BY_SEED
from dia_demo.voices import VOICE_FIELDS

# Two values that sound different, of settings that no model has a default of.
_PAIRS: dict[str, tuple[Any, Any]] = {
    "speed": (1.0, 1.2),
    "seed_shift": (0, 1),
    "precision": ("float32", "int8"),
    "normalise": ("no", "yes"),
}
# How far the second value is from the lower end of the slider, as a factor of the first's distance:
# up from the lowest tenth of the slider, and otherwise down.
_UP, _DOWN, _LOWEST = 2.5, 1 / 1.5, 0.1
# The question by kind: its words before, between and after the values.
WORDS = {
    "preference": ("Which sounds better:", "or", "?"),
    "abx": ("Can you hear the difference:", "or", "?"),
    "round": ("Which sounds best:", "", "?"),
    "sighted": ("Side by side:", "and", ""),
}


def default_values(name: str, side: dict, models: Sequence[ModelInfo]) -> tuple[Any, Any]:
    """Two values of a setting to begin with: that of a side's fields and one that should sound
    different."""
    if name == "model":
        others = [info for info in models if info.name != side["model"]]
        others.sort(key=lambda info: not info.is_recommended)
        # Where there is only one model, the plan says that the two are the same.
        return side["model"], others[0].name if others else side["model"]
    if name in _PAIRS:
        return _PAIRS[name]
    (info,) = (info for info in models if info.name == side["model"])
    if name in VOICE_FIELDS:
        return _two_voices(info, side[name])
    value = side[name]
    low, high = slider_ends(info)[name]
    distance, span = value - low, high - low
    if distance >= _LOWEST * span:
        other = low + distance * _DOWN
    else:
        other = low + (distance * _UP or _LOWEST * span)
    return value, snap_to_step(name, other)


def _two_voices(info: ModelInfo, chosen: str) -> tuple[str, str]:
    """Two of a model's own voices that are easily told apart, or the chosen one and one of them;
    blank for a model without any."""
    table = info.config.voices
    if table is None:
        return chosen, ""
    first = next((voice for voice in table.voices if voice.name == chosen), table.voices[0])
    others = (voice.name for voice in table.voices if table.are_apart(first, voice))
    return chosen or first.name, next(others, "")


def snap_to_step(name: str, value: float) -> float:
    """A value of a parameter as its slider could give it."""
    spec = PARAMS[name]
    assert spec.step is not None, "only parameters with a slider are compared"
    stepped = round(value / spec.step) * spec.step
    return int(stepped) if spec.is_whole else round(stepped, 4)


def round_values(name: str, first: Any, second: Any) -> str:
    """The values of a round to begin with: both and the one between them."""
    if name in MENUS or name == "seed_shift":
        return f"{first}, {second}"
    middle = (first + second) / 2
    middle = snap_to_step(name, middle) if name in PARAMS else middle
    return ", ".join(map(str, sorted({first, middle, second})))


def menu_choices(
    name: str, models: Sequence[ModelInfo], kept: Sequence[str] = ()
) -> list[tuple[str, str]]:
    """The choices of a menu, each with its label. kept: the names of kept voices."""
    if name in VOICE_FIELDS:
        tables = [info.config.voices for info in models if info.config.voices is not None]
        own = [voice.name for table in tables for voice in table.voices]
        return [(BY_SEED, ""), *((voice, voice) for voice in dict.fromkeys((*kept, *own)))]
    if name == "model":
        return [(info.title, info.name) for info in models]
    if name == "precision":
        return [(precision, precision) for precision in PRECISIONS]
    return [("as written", "no"), ("in words", "yes")]


def all_choices(models: Sequence[ModelInfo]) -> list[tuple[str, str]]:
    """The choices of every menu."""
    return [choice for name in MENUS for choice in menu_choices(name, models)]
