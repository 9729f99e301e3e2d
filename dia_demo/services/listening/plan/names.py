"""Names of settings by their values, for results and tables."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from dia_demo.config import PARAMS
from dia_demo.services.listening.plan.setting import (
    LISTED,
    SETTING_FIELDS,
    SYSTEM,
    Setting,
    differences,
)
from dia_demo.voices import VOICE_FIELDS

# The label of each field that two sides can differ in.
LABELS: dict[str, str] = {
    name: PARAMS[name].label if name in PARAMS else name.replace("_", " ").capitalize()
    for name in (*SETTING_FIELDS, LISTED, SYSTEM)
} | {"normalise": "Text", "voice_s1": "Voice of S1", "voice_s2": "Voice of S2"}
# Values that are shown as words.
_TEXTS: dict[str, dict[object, str]] = {
    "normalise": {True: "in words", False: "as written"},
    **dict.fromkeys(VOICE_FIELDS, {"": "by the seed"}),
}
# More than these make a name too long to read.
_MOST_FIELDS = 3
_MOST_LISTED = 60  # characters


def setting_names(settings: Sequence[Setting]) -> tuple[str, ...]:
    """A name for each setting: "temperature 1.0", or every value in which the settings differ.

    If the models differ, only they are named, since each has its own defaults.
    """
    differing = differences(settings)
    if not differing:
        return "the first side", "the second side"
    models = differing.get("model", ())
    if len(set(models)) == len(settings):
        differing = {"model": models}
    few = dict(list(differing.items())[:_MOST_FIELDS])
    names = _join_columns(few)
    return names if len(set(names)) == len(names) else _join_columns(differing)


def _join_columns(differing: dict[str, tuple]) -> tuple[str, ...]:
    columns = [value_names(name, values) for name, values in differing.items()]
    return tuple(", ".join(row) for row in zip(*columns, strict=True))


def value_names(name: str, values: Sequence[object]) -> tuple[str, ...]:
    """Values of a field with its label: "temperature 0.2", "model Dia-1.6B-0626"."""
    return tuple(f"{label_in_sentence(LABELS[name])} {text}" for text in value_texts(name, values))


def value_texts(name: str, values: Sequence[object]) -> tuple[str, ...]:
    """Values of a field as text; for models the last part of the name, if that is unique."""
    if name == LISTED:
        return tuple(_shorten(str(value)) for value in values)
    texts = tuple(_TEXTS.get(name, {}).get(value, str(value)) for value in values)
    if name != "model":
        return texts
    short = tuple(Path(text).name for text in texts)
    return short if len(set(short)) == len(set(texts)) else texts


def _shorten(listed: str) -> str:
    """A list of words and how to say them on one line."""
    line = "; ".join(listed.splitlines()) or "none"
    return line if len(line) <= _MOST_LISTED else f"{line[:_MOST_LISTED]}…"


def label_in_sentence(label: str) -> str:
    """A label within a sentence: "temperature", but "CFG scale"."""
    return label if label[:2].isupper() else label[:1].lower() + label[1:]


def capitalize(name: str) -> str:
    """A name at the start of a sentence."""
    return name[:1].upper() + name[1:]
