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
SHORTEST_RUN = 3  # Silent frames that are a pause, where a mark is read.
FARTHEST = 16  # Bytes from before a mark to the word after it.
KEPT = 2  # Frames at either end of a silence that are never left out.

_Frame = tuple[int, np.ndarray]  # Its number, -1 for an added one, and its codes.


class Pauses:
    """The frames of one row, as they become known. added: by how many frames the pauses so far are
    longer. starts: the first frame of every turn, among those that `push` returns. sources: of each
    frame returned so far, the number of the frame before this change; -1 for an added one."""

    def __init__(self, turns: TurnVoices, seed: int, frames_per_second: float) -> None:
        self._turns, self._table = turns, turns.table
        self._rate = frames_per_second
        self._random = Random(SEED_LIMIT + 1 + seed)  # Not that of the voices.
        # Whether a channel's code is a quiet one; the last column is for all codes beyond.
        quiet = [np.bincount(codes) > 0 for codes in self._table.quiet]
        self._is_quiet = np.zeros((len(quiet), 1 + max(map(len, quiet))), bool)
        for channel, codes in enumerate(quiet):
            self._is_quiet[channel, : len(codes)] = codes
        self._run: list[_Frame] = []
        self._count = 0
        self.added = 0
        self.starts: list[int] = []
        self.sources: list[int] = []

    def push(self, frames: np.ndarray, finish: bool) -> np.ndarray:
        """Add frames [n, C]; returns those that are final. finish: no others follow."""
        out: list[_Frame] = []
        channels, size = self._is_quiet.shape
        codes = np.minimum(frames[:, :channels], size - 1)
        quiet = self._is_quiet[np.arange(channels), codes].all(1)
        for frame, is_quiet in zip(frames, quiet, strict=True):
            if is_quiet:
                self._run.append((self._count, frame))
            else:
                out += [*self._ended_run(), (self._count, frame)]
            self._count += 1
        if finish:
            out += self._run
            self._run = []
        self.sources += [number for number, _ in out]
        return np.concatenate([frames[:0], *[frame[None] for _, frame in out]])

    def _ended_run(self) -> list[_Frame]:
        """The silence before the current frame, as long as it is to be."""
        run, self._run = self._run, []
        first = self._count - len(run)
        start = next((s for s, _ in self._turns.begun if first <= s < self._count), None)
        # Up to the first codes of a turn it may be changed.
        still = len(run) if start is None else start - first
        mark = self._find_mark(first) if len(run) >= SHORTEST_RUN else None
        if mark is not None:
            seconds = (BETWEEN_TURNS if mark.ends_turn else WITHIN_TURN)[mark.kind]
            seconds *= 1 + VARIATION * (2 * self._random.random() - 1)
            length = still + round(seconds * self._rate) - len(run)
            run = [*self._resize(run[:still], max(length, min(still, 2 * KEPT))), *run[still:]]
        if start is not None:
            self.starts.append(start + self.added)
        return run

    def _resize(self, run: list[_Frame], length: int) -> list[_Frame]:
        """A silence changed in its middle."""
        self.added += length - len(run)
        if length < len(run):
            return [*run[: length // 2], *run[len(run) - (length - length // 2) :]]
        silence = (-1, np.array(self._table.silence, np.int16))
        middle = len(run) // 2
        return [*run[:middle], *[silence] * (length - len(run)), *run[middle:]]

    def _find_mark(self, first: int) -> Mark | None:
        """The mark that is read in the silence from frame `first` up to the current one: the last
        whose word is read by its end and not before."""
        before, after = self._turns.places[first], self._turns.places[self._count]
        passed = [mark for mark in self._turns.punctuation if before < mark.word <= after]
        return passed[-1] if passed and after - before <= FARTHEST else None
