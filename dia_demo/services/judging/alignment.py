"""When every word of a chunk is said, from the place in the text that each frame was read from.

Only a model that was taught to follow its text has such places (`Result.places`). They are those of
one attention head, frame by frame, and may be wrong for a while: the words are put on the frames in
their order, by dynamic programming, so that they agree with most of them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

_AROUND = 4
# A frame that was read from so many bytes outside a word costs no more than this.
_FARTHEST = 12
# What it costs that a word has no frame at all, in the same unit.
_SKIPPED = 6
_WORD = re.compile(rb"[^\s\x01\x02]+")
_LETTER = re.compile(rb"[\w(]")


@dataclass(frozen=True)
class AlignedWord:
    """A word of the text that the model reads: its bytes start to end, and its frames first to
    last, both without the end. Without frames (first == last) it was not said."""

    start: int
    end: int
    first: int
    last: int


@dataclass(frozen=True)
class Alignment:
    """The words of a chunk in order, and the place of every frame after removing short errors."""

    words: tuple[AlignedWord, ...]
    places: np.ndarray


def align(text: bytes, said: int, places: np.ndarray) -> Alignment:
    """The words of text[said:] on frames with these places (-1: of no place)."""
    known = steady_places(places)
    spans = [match.span() for match in _WORD.finditer(text, said) if _LETTER.search(match[0])]
    if not spans or not len(known):
        return Alignment((), known)
    path = _path(np.minimum(_distances(spans, known), _FARTHEST))
    order = np.arange(len(spans))
    edges = zip(np.searchsorted(path, order), np.searchsorted(path, order, "right"), strict=True)
    words = (
        AlignedWord(*span, int(first), int(last))
        for span, (first, last) in zip(spans, edges, strict=True)
    )
    return Alignment(tuple(words), known)


def steady_places(places: np.ndarray) -> np.ndarray:
    """The median place of the frames around each; added frames have that of the one before. So an
    error of up to _AROUND frames leaves no trace."""
    filled = places.astype(int)
    for number in np.flatnonzero(filled < 0):
        filled[number] = filled[number - 1] if number else 0
    if not len(filled):
        return filled
    windows = sliding_window_view(np.pad(filled, _AROUND, mode="edge"), 2 * _AROUND + 1)
    return np.median(windows, axis=1).astype(int)


def _distances(spans: list[tuple[int, int]], places: np.ndarray) -> np.ndarray:
    """How many bytes each frame's place is outside each word, [frames, words]. The space after a
    word belongs to it."""
    starts, ends = np.array(spans).T
    before = starts[None] - places[:, None]
    after = places[:, None] - ends[None]
    return np.maximum(np.maximum(before, after), 0)


def _path(costs: np.ndarray) -> np.ndarray:
    """The word of each frame so that the sum of costs [frames, words] is smallest, with the words
    in order."""
    frames, words = costs.shape
    order = np.arange(words)
    # What the best path to each word costs, less what all words before it would cost unsaid.
    totals = costs.copy()
    for frame in range(1, frames):
        before = totals[frame - 1]
        best = np.minimum.accumulate(before)
        totals[frame, 0] += before[0]
        totals[frame, 1:] += np.minimum(before[1:], best[:-1] - _SKIPPED)
    # From which word the path came: the same one, or the last of the best before it.
    best = np.minimum.accumulate(totals, axis=1)
    last_best = np.maximum.accumulate(np.where(totals == best, order, 0), axis=1)
    came = np.tile(order, (frames, 1))
    moves = totals[:-1, 1:] > best[:-1, :-1] - _SKIPPED
    came[1:, 1:][moves] = last_best[:-1, :-1][moves]
    word = int(totals[-1].argmin())
    path = np.empty(frames, int)
    for frame in range(frames - 1, -1, -1):
        path[frame] = word
        word = came[frame, word]
    return path
