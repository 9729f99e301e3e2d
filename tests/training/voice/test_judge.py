"""The measures of a voice: its melody, its rumble, and who it is. pyworld is not needed here."""

from types import SimpleNamespace

import numpy as np
import pytest

from dia_demo.checkpoint_config import read_model_config
from tests.helpers.models.known import EMBEDDED_FOLDER
from training.voice.corpus import heldout
from training.voice.judge import codec_gate, intonation, measures, speakers, trials, voice_trials
from training.voice.judge.speakers import Traits
from training.voice.judge.voice_trials import Measured
from training.voice.teacher.phones import SAMPLE_RATE

SECONDS = np.arange(SAMPLE_RATE) / SAMPLE_RATE


def hertz(semitones) -> np.ndarray:
    return 100 * 2 ** (np.asarray(semitones) / 12)


def test_the_deviation_is_that_within_a_sentence():
    """Two level sentences, an octave apart, have none."""
    assert intonation.deviation([hertz([0.0] * 9), hertz([12.0] * 9)]) == pytest.approx(0)
    moving = np.array([*hertz([-2.0, 2.0] * 8), 0, 0])  # 0 Hz: unvoiced
    assert intonation.deviation([moving]) == pytest.approx(2)
    assert intonation.deviation([np.zeros(5)]) == 0


def test_two_levels_hold_everything_wherever_they_lie():
    for base in (0.0, 0.24, 0.5, 0.99):
        levels = hertz(np.repeat([base, base + 4], 50))
        assert intonation.two_steps([levels]) == 1
    assert intonation.two_steps([np.zeros(5)]) == 1


def test_a_melody_spreads_over_the_semitones():
    glide = hertz(np.linspace(-4, 4, 400))
    assert intonation.two_steps([glide]) == pytest.approx(2 / 8, abs=0.01)
    level = hertz(np.concatenate([np.linspace(-4, 4, 40), np.zeros(60)]))
    assert intonation.two_steps([level]) > 0.6


def test_jitter_about_a_semitones_edge_is_one_step():
    pitch = hertz(1 + 0.05 * np.sin(np.arange(300)))
    spread = hertz(np.linspace(3, 9, 300))
    assert intonation.two_steps([np.append(pitch, spread)]) >= 0.5 + 0.5 / 6 - 0.02


@pytest.mark.parametrize(("decibels", "offset"), [(-10, False), (-30, False), (-20, True)])
def test_rumble_is_what_lies_below_50_hz(decibels, offset):
    amplitude = 10 ** (decibels / 20)
    voice = np.sin(2 * np.pi * 220 * SECONDS)
    low = (
        np.full_like(SECONDS, amplitude / 2**0.5)
        if offset
        else amplitude * np.sin(2 * np.pi * 31 * SECONDS)
    )
    total = 10 * np.log10(1 + amplitude**2)
    assert intonation.rumble([voice + low]) == pytest.approx(decibels - total, abs=0.05)
    assert intonation.rumble([voice]) < -60


def voices(spread: float, seed: int = 1) -> dict[str, list[Traits]]:
    """Twelve takes of eight voices: two pitches, four envelopes."""
    generator = np.random.default_rng(seed)
    shapes = np.random.default_rng(0).normal(0, 1, (4, speakers.BANDS))
    return {
        f"{pitch} {k}": [
            Traits(
                pitch + spread * generator.normal(),
                shape + spread * generator.normal(0, 1, speakers.BANDS),
            )
            for _ in range(12)
        ]
        for pitch in (0, 6)
        for k, shape in enumerate(shapes)
    }


def share_identified(known, takes) -> float:
    found = [speakers.identify(t, known) == name for name, each in takes.items() for t in each]
    return float(np.mean(found))


def test_eight_voices_are_told_apart_by_pitch_with_envelope():
    known = speakers.profiles(voices(0.3))
    assert share_identified(known, voices(0.3, seed=2)) == 1
    same_pitch = {
        name: [Traits(0.0, t.envelope) for t in each] for name, each in voices(0.3, 2).items()
    }
    assert share_identified(known, same_pitch) == 0.5
    same_envelope = {
        name: [Traits(t.pitch, each[0].envelope * 0) for t in each]
        for name, each in voices(0.3, 2).items()
    }
    assert share_identified(known, same_envelope) <= 0.5


def test_voices_that_differ_less_than_their_takes_are_confused():
    known = speakers.profiles(voices(6.0))
    assert share_identified(known, voices(6.0, seed=2)) < 0.9


def test_nobody_speaks_in_silence():
    assert speakers.identify(None, speakers.profiles(voices(0.3))) is None


