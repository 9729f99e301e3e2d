"""Environment variables: read with their allowed values, and every mistake of them collected."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from dia_demo.errors import InputError


class Variables:
    """Reads variables; one that cannot be used becomes a mistake, and its default is used instead.

    An empty variable is one that is not set.
    """

    def __init__(self, env: Mapping[str, str]) -> None:
        self.env = env
        self.mistakes: list[str] = []

    def raise_mistakes(self) -> None:
        """Raise InputError with a line for every mistake, if there are any."""
        if self.mistakes:
            raise InputError("\n".join(self.mistakes))

    def check(self, check: Callable[[], object]) -> None:
        """Call `check`; the InputError that it raises is a mistake."""
        try:
            check()
        except InputError as error:
            self.mistakes.append(str(error))

    def text(self, name: str, default: str) -> str:
        """Any text."""
        return self.env.get(name) or default

    def choice(self, name: str, default: str, allowed: Sequence[str]) -> str:
        """One of the allowed texts."""
        text = self.text(name, default)
        if text in allowed:
            return text
        self.mistakes.append(f"{name} must be one of {', '.join(allowed)}, not {text!r}.")
        return default

    def whole(self, name: str, default: int, low: int, high: int = 1024) -> int:
        """A whole number from `low` to `high`."""
        text = self.text(name, "")
        if not text:
            return default
        number = int(text) if text.isascii() and text.isdigit() and len(text) < 20 else -1
        if low <= number <= high:
            return number
        self.mistakes.append(f"{name} must be a whole number from {low} to {high}, not {text!r}.")
        return default
