"""A text that records the changes that any number of rules make to it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import groupby


@dataclass(frozen=True)
class Change:
    """Characters `start` to `end` of the original text, and what they became.

    `written` or `read` is empty where something was added or removed.
    """

    start: int
    end: int
    written: str
    read: str


class EditedText:
    """A text and where each of its characters comes from."""

    def __init__(self, original: str) -> None:
        self.original = original
        self.text = original
        # For each character of the text: the part of the original that it replaces, and whether it
        # differs from it.
        self._starts = list(range(len(original)))
        self._ends = list(range(1, len(original) + 1))
        self._changed = [False] * len(original)

    def sub(self, pattern: re.Pattern, replace: Callable[[re.Match], str]) -> None:
        """Like `re.sub`: every match of the current text becomes what `replace` returns."""
        matches = pattern.finditer(self.text)
        self.rewrite((*match.span(), replace(match)) for match in matches)

    def rewrite(self, edits: Iterable[tuple[int, int, str]]) -> None:
        """Replace parts of the current text. edits: begin, end and new text of each, in order."""
        text, starts, ends, changed, done = [], [], [], [], 0
        for begin, stop, new in edits:
            if new == self.text[begin:stop]:
                continue
            text += [self.text[done:begin], new]
            first, last = self._span(begin, stop)
            starts += [*self._starts[done:begin], *[first] * len(new)]
            ends += [*self._ends[done:begin], *[last] * len(new)]
            changed += [*self._changed[done:begin], *[True] * len(new)]
            done = stop
        if text:
            self.text = "".join([*text, self.text[done:]])
            self._starts = starts + self._starts[done:]
            self._ends = ends + self._ends[done:]
            self._changed = changed + self._changed[done:]

    def changes(self) -> tuple[Change, ...]:
        """What differs from the original, in order."""
        changes, at, done = [], 0, 0
        for changed, group in groupby(self._changed):
            stop = at + sum(1 for _ in group)
            if changed:
                after = self._starts[stop] if stop < len(self.text) else len(self.original)
                changes.append((done, after, self.text[at:stop]))
                done = after
            else:
                changes += self._removal_edits(at, stop, done)
                done = self._ends[stop - 1]
            at = stop
        if done < len(self.original):
            changes.append((done, len(self.original), ""))
        return tuple(
            Change(start, end, written, read)
            for start, end, read in changes
            if (written := self.original[start:end]) != read
        )

    def _span(self, begin: int, stop: int) -> tuple[int, int]:
        """The part of the original that characters `begin` to `stop` stand for."""
        if stop > begin:
            return self._starts[begin], self._ends[stop - 1]
        here = self._ends[begin - 1] if begin else 0
        return here, here

    def _removal_edits(self, at: int, stop: int, done: int) -> list[tuple[int, int, str]]:
        """What is missing before and between unchanged characters."""
        gaps = []
        for start, end in zip(self._starts[at:stop], self._ends[at:stop], strict=True):
            if start > done:
                gaps.append((done, start, ""))
            done = end
        return gaps
