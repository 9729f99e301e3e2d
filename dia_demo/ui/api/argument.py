"""One argument of an endpoint for programs: its description, and what it refuses.

gradio describes an endpoint by its components, so each argument and each answer is one, without
anything to show.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from inspect import Parameter, Signature
from typing import Any

import gradio as gr

from dia_demo.audio import STORED_SUFFIX
from dia_demo.errors import InputError
from dia_demo.ui.gradio_internals import Api

_TYPES: dict[str, tuple[type, str]] = {
    "string": (str, "text"),
    "boolean": (bool, "true or false"),
}
_SHOWN_CHARACTERS = 60


def make_api(label: str, schema: dict, default: Any = None) -> Api:
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
        return make_api(self.label, schema, self.default)

    def check(self, value: Any) -> Any:
        """The value, or the default for None. Raises InputError for another type.

        Numbers are checked where they are used, with the range of the model.
        """
        if value is None:
            if self.required:
                raise InputError(f"{self.name} is missing. {self.description}")
            return self.default
        if self.schema["type"] == "object":
            return _upload(self.name, value)
        if self.schema["type"] == "array":
            return _items(self.name, value, self.schema["items"]["type"])
        if self.schema["type"] in ("integer", "number") and len(repr(value)) > _SHOWN_CHARACTERS:
            raise InputError(f"{self.name} must be a number, not {_shortened_repr(value)}.")
        allowed = self.schema.get("enum")
        kind, words = _TYPES.get(self.schema["type"], (object, ""))
        if not isinstance(value, kind):
            raise InputError(f"{self.name} must be {words}, not {_shortened_repr(value)}.")
        if allowed is not None and value not in allowed:
            raise InputError(
                f"{self.name} must be one of {', '.join(allowed)}, not {_shortened_repr(value)}."
            )
        return value


def _shortened_repr(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…"


def _items(name: str, value: Any, kind: str) -> list:
    """A list of texts, or of objects with texts, numbers, true and false as values."""
    expected = {"string": "texts", "object": "objects"}[kind]
    values = value if isinstance(value, list) else [None]
    for item in values:
        if not (isinstance(item, str) if kind == "string" else isinstance(item, dict)):
            raise InputError(f"{name} must be a list of {expected}, not {_shortened_repr(value)}.")
        for key, one in item.items() if isinstance(item, dict) else ():
            if not isinstance(one, str | int | float) or len(str(one)) > _SHOWN_CHARACTERS:
                raise InputError(
                    f"{name}: {_shortened_repr(key)} cannot be {_shortened_repr(one)}."
                )
    return values


def _upload(name: str, value: Any) -> str:
    """The path of an uploaded file. gradio has checked the place of what is marked as its file."""
    path, meta = (value.get("path"), value.get("meta")) if isinstance(value, dict) else (None, None)
    checked = isinstance(meta, dict) and meta.get("_type") == "gradio.FileData"
    if not checked or not isinstance(path, str):
        raise InputError(
            f'{name} must be an uploaded audio file, handle_file("voice{STORED_SUFFIX}") in '
            f"Python, not {_shortened_repr(value)}."
        )
    return path


def checked_values(arguments: Mapping[str, Argument], values: tuple) -> dict[str, Any]:
    """The values by name. Raises InputError for a missing one and for one of the wrong type."""
    pairs = zip(arguments.values(), values, strict=True)
    return {argument.name: argument.check(value) for argument, value in pairs}


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
