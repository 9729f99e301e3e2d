"""When the words of a recording begin, by pocketsphinx."""

import numpy as np
import pytest

import dia_demo
from dia_demo.prompt import alignment
from dia_demo.prompt.alignment import align_words
from dia_demo.prompt.word_times import estimate_words, find_words

pytest.importorskip("pocketsphinx")
# With two names that no dictionary has, and a number of two words.
SCRIPT = (
    "[S1] Zephyrine Quillby rode the tram to Brixholm. Did she? [S2] Yes, in twenty-five minutes, "
    "and she came back before the sun was up."
)


@pytest.fixture(scope="module")
def takes():
    with dia_demo.load("nano", threads=1) as model:
        return [model.generate(SCRIPT, seed=seed) for seed in (1, 2, 3)]


def errors(takes, find):
    """Of the embedded voice, whose words have known times."""
    found = []
    for take in takes:
        words = find(SCRIPT, take.samples, take.sample_rate)
        assert [(word, f"S{speaker}") for word, _, speaker in words] == [
            (word.word, word.speaker) for word in take.words
        ]
        times = [at for _, at, _ in words]
        assert (
            times == sorted(times)
            and 0 <= times[0]
            and times[-1] <= len(take.samples) / take.sample_rate
        )
        found += [abs(at - word.start) for at, word in zip(times, take.words, strict=True)]
    return np.array(found)


def test_half_of_the_words_are_found_within_two_hundredths_of_a_second(takes):
    aligned = errors(takes, align_words)
    assert np.median(aligned) < 0.02 and np.percentile(aligned, 90) < 0.1
    assert np.percentile(aligned, 90) < np.percentile(errors(takes, estimate_words), 90) / 2


def test_what_has_no_letters_begins_where_the_word_before_ends(takes):
    take = takes[0]
    script = SCRIPT.replace("Did", "(laughs) — Did")
    words = align_words(script, take.samples, take.sample_rate)
    laugh, dash, did = words[7:10]
    assert [laugh[0], dash[0], did[0]] == ["(laughs)", "—", "Did"]
    assert words[6][1] < laugh[1] == dash[1] <= did[1]
    plain = align_words(SCRIPT, take.samples, take.sample_rate)
    assert [word for word in words if word not in (laugh, dash)] == list(plain)


@pytest.mark.parametrize("script", ["[S1] (laughs)", SCRIPT])
@pytest.mark.parametrize("wave", [np.zeros(16000, "f"), np.ones(20, "f")])
def test_where_no_words_are_heard_they_are_estimated(script, wave):
    assert align_words(script, wave, 16000) is None
    words, are_estimated = find_words(script, wave, 16000)
    assert are_estimated and words == estimate_words(script, wave, 16000)


def test_without_an_aligner_they_are_estimated(monkeypatch, takes):
    monkeypatch.setattr(alignment, "_new_decoder", lambda: None)
    take = takes[0]
    words, are_estimated = find_words(SCRIPT, take.samples, take.sample_rate)
    assert are_estimated and words == estimate_words(SCRIPT, take.samples, take.sample_rate)
