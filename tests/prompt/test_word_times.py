"""When the words of a recording are said, from its pauses and the lengths of its words."""

import numpy as np
import pytest

import dia_demo
from dia_demo.prompt.word_times import estimate_words

RATE = 16000


def sound(*pieces):
    """Noise and silence in turn: so many seconds of each."""
    random = np.random.default_rng(0)
    return np.concatenate(
        [
            0.1 * random.standard_normal(round(seconds * RATE)) * (number % 2 == 0)
            for number, seconds in enumerate(pieces)
        ]
    ).astype(np.float32)


def test_pauses_fall_on_the_ends_of_clauses():
    wave = sound(0.5, 0.4, 1.0, 0.3, 0.5)
    words = estimate_words("[S1] Hello, there you all are. [S2] Hello!", wave, RATE)
    assert [word for word, _, _ in words] == ["Hello,", "there", "you", "all", "are.", "Hello!"]
    assert [speaker for _, _, speaker in words] == [1, 1, 1, 1, 1, 2]
    times = [at for _, at, _ in words]
    assert times == sorted(times)
    assert [times[0], times[1], times[5]] == pytest.approx([0.0, 0.9, 2.2], abs=0.02)


def test_a_pause_without_punctuation_is_where_the_lengths_say():
    wave = sound(1.0, 0.5, 0.25)
    words = estimate_words("[S1] This is a rather long beginning and end", wave, RATE)
    assert words[-2][0] == "and" and words[-2][1] == pytest.approx(1.5, abs=0.02)


@pytest.mark.parametrize("wave", [np.zeros(RATE, "f"), sound(0.02), np.ones(2 * RATE, "f")])
def test_any_sound_gives_every_word_a_time_within_it(wave):
    words = estimate_words("[S1] One two (laughs) three: four — five.", wave, RATE)
    assert [word for word, _, _ in words] == "One two (laughs) three four — five.".split()
    assert all(0 <= at <= len(wave) / RATE for _, at, _ in words)


def test_most_words_of_the_embedded_voice_are_found_within_a_fifth_of_a_second():
    """Its words have known times. Half of them would be 0.13 s off if they were spread evenly."""
    script = "[S1] Well, I do not know. Maybe we should ask her first? She was here all day."
    with dia_demo.load("nano", threads=1) as model:
        takes = [model.generate(script, seed=seed) for seed in (1, 2, 3)]
    errors = []
    for take in takes:
        estimated = estimate_words(script, take.samples, take.sample_rate)
        assert [word for word, _, _ in estimated] == [word.word for word in take.words]
        errors += [
            abs(at - word.start) for (_, at, _), word in zip(estimated, take.words, strict=True)
        ]
    assert np.median(errors) < 0.1 and np.percentile(errors, 90) < 0.25