@pytest.mark.long
def test_the_envelope_follows_the_formants_whatever_the_level():
    generator = np.random.default_rng(4)

    def spoken(formant: float) -> np.ndarray:
        spectrum = np.fft.rfft(generator.normal(0, 1, SAMPLE_RATE))
        frequency = np.fft.rfftfreq(SAMPLE_RATE, 1 / SAMPLE_RATE)
        return np.fft.irfft(spectrum * (0.05 + np.exp(-(((frequency - formant) / 300) ** 2))))

    low, high = spoken(800), spoken(2500)
    centre = [int(speakers.envelope(wave).argmax()) for wave in (low, high)]
    assert centre[0] < centre[1] - 8
    assert speakers.envelope(0.1 * low) == pytest.approx(speakers.envelope(low), abs=0.02)
    assert len(speakers.envelope(low[:300])) == speakers.BANDS, "shorter than a frame"


def take(recognised: str, f0, wave) -> Measured:
    return Measured("one two three four", recognised, np.asarray(f0), None, wave)


def test_the_word_error_is_that_of_each_voice():
    takes = {
        "clear": [take("one two three four", [0], SECONDS)] * 3,
        "dull": [take("one two three for", [0], SECONDS)] * 3,
    }
    taught = dict.fromkeys(takes, takes["clear"])
    mean, worst = voice_trials.word_lines(takes, taught)
    assert (mean.value, mean.met, mean.teacher) == (pytest.approx(0.125), False, 0)
    assert (worst.value, worst.voice, worst.met) == (0.25, "dull", False)
    good = list(voice_trials.word_lines({"clear": takes["clear"]}, taught))
    assert [line.met for line in good] == [True, True]


def test_what_is_said_after_a_prompt_is_no_part_of_it():
    """And the sentences are spread over all of them."""
    step = len(voice_trials.PROMPTED) // voice_trials.PROMPTS
    said = [voice_trials.prompted_text(k * step) for k in range(voice_trials.PROMPTS)]
    assert len(set(said)) == voice_trials.PROMPTS
    places = [voice_trials.PROMPTED.index(text) for text in said]
    assert max(places) - min(places) > 0.9 * len(voice_trials.PROMPTED)
    for number, place in enumerate(places):
        assert (place - number * step) % len(voice_trials.PROMPTED) > 10


def test_one_monotone_voice_among_lively_ones_misses_the_bar():
    voice = np.sin(2 * np.pi * 220 * SECONDS)
    rumbling = voice + 0.2 * np.sin(2 * np.pi * 20 * SECONDS)
    glide = hertz(np.linspace(-3, 3, 200))
    takes = {
        "lively": [take("", glide, voice)],
        "monotone": [take("", hertz([0.0] * 200), voice)],
        "rumbling": [take("", glide, rumbling)],
    }
    lines = list(voice_trials.melody_lines(takes))
    assert [line.voice for line in lines] == ["monotone", "monotone", "rumbling"]
    assert [line.met for line in lines] == [False] * 3
    lively = voice_trials.melody_lines({"lively": takes["lively"]})
    assert [line.met for line in lively] == [True] * 3


def test_an_identified_take_is_the_prompts_voice():
    known, again = speakers.profiles(voices(0.3)), voices(0.3, seed=2)
    takes = {
        name: [Measured("", "", np.zeros(1), t, SECONDS) for t in each]
        for name, each in again.items()
    }
    assert voice_trials.identity_line(takes, known, voice_trials.IDENTIFIED).met
    first, second = list(takes)[:2]
    takes[first] = takes[second]  # a model that ignores one of eight prompts
    line = voice_trials.identity_line(takes, known, voice_trials.IDENTIFIED)
    assert not line.met
    assert line.value == 7 / 8
    assert line.notes["confused"][first] == [second]


def test_pairs_of_takes_differ_when_their_voices_do():
    known, again = speakers.profiles(voices(0.3)), voices(0.3, seed=2)
    first, second, *_ = again.values()
    assert voice_trials.different_pairs(first[:6], known) < 0.2
    assert voice_trials.different_pairs([first[0], second[0]], known) == 1
    mixed = [first[0], first[1], second[0]]
    assert voice_trials.different_pairs(mixed, known) == pytest.approx(2 / 3)
    assert voice_trials.different_pairs([None, None], known) == 1, "silence is no voice"


def test_a_turn_is_in_its_speakers_voice():
    known, takes = speakers.profiles(voices(0.3)), voices(0.3, seed=2)
    first, second, *_ = takes.values()
    dialogue = [("S1", first[0]), ("S2", second[0]), ("S1", first[1]), ("S2", second[1])]
    dialogue += [("S1", first[2]), ("S2", second[2])]
    assert voice_trials.in_own_voice(dialogue, known) == 6
    swapped = [*dialogue[:4], ("S1", second[2]), ("S2", second[3])]
    assert voice_trials.in_own_voice(swapped, known) == 5
    silent = [*dialogue[:5], ("S2", None)]
    assert voice_trials.in_own_voice(silent, known) == 5, "silence is no voice"


def test_a_codec_may_lose_three_points_of_words():
    def takes(wrong: int) -> list[Measured]:
        heard = ["one two three for"] * wrong + ["one two three four"] * (25 - wrong)
        return [take(text, [0], SECONDS) for text in heard]  # a hundred words

    assert codec_gate.passes(takes(2), takes(5))
    assert not codec_gate.passes(takes(2), takes(6))


