"""Scripts of everyday sentences, drawn by a number: most of them are left out of training."""

from __future__ import annotations

from random import Random

from dia_demo.services.measurements.words import SENTENCES
from training.voice.corpus.heldout import NATURAL

TURNS = 40
# The sentences of a turn in turn: 1.5 on average, about three minutes for 40 turns.
_PER_TURN = (1, 2)
_ALL = [*NATURAL, *SENTENCES]


def turns(number: int, count: int = TURNS) -> list[list[str]]:
    """The sentences of each turn; none is in a script twice."""
    draw = Random(1000 + number)
    drawn = iter(draw.sample(_ALL, min(len(_ALL), max(_PER_TURN) * count)))
    return [[next(drawn) for _ in range(_PER_TURN[k % len(_PER_TURN)])] for k in range(count)]


def dialogue(number: int, count: int = TURNS) -> str:
    """S1 and S2 in turn."""
    lines = turns(number, count)
    return " ".join(f"[S{1 + k % 2}] {' '.join(line)}" for k, line in enumerate(lines))


def monologue(number: int, sentences: int) -> str:
    """S1 alone."""
    return "[S1] " + " ".join(Random(2000 + number).sample(NATURAL, sentences))
