"""The teacher of the embedded voice: timing, intonation, and the grid of pitch pulses.

flite and pyworld are not needed here.
"""

import json
from collections import Counter
from random import Random

import numpy as np
import pytest

from training.voice.corpus import drift, shards
from training.voice.teacher import prosody, speech, vocoder
from training.voice.teacher.melody import phone_pitch
from training.voice.teacher.phones import HOP, SAMPLE_RATE
from training.voice.teacher.sources import SOURCES, Source, timed_phones
from training.voice.teacher.voices import (
    EIGHT,
    FREE,
    NEAR,
    NEARBY,
    PITCHES,
    UNSEEN,
    VOICES,
    WARPS,
    Voice,
    free_voice,
    nearby_voice,
    traits_of,
    voice_named,
)

SOURCE = Source("none", 100.0, 60.0, 200.0)


@pytest.mark.parametrize(
    ("text", "marks"),
    [
        ("Yes.", ""),
        ("Yes, sir.", ","),
        ("No. Why, then? Go!", ".,?"),
        ("Wait... really?", "."),
        ("no mark at all", ""),
    ],
)
def test_pauses_are_longer_after_sentences_than_after_commas(text, marks):
    assert [m[0] for _, m in prosody.clauses(text)[:-1]] == list(marks)
    phones = ["pau"] + ["ah", "pau"] * (len(marks) + 1)
    spoken = prosody.frames(phones, [4.0] * len(phones), {"ah": 4}, text)
    length = {",": prosody.PAUSE_COMMA}
    assert spoken[2:-1:2] == [length.get(m, prosody.PAUSE_STOP) for m in marks]
    assert prosody.PAUSE_STOP > prosody.PAUSE_COMMA > spoken[0] == spoken[-1]


@pytest.mark.parametrize(
    ("text", "phones", "expected"),
    [
        ("I am happy.", "pau ay ae m hh ae p iy pau", [0, 2, 2, 2, 2, 2, 2, 2, 0]),
        ("The keys?", "pau dh ax k iy z pau", [0, 2, 2, 2, 3, 5, 0]),
        ("Where?", "pau w eh r pau", [0, 2, 2, 2, 0]),
        ("Ha ha.", "pau hh aa hh aa pau", [0, 6, 6, 5, 5, 0]),
    ],
)
def test_pitch_is_the_sources_unless_a_question_or_laughter_changes_it(text, phones, expected):
    source = [0.0 if p == "pau" else 2.2 for p in phones.split()]
    assert prosody.tones(phones.split(), source, text) == expected


def test_pitch_stays_within_its_range():
    assert prosody.tones(["aa", "iy"], [9.3, -40.0], "a e") == [prosody.RANGE, -prosody.RANGE]


def test_lengths_follow_flite_in_three_levels():
    phones, table = ["aa"] * 3, {"aa": 5}
    assert prosody.frames(phones, [3.0, 5.0, 8.0], table, "a") == [4, 5, 7]
    assert prosody.frames(["t"], [1.0], {"t": 3}, "t") == [3], "never too short to be heard"


def test_laughter_has_a_rhythm_of_its_own_and_dies_away():
    phones = "pau w eh l pau hh aa hh aa hh aa pau".split()
    text = "Well, ha ha ha."
    assert prosody.laughter(phones, text) == {5: 0, 6: 0, 7: 1, 8: 1, 9: 2, 10: 2}
    table = {"hh": 3, "aa": 5, "w": 3, "eh": 3, "l": 3}
    lengths = prosody.frames(phones, [3.0] * len(phones), table, text)
    assert lengths[5:11] == [prosody.LAUGH_FRAMES] * 6
    loud = prosody.loudness(phones, text)
    assert loud[:5] == [0, 1, 1, 1, 0] and loud[11] == 0
    assert loud[5] == loud[6] == 1 > loud[7] == loud[8] > loud[9] == loud[10] > 0
    assert not prosody.laughter(phones, "Well, hah that aha."), "words are no laughter"


def test_a_breath_comes_after_a_long_stretch_or_a_laugh():
    words = ["ah"] * (prosody.BREATH_AFTER - 1)
    phones = ["pau", *words, "pau", "ah", "pau", "ah", "pau"]
    assert prosody.breaths(phones, "a, b, c.") == [len(words) + 3], "once enough was said"
    assert prosody.breaths(["pau", *words, *words, "pau"], "a.") == [], "none at the end"
    assert prosody.breaths("pau hh aa pau ah pau".split(), "Ha. So.") == [3]


def test_a_breath_is_quiet_noise_that_swells():
    swell = vocoder.swell(20)
    assert swell[0] < 0.1 * swell.max() > swell[-1]
    assert swell.argmax() in (9, 10)
    power = vocoder.breath_power(1.1)
    assert power.mean() == pytest.approx(1)
    peak = vocoder.FREQUENCIES[power[:70].argmax()]
    assert peak == pytest.approx(660, abs=40)