@pytest.mark.parametrize(
    ("seconds", "fit"),
    [((4.0, 2.0), True), ((4.3, 1.8), True), ((4.5, 2.0), False), ((4.0, 1.7), False)],
)
def test_a_turn_may_be_a_tenth_or_a_quarter_of_a_second_off(seconds, fit):
    turns, expected = (
        [np.ones(round(s * SAMPLE_RATE)) for s in lengths] for lengths in (seconds, (4.0, 2.0))
    )
    assert measures.lengths_fit(turns, expected) is fit


def sounds(seed: int, count: int = 12, pitch: float = 120.0) -> np.ndarray:
    """A voice of this pitch that says `count` vowels of 0.15 s, other ones for every seed."""
    generator, seconds = np.random.default_rng(seed), np.arange(SAMPLE_RATE * 15 // 100)
    harmonics = pitch * np.arange(1, 50)
    vowels = []
    for formants in generator.uniform((300, 900, 2000), (900, 2000, 3800), (count, 3)):
        gains = np.exp(-(((harmonics[:, None] - formants) / 150) ** 2)).sum(1) + 1e-3
        waves = np.sin(2 * np.pi * harmonics[:, None] * seconds / SAMPLE_RATE)
        vowels.append(0.1 * gains @ waves)
    return np.concatenate(vowels)


# The first dynamic time warping of a process compiles librosa's: half a minute.
@pytest.mark.long
@pytest.mark.parametrize(
    ("said", "whole"),
    [
        ((1, 2, 3), True),
        ((1, 3, 3), False),
        ((3, 2, 1), False),
        ((1, 2), False),
        ((1, 2, 2, 3), False),
        ((1, (2, 3), 3), False),
    ],
    ids=str,
)
def test_a_dialogue_is_whole_if_every_turn_was_said_once(said, whole):
    """In another voice than the reference. (2, 3): the first half of 2, the second of 3."""

    def say(turn) -> np.ndarray:
        if isinstance(turn, int):
            return sounds(turn, pitch=200.0)
        first, second = map(say, turn)
        return np.concatenate([first[: len(first) // 2], second[len(second) // 2 :]])

    reference = [sounds(seed) for seed in (1, 2, 3)]
    turns = measures.turns(np.concatenate([say(turn) for turn in said]), reference)
    assert voice_trials.is_whole(turns, reference, reference) is whole


@pytest.mark.long
def test_a_turn_that_is_said_badly_is_in_its_place():
    reference = [sounds(seed) for seed in (1, 2, 3)]
    noise = np.random.default_rng(0).normal(0, 0.03, len(reference[0]))
    turns = [reference[0] + noise, *reference[1:]]
    assert voice_trials.is_whole(turns, reference, reference)


def test_a_dialogue_is_compared_with_the_teacher_in_the_nearest_voices(monkeypatch):
    known, spoken = speakers.profiles(voices(0.3)), []
    first, second, *_ = known.voices
    prompts = voice_trials.Prompts({})
    monkeypatch.setattr(prompts, "speak", lambda name, text: spoken.append((name, text)))
    heard = iter([known.voices[second], known.voices[first]])  # S1, then S2
    monkeypatch.setattr(speakers, "traits", lambda wave: next(heard))
    voice_trials.spoken_alike([SECONDS] * 3, ["S2", "S1", "S2"], ["a", "b", "c"], prompts, known)
    assert spoken == [(first, "a"), (second, "b"), (first, "c")]


class Silent:
    """A studio in which takes are silence and the recogniser hears what it is told to."""

    def __init__(self, heard: list[str]) -> None:
        config = read_model_config(EMBEDDED_FOLDER)
        self.engine, self.params = SimpleNamespace(config=config), config.defaults
        self.texts = heard

    def say(self, scripts):
        return [trials.Spoken(np.zeros(1), True) for _ in scripts]

    def heard(self, scripts, waves):
        return self.texts[: len(scripts)]


def test_everyday_sentences_are_counted_word_by_word_and_by_voice():
    right = "bring gloves and a scarf", "the recipe calls for garlic"
    line = trials.everyday(Silent([*right, "bring gloves and a staff", right[1]]), right, 2)
    assert (line.count, line.value) == (4, pytest.approx(1 / 20))
    assert line.met
    # One sentence with an error of 1 in 10 words, one with none.
    assert line.notes["standard error"] == pytest.approx(0.05 / 2**0.5)
    by_voice = line.notes["by voice"]
    assert sum(takes for _, takes in by_voice.values()) == 4
    assert sum(error > 0 for error, _ in by_voice.values()) == 1


def test_everyday_sentences_are_distinct_and_kept_from_training():
    assert len(set(heldout.EVERYDAY)) == len(heldout.EVERYDAY) >= 100
    assert heldout.banned_sentences() >= set(heldout.EVERYDAY)
