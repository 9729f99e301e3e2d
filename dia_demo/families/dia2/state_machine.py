"""From actions to text: which tokens Dia2 reads next, as nari-labs/dia2 (runtime/state_machine.py).

The model decides when a word begins. Its tokens are then fed one at a time, on the main stream, and
those of a word some entries further on the second stream.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from dia_demo.families.dia2.script import Entry
from dia_demo.model.dia2.config import (
    ACTION_NEW_WORD,
    INITIAL_PADDING,
    MAX_PADDING,
    TextIds,
)


class StateMachine:
    """The text of one row.

    begun: the words that were begun, each with its step. end_step: the step that wanted a word when
    none was left. is_complete: no entries are added.
    """

    def __init__(self, entries: Iterable[Entry], ids: TextIds, second_stream_ahead: int) -> None:
        self.entries = deque(entries)
        self.begun: list[tuple[Entry, int]] = []
        self.end_step: int | None = None
        self.is_complete = True
        self._ids, self._ahead = ids, second_stream_ahead
        self._budget = self._forced = INITIAL_PADDING
        self._pending: deque[int] = deque()
        self._lookahead: deque[int] = deque()

    def step(self, step: int, action: int, is_forced: bool = False) -> tuple[int, int]:
        """The tokens of both streams after an action. is_forced: of a voice prompt, whose padding
        is known already."""
        is_new = self._allow(action in (ACTION_NEW_WORD, self._ids.new_word), is_forced)
        is_new = is_new and self._begin(step)
        pad, new_word = self._ids.pad, self._ids.new_word
        if not is_new:
            self._budget, self._forced = max(0, self._budget - 1), max(0, self._forced - 1)
            main = self._next(self._pending)
            if not self._ahead:
                return main, main
            # A word may have the token of a new word itself, if its tokenizer lacks another.
            if main != new_word:
                return main, self._next(self._lookahead)
        elif not self._ahead:
            return new_word, new_word
        return (self._pending.popleft() if self._pending else pad), new_word

    @property
    def needs_text(self) -> bool:
        """Whether the next step may begin a word, and which words follow is not known yet."""
        if self.is_complete or self._pending or self._forced > 0:
            return False
        return sum(bool(entry.tokens) for entry in self.entries) <= self._ahead

    def _allow(self, is_new: bool, is_forced: bool) -> bool:
        """Whether a new word begins, if the model wishes so or not."""
        if self._pending:
            return False
        if is_forced:
            return is_new
        if self._forced > 0:
            return False
        return is_new or self._budget <= 0

    def _begin(self, step: int) -> bool:
        """Begin the next entry; whether the second stream says that it is a word."""
        if not self.entries:
            is_first = self.end_step is None
            if is_first:
                self.end_step = step
            return is_first and self._ahead > 0
        entry = self.entries.popleft()
        if entry.tokens:
            self.begun.append((entry, step))
            self._pending.extend(entry.tokens)
            if self._ahead:
                self._lookahead.extend(self._tokens_ahead())
            self._budget = MAX_PADDING
        self._forced = entry.padding
        return bool(entry.tokens)

    def _tokens_ahead(self) -> tuple[int, ...]:
        """The tokens of the word so many words further."""
        words = [entry.tokens for entry in self.entries if entry.tokens]
        return words[self._ahead - 1] if len(words) >= self._ahead else ()

    def _next(self, tokens: deque[int]) -> int:
        return tokens.popleft() if tokens else self._ids.pad