def test_the_phones_of_a_source_have_their_times():
    assert timed_phones("pau:0.2 hh:0.25 hh:0.25 ay:0.5 ") == [
        ("pau", 0.0, 0.2),
        ("hh", 0.2, 0.25),
        ("ay", 0.25, 0.5),
    ]


def test_a_phones_pitch_is_the_mean_over_it():
    seconds = np.arange(100) * 0.005
    track = seconds, np.where(seconds < 0.25, 100.0, 200.0)
    timed = [("aa", 0.0, 0.25), ("iy", 0.25, 0.5), ("m", 0.5, 0.6)]
    assert phone_pitch(timed, track, SOURCE) == pytest.approx([0, 12, 12])


def test_a_voice_rounds_its_pitch_to_whole_pulses_in_a_phone():
    voice = Voice(SOURCE, f0=120.0, gain=1.0)
    assert [voice.pulses(*phone) for phone in (("aa", 4, 0), ("aa", 4, 3), ("m", 1, -6))] == [
        12,
        14,
        2,
    ]
    assert voice.pulses("s", 3, 5) == 9, "unvoiced: as many in every frame"


def test_every_phone_has_its_pulses_from_its_first_sample():
    starts = vocoder.pulse_times([4, 3, 3], [12, 9, 8], [True, False, True])
    assert len(starts) == 29
    assert starts[[0, 12, 21]] == pytest.approx([0, 4 * HOP, 7 * HOP])
    assert np.diff(starts[:13]) == pytest.approx(np.full(12, HOP / 3)), "level beside an unvoiced"


def test_pitch_glides_between_voiced_phones():
    """16 to 20 pulses in four frames each: a jump of 25% becomes steps of a few percent."""
    frames, pulses = [4, 4, 4], [16, 20, 16]
    starts = vocoder.pulse_times(frames, pulses, [True] * 3)
    assert starts[[0, 16, 36]] == pytest.approx(np.array([0, 4, 8]) * HOP)
    periods = np.diff(np.append(starts, 12 * HOP))
    steps = periods[1:] / periods[:-1]
    assert max(steps.max(), 1 / steps.min()) < 1.08
    assert periods[26] < periods[18] < periods[2], "highest in the middle of the middle one"


