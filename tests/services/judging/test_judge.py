"""The judge of chunks: planted faults are found, takes as they should be are not blamed.

The figures of the embedded voice's own takes are those of `python -m tools.check_voices`.
"""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from dia_demo.engine.events import FinishReason
from dia_demo.services.judging import alignment
from dia_demo.services.judging.alignment import align
from dia_demo.services.judging.judge import Fault, judge
from tests.helpers.stand_ins.chunk_takes import (
    FPS,
    FRAMES_PER_BYTE,
    HOP,
    RATE,
    SCRIPT,
    chunk_take,
    frames_reading,
    take_of,
    with_frames,
)

TAKE = chunk_take()
SECONDS = len(TAKE.samples) / RATE - 0.4


def faults(take, seconds: float = SECONDS) -> set[Fault]:
    return set(judge(take, seconds, FPS).faults)


def frames(take) -> np.ndarray:
    return np.arange(len(take.codes))


@pytest.mark.parametrize("seed", range(10))
def test_a_take_as_it_should_be_has_no_fault(seed):
    verdict = judge(chunk_take(seed=seed), SECONDS, FPS)
    assert verdict.is_good and verdict.text == "good" and verdict.is_aligned
    assert 1 < verdict.words_per_second < 10


def test_the_last_word_is_cut():
    first, last = frames_reading(TAKE, "you.")
    cut = with_frames(TAKE, frames(TAKE)[: first + (last - first) // 3])
    assert Fault.CUT in faults(cut)


def test_noise_is_appended():
    rng = np.random.default_rng(1)
    noise = (0.05 * rng.standard_normal(RATE)).astype(np.float32)
    noise = np.concatenate([np.zeros(RATE // 5, np.float32), noise])
    places = np.append(TAKE.places, np.full(len(noise) // HOP, TAKE.places[-1]))
    noisy = np.concatenate([TAKE.samples, noise])
    assert Fault.NOISE in faults(replace(TAKE, samples=noisy, places=places))
    assert Fault.NOISE in faults(replace(TAKE, samples=noisy, places=None))


def test_a_line_is_dropped():
    first, last = frames_reading(TAKE, "How have you been?")
    assert Fault.SKIPPED in faults(with_frames(TAKE, np.delete(frames(TAKE), slice(first, last))))


def test_a_line_is_repeated():
    first, last = frames_reading(TAKE, "How have you been?")
    order = np.concatenate([frames(TAKE)[:last], frames(TAKE)[first:]])
    assert Fault.REPEATED in faults(with_frames(TAKE, order))


def test_a_short_error_of_the_place_is_no_fault():
    places = TAKE.places.copy()
    places[100:104] = TAKE.places[-1]
    places[200:203] = 0
    assert faults(replace(TAKE, places=places)) == set()


@pytest.mark.parametrize("places", [TAKE.places, None])
def test_a_take_is_too_fast_or_too_slow(places):
    fast = with_frames(TAKE, frames(TAKE)[np.arange(0, len(TAKE.codes), 2)])
    assert Fault.TOO_FAST in faults(replace(fast, places=None if places is None else fast.places))
    slow = with_frames(TAKE, np.repeat(frames(TAKE), 3))
    assert Fault.TOO_SLOW in faults(replace(slow, places=None if places is None else slow.places))


def test_silence_clipping_and_the_limit_are_faults():
    silent = take_of(np.zeros(RATE, np.float32), None, TAKE.text)
    assert faults(silent) == {Fault.SILENT}
    assert Fault.CLIPPED in faults(replace(TAKE, samples=np.clip(30 * TAKE.samples, -1, 1)))
    figures = replace(TAKE.figures, finish_reason=FinishReason.MAX_TOKENS)
    assert faults(replace(TAKE, figures=figures)) == {Fault.LIMIT}


def test_without_places_nothing_is_said_of_words():
    verdict = judge(replace(TAKE, places=None), SECONDS, FPS)
    assert verdict.is_good and not verdict.is_aligned


def test_every_word_has_the_frames_that_read_it():
    found = align(TAKE.text, 0, TAKE.places)
    words = SCRIPT.replace("[S1] ", "").replace("[S2] ", "").split()
    assert [TAKE.text[w.start : w.end].decode() for w in found.words] == words
    for word in found.words:
        reads = (TAKE.places >= word.start) & (TAKE.places < word.end)
        frames_of_it = np.flatnonzero(reads)
        assert len(frames_of_it) >= FRAMES_PER_BYTE * (word.end - word.start - 1)
        assert reads[word.first : word.last].sum() >= len(frames_of_it) - 4


def test_the_words_of_a_voice_prompt_are_not_aligned():
    said = len(b"\x01 Before.\n")
    take = take_of(TAKE.samples, TAKE.places + said, b"\x01 Before.\n" + TAKE.text, said)
    assert judge(take, SECONDS, FPS).is_good
    assert align(take.text, said, take.places).words[0].start == said + 2


def test_the_path_through_the_words_is_a_cheapest_one():
    random = np.random.default_rng(1)
    for _ in range(100):
        frames, words = random.integers(1, 5), random.integers(1, 5)
        costs = random.integers(0, 13, (frames, words))

        def cost_of(path, costs=costs):
            steps = np.diff([-1, *path, costs.shape[1]])
            unsaid = np.maximum(steps - 1, 0).sum()
            return costs[np.arange(len(path)), path].sum() + alignment._SKIPPED * unsaid

        possible = itertools.combinations_with_replacement(range(words), frames)
        path = alignment._path(costs)
        assert (np.diff(path) >= 0).all()
        assert cost_of(path) == min(map(cost_of, possible))
