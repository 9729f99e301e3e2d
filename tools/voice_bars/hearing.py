"""What an independent recogniser hears, and which lines of a script that is.

The recogniser was not trained on these voices and mishears a word in ten: a line counts as said if
most of its letters are heard in its place, and as said twice if that is heard once more.
"""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher
from functools import lru_cache

import numpy as np

from dia_demo.services.measurements.words import SAMPLE_RATE, Recogniser
from dia_demo.services.measurements.words import words as words_of

# A pause between two pieces that are recognised on their own, and the level of silence.
PAUSE_SECONDS, SILENT_DB = 0.25, -50.0
STEP_SECONDS = 0.010
# The share of a line's letters that are heard where it was said.
SAID = 0.5


@lru_cache(1)
def recogniser() -> Recogniser:
    """The one of this process."""
    return Recogniser()


def is_loud(samples: np.ndarray, rate: int) -> np.ndarray:
    """Of every 10 ms, whether there is sound."""
    step = round(STEP_SECONDS * rate)
    pieces = samples[: len(samples) // step * step].astype(np.float64).reshape(-1, step)
    return 10 * np.log10(np.maximum(np.square(pieces).mean(1), 1e-12)) > SILENT_DB


def cut_at_pauses(samples: np.ndarray, rate: int) -> list[np.ndarray]:
    """The sound between long pauses."""
    loud = np.flatnonzero(is_loud(samples, rate))
    if not len(loud):
        return []
    step = round(STEP_SECONDS * rate)
    ends = np.flatnonzero(np.diff(loud) * STEP_SECONDS >= PAUSE_SECONDS)
    firsts, lasts = [loud[0], *loud[ends + 1]], [*loud[ends], loud[-1]]
    return [
        samples[first * step : (last + 1) * step] for first, last in zip(firsts, lasts, strict=True)
    ]


def hear(samples: np.ndarray, rate: int) -> str:
    """The words in a piece of sound."""
    if rate != SAMPLE_RATE:
        import soxr

        samples = soxr.resample(samples, rate, SAMPLE_RATE)
    return recogniser().hear(samples)


def hear_pieces(samples: np.ndarray, rate: int) -> str:
    """The words in long sound, pause by pause, so that its length makes no difference."""
    return " ".join(hear(piece, rate) for piece in cut_at_pauses(samples, rate))


def lines_said(lines: Sequence[str], heard: str) -> list[int]:
    """How often each line was said, in order: 0 where it was left out, 2 where it is heard again.

    The heard words are put on the words of all lines in order, at the least cost; what then belongs
    to no word is compared with the lines around it.
    """
    said = words_of(heard)
    expected = [(word, number) for number, line in enumerate(lines) for word in words_of(line)]
    partners = _align([word for word, _ in expected], said)
    found = [0] * len(lines)
    for number, line in enumerate(lines):
        mine = [k for k, (_, of) in enumerate(expected) if of == number]
        matched = [said[partners[k]] for k in mine if partners[k] is not None]
        found[number] = int(_likeness(words_of(line), matched) >= SAID)
    for number in _repeated_lines(lines, expected, said, partners):
        found[number] += 1
    return found


def _repeated_lines(
    lines: Sequence[str],
    expected: Sequence[tuple[str, int]],
    said: Sequence[str],
    partners: Sequence[int | None],
):
    """The lines of which most is heard once more in the words that belong to none."""
    used = {at for at in partners if at is not None}
    run: list[int] = []
    for at in range(len(said) + 1):
        if at < len(said) and at not in used:
            run.append(at)
            continue
        if run:
            earlier = [of for (_, of), at_of in zip(expected, partners, strict=True)
                       if at_of is not None and at_of < run[0]]  # fmt: skip
            here = max(earlier, default=0)
            extra = [said[k] for k in run]
            for number in (here - 1, here, here + 1):
                near = 0 <= number < len(lines)
                if near and _likeness(words_of(lines[number]), extra) >= SAID:
                    yield number
                    break
        run = []


def _likeness(words: Sequence[str], heard: Sequence[str]) -> float:
    """The share of the letters of these words that are in the heard ones, in order."""
    wanted, found = "".join(words), "".join(heard)
    matcher = SequenceMatcher(None, wanted, found, autojunk=False)
    return sum(block.size for block in matcher.get_matching_blocks()) / max(1, len(wanted))


@lru_cache(100_000)
def _unlike(one: str, other: str) -> float:
    """The cost of hearing one word for another: 0 to 1.2, more than leaving one of them out."""
    if one == other:
        return 0.0
    return 1.2 * (1 - SequenceMatcher(None, one, other, autojunk=False).ratio())


def _align(expected: Sequence[str], said: Sequence[str]) -> list[int | None]:
    """For each expected word the place of the heard one, or None; by edit distance."""
    gap = 0.7
    cost = np.zeros((len(expected) + 1, len(said) + 1))
    cost[:, 0], cost[0] = gap * np.arange(len(expected) + 1), gap * np.arange(len(said) + 1)
    for i, word in enumerate(expected, 1):
        for j, other in enumerate(said, 1):
            both = cost[i - 1, j - 1] + _unlike(word, other)
            cost[i, j] = min(both, cost[i - 1, j] + gap, cost[i, j - 1] + gap)
    partners: list[int | None] = [None] * len(expected)
    i, j = len(expected), len(said)
    while i and j:
        if cost[i, j] == cost[i - 1, j - 1] + _unlike(expected[i - 1], said[j - 1]):
            partners[i - 1] = j - 1
            i, j = i - 1, j - 1
        elif cost[i, j] == cost[i - 1, j] + gap:
            i -= 1
        else:
            j -= 1
    return partners
