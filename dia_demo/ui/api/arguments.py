"""The arguments of the endpoints for programs: their types, ranges, texts, and what they refuse.

gradio describes an endpoint by its components, so each argument and each answer is one, without
anything to show.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from inspect import Parameter, Signature
from typing import Any

import gradio as gr

from dia_demo.audio import FORMAT_LABELS, FORMAT_NAMES, SPEEDS, STORED_SUFFIX
from dia_demo.config import PARAMS, PRECISIONS, SEED_LIMIT
from dia_demo.engine.family import ModelInfo
from dia_demo.errors import InputError
from dia_demo.prompt.voice_file import LONGEST_NAME
from dia_demo.text.pronunciations import MAX_CHARACTERS, MAX_ENTRIES
from dia_demo.ui.generate import form
from dia_demo.ui.gradio_internals import Api, FileData

EXAMPLE = "[S1] Hello there. How are you? [S2] I am fine, thank you. [S1]"
_TYPES: dict[str, tuple[type, str]] = {
    "string": (str, "text"),
    "boolean": (bool, "true or false"),
}
_SHOWN_CHARACTERS = 60


def described(label: str, schema: dict, default: Any = None) -> Api:
    """An argument or an answer as a component. schema: JSON schema with a description."""
    # gradio shows this text beside the type of an argument.
    info: Any = schema | {"additional_description": schema["description"]}
    return Api(default, info, label)


@dataclass(frozen=True)
class Argument:
    """One argument. schema: JSON schema without the description; required: it has no default."""

    name: str
    label: str
    description: str
    schema: dict
    default: Any = None
    required: bool = False

    def component(self) -> Api:
        schema = self.schema | {"description": self.description}
        return described(self.label, schema, self.default)

    def checked(self, value: Any) -> Any:
        """The value, or the default for None. Raises InputError for another type.

        Numbers are checked where they are used, with the range of the model.
        """
        if value is None:
            if self.required:
                raise InputError(f"{self.name} is missing. {self.description}")
            return self.default
        if self.schema["type"] == "object":
            return _upload(self.name, value)
        allowed = self.schema.get("enum")
        kind, words = _TYPES.get(self.schema["type"], (object, ""))
        if not isinstance(value, kind):
            raise InputError(f"{self.name} must be {words}, not {_shown(value)}.")
        if allowed is not None and value not in allowed:
            raise InputError(
                f"{self.name} must be one of {', '.join(allowed)}, not {_shown(value)}."
            )
        return value


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…"


def _upload(name: str, value: Any) -> str:
    """The path of an uploaded file. gradio has checked the place of what is marked as its file."""
    path, meta = (value.get("path"), value.get("meta")) if isinstance(value, dict) else (None, None)
    checked = isinstance(meta, dict) and meta.get("_type") == "gradio.FileData"
    if not checked or not isinstance(path, str):
        raise InputError(
            f'{name} must be an uploaded audio file, handle_file("voice{STORED_SUFFIX}") in '
            f"Python, not {_shown(value)}."
        )
    return path


def arguments_of_generate(models: Sequence[ModelInfo], model: str, precision: str):
    """The arguments of "/generate", by their names: those of `form.FIELDS` and the format.

    model, precision: what the app was started with.
    """
    listed = [
        *_arguments_of_script(models, model),
        *(_sampling(name, models) for name in form.SAMPLING),
        Argument(
            "seed",
            "Seed",
            f"0 to {SEED_LIMIT:,}. The same seed with the same settings repeats a take; null or -1 "
            "is a random one.",
            {"type": "integer", "minimum": -1, "maximum": SEED_LIMIT},
        ),
        Argument(
            "speed",
            "Speed",
            f"{SPEEDS.low:g} to {SPEEDS.high:g}, without changing the pitch.",
            {"type": "number", "minimum": SPEEDS.low, "maximum": SPEEDS.high},
            1.0,
        ),
        Argument(
            "voice_prompt",
            "Voice prompt",
            f"5 to 10 s of speech whose voice the take continues: one of {FORMAT_LABELS}.",
            FileData.model_json_schema(),
        ),
        Argument(
            "precision",
            "Precision",
            "How weights are stored: auto is the fastest that is as good as float32 here.",
            {"type": "string", "enum": list(PRECISIONS)},
            precision,
        ),
        *_arguments_of_voices(),
        Argument(
            "xpu",
            "Intel XPU",
            "Run on an Intel GPU that passed its self-check (experimental).",
            {"type": "boolean"},
            False,
        ),
        Argument(
            "format",
            "Format",
            f"Format of the file: {FORMAT_LABELS}. Every one has the settings inside.",
            {"type": "string", "enum": list(FORMAT_NAMES)},
            STORED_SUFFIX.removeprefix("."),
        ),
    ]
    named = {argument.name: argument for argument in listed}
    names = [name for name in form.FIELDS if name != form.IN_PARTS]
    # Programs may pass arguments by position, so those of later parameters follow this one.
    names.insert(len(form.FIRST_FIELDS), "format")
    return {name: named[name] for name in names}


def _arguments_of_voices() -> list[Argument]:
    return [
        Argument(
            name,
            f"Voice of {name[-2:].upper()}",
            "A voice kept on the machine of the app, or one of the model's own by name; blank for "
            "one that the seed chooses.",
            {"type": "string", "maxLength": LONGEST_NAME},
            "",
        )
        for name in form.SPEAKERS
    ]


def arguments_of_check(models: Sequence[ModelInfo], model: str) -> dict[str, Argument]:
    """The arguments of "/check", by their names."""
    *listed, pronunciations = _arguments_of_script(models, model)
    listed += [_sampling("max_tokens", models), pronunciations]
    return {argument.name: argument for argument in listed}


def _arguments_of_script(models: Sequence[ModelInfo], model: str) -> list[Argument]:
    """The arguments that say what is spoken and by which model."""
    always = " and ".join(info.name for info in models if info.profile.normalises)
    return [
        Argument(
            "script",
            "Script",
            "What is spoken: [S1] and [S2] before each turn, sounds such as (laughs). For example "
            f"“{EXAMPLE}”",
            {"type": "string", "examples": [EXAMPLE]},
            required=True,
        ),
        Argument(
            "model", "Model", "One of those that /models lists.",
            {"type": "string", "enum": [info.name for info in models]}, model,
        ),
        Argument(
            "voice_transcript",
            "Text of the voice prompt",
            "The exact words of the voice prompt, with their speaker tags.",
            {"type": "string"},
            "",
        ),
        Argument(
            "normalise",
            "Write out numbers and symbols as words",
            "Write out numbers, abbreviations and signs for a model that otherwise reads what is "
            f"written; with {always} it is always done.",
            {"type": "boolean"},
            False,
        ),
        Argument(
            "pronunciations",
            "Pronunciations",
            "Words and how to say them, one a line: word = how to say it. At most "
            f"{MAX_ENTRIES} words.",
            {"type": "string", "maxLength": MAX_CHARACTERS},
            "",
        ),
    ]  # fmt: skip


def _sampling(name: str, models: Sequence[ModelInfo]) -> Argument:
    """A sampling parameter, whose range and default may depend on the model."""
    spec = PARAMS[name]
    ranges = {info.name: spec.range(info.config) for info in models}
    low, high = min(r.low for r in ranges.values()), max(r.high for r in ranges.values())
    texts = {f"{r.low:g} to {r.high:,g}" for r in ranges.values()}
    reach = (
        texts.pop()
        if len(texts) == 1
        else ", ".join(f"{r.low:g} to {r.high:,g} with {model}" for model, r in ranges.items())
    )
    defaults = ", ".join(
        f"{getattr(info.config.defaults, name):,g} with {info.name}" for info in models
    )
    return Argument(
        name,
        spec.label,
        f"{spec.help} Allowed: {reach}. Default: {defaults}.",
        {"type": "integer" if spec.is_whole else "number", "minimum": low, "maximum": high},
    )


def with_signature(work: Callable, arguments: Mapping[str, Argument]) -> Callable:
    """`work`, a function of a request and values, with the arguments in its signature: gradio reads
    their names and which are required from it."""
    kind = Parameter.POSITIONAL_OR_KEYWORD
    parameters = [Parameter("request", kind, annotation=gr.Request)]
    for name, argument in arguments.items():
        default = Parameter.empty if argument.required else argument.default
        parameters.append(Parameter(name, kind, default=default))
    work.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    return work