def test_noise_restarts_with_every_phone():
    frames, pulses = [5, 2, 5], [15, 6, 15]
    starts = vocoder.pulse_times(frames, pulses, [False] * 3)
    samples = np.array(frames) * HOP
    begins = np.repeat(np.cumsum(samples) - samples, pulses)
    spectra = np.ones((36, vocoder.FFT_SIZE // 2 + 1))
    kinds = ["unvoiced"] * 36
    wave = vocoder.overlap_add(spectra, kinds, np.ones(36), starts, begins, int(samples.sum()))
    first, last = wave[: 5 * HOP], wave[7 * HOP :]
    assert np.allclose(first, last, atol=1e-9)
    frame = wave[: 4 * HOP].reshape(4, HOP)
    correlation = np.corrcoef(frame)[np.triu_indices(4, 1)]
    assert np.abs(correlation).max() < 0.3, "four different frames, not one that is repeated"


def test_formants_move_with_the_warp():
    power = np.exp(-(((vocoder.FREQUENCIES - 1000) / 100) ** 2))[None] + 1e-9
    peak = vocoder.FREQUENCIES[vocoder.shift_formants(power, 1.15).argmax()]
    assert peak == pytest.approx(1150, abs=SAMPLE_RATE / vocoder.FFT_SIZE)


def test_nothing_below_50_hz_is_left():
    decibels = 10 * np.log10(vocoder.without_rumble(np.ones((1, len(vocoder.FREQUENCIES))))[0])
    assert decibels[vocoder.FREQUENCIES <= 25].max() < -17
    assert decibels[vocoder.FREQUENCIES >= 90].min() > -0.2


def test_voices_have_a_pulse_in_every_frame_however_low_they_fall():
    for name, voice in VOICES.items():
        assert voice.pulses("aa", 1, -prosody.RANGE) >= 1, name
        assert voice.f0 * 2 ** (prosody.RANGE / 12) < 400, name


def test_the_corpus_has_none_of_the_unseen_voices():
    assert set(EIGHT) <= set(VOICES)
    trained = {(v.source, v.f0, v.warp) for v in VOICES.values()}
    assert len(trained) == len(VOICES)
    assert not trained & {(v.source, v.f0, v.warp) for v in UNSEEN.values()}
    assert not set(UNSEEN) & set(VOICES)


def test_voices_without_a_name_lie_anywhere_but_near_the_unseen_ones():
    drawn = [voice_named(free_voice(Random(seed))) for seed in range(300)]
    assert {voice.source for voice in drawn} == set(SOURCES.values())
    for voice in drawn:
        (low, high), (small, large), _ = FREE[voice.source.flite]
        assert low - 0.1 <= voice.f0 <= high + 0.1 and small <= voice.warp <= large
        for unseen in UNSEEN.values():
            semitones = abs(12 * np.log2(voice.f0 / unseen.f0))
            is_near = semitones < NEAR[0] - 0.01 and abs(voice.warp - unseen.warp) < NEAR[1] - 0.001
            assert voice.source != unseen.source or not is_near
    assert len({(voice.f0, voice.warp) for voice in drawn}) > 250
    assert voice_named("rms") is VOICES["rms"]


def test_a_share_of_the_corpus_is_spoken_in_voices_without_a_name(monkeypatch):
    monkeypatch.setattr(shards.text, "corpus", lambda count, *_: [f"{k}." for k in range(count)])
    monkeypatch.setattr(shards.heldout, "banned_sentences", frozenset)
    monkeypatch.setattr(shards.heldout, "rare_words", tuple)
    turns = Counter(voice for _, voice in shards.write_turns(3, 100, list(VOICES)))
    free = {voice: count for voice, count in turns.items() if voice not in VOICES}
    assert len(free) == round(100 * shards.FREE_SHARE / shards.FREE_TURNS)
    assert set(free.values()) == {shards.FREE_TURNS}
    assert sum(turns.values()) == 100 and len(turns) - len(free) > 10
    named, free = (dict(shards.write_turns(3, 100, ["rms"], share)) for share in (0.0, 1.0))
    assert set(named.values()) == {"rms"}, "a shard of a new voice"
    assert len(set(free.values()) - {"rms"}) == 100 // shards.FREE_TURNS


def test_a_model_is_told_pitch_and_formants_of_every_voice_in_steps():
    names = [*VOICES, *(free_voice(Random(seed)) for seed in range(300))]
    told = {name: traits_of(name) for name in names}
    for name, (pitch, formants) in told.items():
        assert 0 <= pitch < PITCHES and 0 <= formants < len(FREE) * WARPS, name
    assert len({pitch for pitch, _ in told.values()}) > 25
    assert len({formants for _, formants in told.values()}) > 15
    assert traits_of("rms 104.0 Hz x 1.000") == (0, 0)
    assert traits_of("rms 208.0 Hz x 1.100") == (24, 5)
    assert traits_of("awb 208.0 Hz x 1.100") == (24, WARPS + 5)


@pytest.mark.parametrize("name", ["rms child", "awb deep", "rms 171.0 Hz x 1.080"])
def test_a_voice_nearby_has_the_same_source_and_another_pitch(name):
    own, found = voice_named(name), [voice_named(nearby_voice(name, Random(k))) for k in range(50)]
    (low, high), (small, large), _ = FREE[own.source.flite]
    for voice in found:
        assert voice.source == own.source
        assert low - 0.1 <= voice.f0 <= high + 0.1 and small <= voice.warp <= large
        assert abs(12 * np.log2(voice.f0 / own.f0)) < NEARBY[0] + 0.02
    assert len({voice.f0 for voice in found}) > 20


class Workers:
    """A pool of none."""

    def map(self, function, items, chunksize):
        return [function(item) for item in items]


def test_a_drifted_shard_has_every_turn_where_its_own_has_it(monkeypatch, tmp_path):
    """A turn that flite refuses, or that has another length, stays in its own voice."""
    lengths = {"one": 4 * HOP, "refused": 3 * HOP, "two": 2 * HOP}
    (tmp_path / "corpus").mkdir()
    offsets = np.cumsum([0, *lengths.values()]).tolist()
    record = {"items": [(text, "rms") for text in lengths], "offsets": offsets}
    (tmp_path / "corpus" / "007.json").write_text(json.dumps(record))
    np.save(tmp_path / "corpus" / "007.npy", np.full(offsets[-1], 5, np.int16))
    waves = {"one": np.full(4 * HOP, 0.5), "refused": None, "two": np.full(3 * HOP, 0.5)}

    def speak(item, tables):
        assert item[1] != "rms"
        wave = waves[item[0]]
        return None if wave is None else speech.Utterance(wave, [], [], [])

    monkeypatch.setattr(shards, "speak", speak)
    drift.make_shard(tmp_path, "007", {}, Workers())
    assert shards.shard_names(tmp_path) == ["007"]
    drifted, samples = shards.read_shard(tmp_path, "007d")
    assert drifted == {"offsets": offsets}
    assert samples.tolist() == [16383] * 4 * HOP + [5] * 5 * HOP
