"""Seeds that draw the same voices: a chunk is made again without its speakers changing."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, count, islice
from math import floor
from random import Random

from dia_demo.config import SEED_LIMIT, ModelConfig


def seeds_like(config: ModelConfig, seed: int, number: int) -> tuple[int, ...]:
    """`seed` and others, `number` in all.

    Of a model with voices by name all draw the same ones, beside a voice prompt too: a draw is
    which of n equal parts of 0 to 1 the seed's random number is in (dia_demo/voices.py), and here
    it is the same part for every n. Other models get their voices from a prompt.
    """
    later: Iterator[int] = (value % (SEED_LIMIT + 1) for value in count(seed + 1))
    if config.voices is not None:
        later = _seeds_in_same_parts(
            later, seed, {len(config.voices.pairs), *range(1, len(config.voices.voices) + 1)}
        )
    return tuple(islice(chain([seed], later), number))


def _seeds_in_same_parts(seeds: Iterator[int], seed: int, sizes: set[int]) -> Iterator[int]:
    drawn = Random(seed).random()
    low = max(floor(drawn * size) / size for size in sizes)
    high = min((floor(drawn * size) + 1) / size for size in sizes)
    parts = [int(drawn * size) for size in sizes]
    for other in seeds:
        value = Random(other).random()
        if low <= value < high and [int(value * size) for size in sizes] == parts:
            yield other
