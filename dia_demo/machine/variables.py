"""Environment variables as the fields of a dataclass, validated by pydantic with our sentences.

A field is annotated with its type and, by a function of this module, with its variable. Annotations
are evaluated when variables are read: `--help` does not load pydantic.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any

from dia_demo.errors import InputError
from dia_demo.untrusted import ParseBy

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo


def read_variables(env: Mapping[str, str], *kinds: type) -> tuple:
    """A dataclass of each kind. Fields whose variables are not set have their defaults.

    Raises InputError with a line for every mistake, in the order of the fields.
    """
    from pydantic import TypeAdapter, ValidationError

    # A field without a variable would be read from one of its own name.
    env = {name: text for name, text in env.items() if name.isupper()}
    adapter = TypeAdapter(tuple[*kinds])  # type: ignore[valid-type]
    try:
        return adapter.validate_python([env] * len(kinds))
    except ValidationError as error:
        raise InputError("\n".join(str(one["ctx"]["error"]) for one in error.errors())) from None


def read_text(name: str, parse: Callable[[str], Any] = str) -> FieldInfo:
    """The text of a variable, as `parse` returns it."""
    from pydantic import Field

    field = Field(validation_alias=name)
    field.metadata.append(ParseBy(parse))
    return field


def read_choice(name: str, allowed: Collection[str]) -> FieldInfo:
    """One of the allowed texts."""

    def parse(text: str) -> str:
        if text not in allowed:
            raise InputError(f"{name} must be one of {', '.join(allowed)}, not {text!r}.")
        return text

    return read_text(name, parse)


def read_whole(name: str, low: int, high: int = 1024, unit: int = 1) -> FieldInfo:
    """A whole number from `low` to `high` of the unit."""

    def parse(text: str) -> int:
        if not text:
            raise InputError(f"{name} is empty: give it a number, or remove it.")
        number = int(text) if text.isascii() and text.isdigit() and len(text) < 20 else -1
        if not low <= number <= high:
            raise InputError(f"{name} must be a whole number from {low} to {high}, not {text!r}.")
        return number * unit

    return read_text(name, parse)
