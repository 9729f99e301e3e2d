"""Pauses as long as the punctuation says, by repeating or leaving out silent frames.

A small model pauses as its training material did, always about equally long. The silence is found
and changed in the codes, so that a take's codes and its samples belong together, and what is played
while the take is generated is the take.
"""

from __future__ import annotations

from random import Random

import numpy as np

from dia_demo.config import SEED_LIMIT
from dia_demo.engine.turns.passages import ELLIPSIS, PARAGRAPH, Mark
from dia_demo.engine.turns.voices import TurnVoices

# Seconds, on average: within a turn, and between two turns after the mark that ends the first.
WITHIN_TURN = {
    ",": 0.2, ";": 0.33, ":": 0.33, ".": 0.46, "!": 0.5, "?": 0.54, ELLIPSIS: 0.66, PARAGRAPH: 0.7
}  # fmt: skip
BETWEEN_TURNS = {
    ",": 0.3, ";": 0.36, ":": 0.36, ".": 0.5, "!": 0.52, "?": 0.57, ELLIPSIS: 0.68, PARAGRAPH: 0.7
}  # fmt: skip
VARIATION = 0.12  # The share by which a pause is longer or shorter at most.
SHORTEST_RUN = 4  # Silent frames that are a pause. A closed consonant has fewer.
STOP_FRAMES = 9  # Of a pause after a sentence at least; after a comma there are fewer.
KEPT = 2  # Frames at either end of a silence that are never left out.
# How far from where it is expected a mark may be: a share of the characters so far, and characters.
SHARE_OFF, CHARACTERS_OFF = 0.25, 12


class Pauses:
    """The frames of one row, as they become known. first: the row's first new frame. added: by how
    many frames the pauses so far are longer. starts: the first frame of every turn, among those
    that `push` returns."""

    def __init__(self, turns: TurnVoices, seed: int, first: int, frames_per_second: float) -> None:
        self._turns, self._table, self._first = turns, turns.table, first
        self._rate = frames_per_second
        self._random = Random(SEED_LIMIT + 1 + seed)  # Not that of the voices.
        self._quiet = [np.array(codes) for codes in self._table.quiet]
        self._run: list[np.ndarray] = []
        self._count = 0
        self._used = (-1, 0)  # Passage, and characters of it up to the last mark with a pause.
        self.added = 0
        self.starts: list[int] = []

    def push(self, frames: np.ndarray, finish: bool) -> np.ndarray:
        """Add frames [n, C]; returns those that are final. finish: no others follow."""
        out = [frames[:0]]
        quiet = np.all([np.isin(frames[:, c], codes) for c, codes in enumerate(self._quiet)], 0)
        for frame, is_quiet in zip(frames, quiet, strict=True):
            if is_quiet:
                self._run.append(frame)
            else:
                out += [*self._ended_run(), frame[None]]
            self._count += 1
        if finish:
            out += [frame[None] for frame in self._run]
            self._run = []
        return np.concatenate(out)

    def _ended_run(self) -> list[np.ndarray]:
        """The silence before the current frame, as long as it is to be."""
        run, self._run = self._run, []
        start = self._count - len(run)
        turn = next((turn for turn in self._begun if start <= turn[0] < self._count), None)
        # Up to the first codes of a turn it may be changed.
        still = len(run) if turn is None else turn[0] - len(self._table.turn_start) - start
        seconds = self._seconds(start, len(run), turn) if still >= SHORTEST_RUN else None
        if seconds is not None:
            seconds *= 1 + VARIATION * (2 * self._random.random() - 1)
            length = still + round(seconds * self._rate) - len(run)
            run = [*self._of_length(run[:still], max(length, 2 * KEPT)), *run[still:]]
        if turn is not None:
            self.starts.append(turn[0] - len(self._table.turn_start) + self.added)
        return [frame[None] for frame in run]

    @property
    def _begun(self) -> list[tuple[int, int]]:
        """The mark's frame and the passage of each turn so far."""
        return [(frame - self._first, passage) for frame, passage in self._turns.begun]

    def _of_length(self, run: list[np.ndarray], length: int) -> list[np.ndarray]:
        """A silence changed in its middle."""
        self.added += length - len(run)
        if length < len(run):
            return [*run[: length // 2], *run[len(run) - (length - length // 2) :]]
        silence = np.array(self._table.silence, run[0].dtype)
        middle = len(run) // 2
        return [*run[:middle], *[silence] * (length - len(run)), *run[middle:]]

    def _seconds(self, start: int, length: int, turn: tuple[int, int] | None) -> float | None:
        """How long a silence is to be, in which `turn` may begin; None where it stays as it is."""
        before = [passage for frame, passage in self._begun if frame < start]
        if not before:
            return None
        now = before[-1]
        if turn is not None and turn[1] != now:
            return BETWEEN_TURNS[self._turns.passages[now].last_mark]
        began = next(frame for frame, passage in self._begun if passage == now)
        mark = self._mark_at(now, start - began, turn is not None or length >= STOP_FRAMES)
        return None if mark is None else WITHIN_TURN[mark.kind]

    def _mark_at(self, passage: int, frames: int, ends_sentence: bool) -> Mark | None:
        """The mark of a passage after so many frames, if there is one near."""
        said = (frames - self._table.frames(0, 1) / 2) / self._table.frames_per_character
        done = self._used[1] if self._used[0] == passage else 0
        marks = [
            mark
            for mark in self._turns.passages[passage].marks
            if mark.characters > done and mark.ends_sentence == ends_sentence
        ]
        mark = min(marks, key=lambda mark: abs(mark.characters - said), default=None)
        if mark is None or abs(mark.characters - said) > max(CHARACTERS_OFF, SHARE_OFF * said):
            return None
        self._used = passage, mark.characters
        return mark
