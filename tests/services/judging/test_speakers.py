"""A chunk in another voice is found by its pitch and its spectrum, one turn of it as well.

How often the embedded voice's own takes are blamed is measured: docs/dialogues.md.
"""

from dataclasses import replace

import numpy as np
import pytest

from dia_demo.engine.events import Result
from dia_demo.engine.turns.passages import passages
from dia_demo.prompt.voice_traits import VoiceTraits, spectrum, voice_traits
from dia_demo.services.dialogue.store import DialogueStore
from dia_demo.services.judging import single_take
from dia_demo.services.judging.alignment import align
from dia_demo.services.judging.judge import Fault, judge
from dia_demo.services.judging.single_take import ANOTHER_VOICE, CHANGED_VOICE
from dia_demo.services.judging.sound import Sound
from dia_demo.services.judging.speakers import has_another_voice, speaker_spans
from tests.helpers.stand_ins.chunk_takes import FPS, RATE, chunk_take, take_of
from tests.helpers.synthesis_requests import make_request

BRIGHT, DARK = 1.0, 6.0
# Turns of several seconds each.
TURN = "one two three four five six seven eight nine ten eleven twelve, and thirteen."
SCRIPT = f"[S1] {TURN} [S2] {TURN} [S1] {TURN}"


def voice(seconds: float, hertz: float, slope: float) -> np.ndarray:
    """A voiced sound: harmonics that fall by `slope` dB for each, in syllables."""
    time = np.arange(round(seconds * RATE)) / RATE
    numbers = np.arange(1, int(7000 / hertz))
    levels = 10 ** (-slope * np.log2(numbers) / 20)
    wave = (levels[:, None] * np.sin(2 * np.pi * hertz * numbers[:, None] * time)).sum(axis=0)
    return (0.1 * wave / wave.std() * (1 + 0.8 * np.sin(8 * time))).astype(np.float32)


def spoken(hertz=(120.0, 200.0, 120.0), slopes=(BRIGHT, BRIGHT, BRIGHT)):
    """A take of SCRIPT whose turns are in these voices; S1 and S2 should have the first two."""
    plain = chunk_take(SCRIPT)
    spans = speaker_spans(
        plain, Sound(plain.samples, RATE), align(plain.text, 0, plain.places), FPS
    )
    assert [speaker for speaker, *_ in spans] == [1, 2, 1]
    samples = plain.samples.copy()
    for (_, start, end), pitch, slope in zip(spans, hertz, slopes, strict=True):
        level = np.abs(plain.samples[start:end]) > 0
        samples[start:end] = voice((end - start) / RATE, pitch, slope)[: end - start] * level
    expected = [voice_traits(voice(5, pitch, BRIGHT)) for pitch in (120.0, 200.0)]
    return replace(plain, samples=samples, expected_voices=tuple(expected))


def has_fault(take) -> bool:
    return Fault.VOICE in judge(take, len(take.samples) / RATE, FPS).faults


def test_the_voices_that_it_should_have_are_no_fault():
    assert not has_fault(spoken())
    assert not has_fault(spoken((125.0, 195.0, 117.0)))


@pytest.mark.parametrize("hertz", [(200.0, 200.0, 200.0), (120.0, 120.0, 120.0)])
def test_another_pitch_is_another_voice(hertz):
    assert has_fault(spoken(hertz))


def test_another_spectrum_at_the_same_pitch_is_another_voice():
    assert has_fault(spoken(slopes=(DARK, BRIGHT, DARK)))


@pytest.mark.parametrize("turn", range(3))
def test_one_turn_in_another_voice_is_found(turn):
    slopes = [BRIGHT] * 3
    slopes[turn] = DARK
    assert has_fault(spoken(slopes=tuple(slopes)))


def test_where_no_voice_is_expected_none_is_blamed():
    take = spoken((200.0, 200.0, 200.0), (DARK, DARK, DARK))
    assert not has_fault(replace(take, expected_voices=(None, None)))


def test_of_a_model_that_does_not_follow_its_text_one_speaker_is_compared_by_pitch():
    expected = voice_traits(voice(5, 120.0, BRIGHT)), None
    takes = [
        replace(take_of(voice(4, hertz, DARK), None, b"\x01 Words."), expected_voices=expected)
        for hertz in (120.0, 150.0, 200.0)
    ]
    assert [has_fault(take) for take in takes] == [False, False, True]
    both = replace(takes[2], text=b"\x01 Words. \x02 Others.")
    assert not has_fault(both)


def test_a_short_sound_is_not_compared():
    take = replace(spoken((200.0,) * 3), expected_voices=(VoiceTraits(0.0), None))
    short = [(1, 0, RATE // 2)]
    assert has_another_voice(take, [(1, 0, 3 * RATE)], True)
    assert not has_another_voice(take, short, True)


def test_the_spectrum_does_not_depend_on_the_level_or_on_pauses():
    wave = voice(4, 150.0, BRIGHT)
    quiet = np.concatenate([0.1 * wave, np.zeros(2 * RATE, np.float32)])
    np.testing.assert_allclose(spectrum(quiet), spectrum(wave), atol=0.05)


def test_what_is_expected_is_kept_with_a_take(tmp_path):
    store, take = DialogueStore(tmp_path / "parts"), spoken()
    store.write(take)
    assert store.read(0, 0).expected_voices == take.expected_voices
    assert len(passages(take.text, 0)) == 3


def test_a_chosen_voice_that_does_not_speak_is_remarked(synthesis, monkeypatch):
    take = spoken((200.0, 200.0, 200.0))
    result = Result(take.codes, take.samples, take.figures, None, take.places, take.expected_voices)
    plain = make_request(synthesis, SCRIPT)
    monkeypatch.setattr(single_take, "has_another_voice", lambda *_: True)
    chosen = replace(plain, voices=("Anna", None))
    assert ANOTHER_VOICE in synthesis.take(chosen, result).remarks
    assert ANOTHER_VOICE not in synthesis.take(plain, result).remarks


def test_a_voice_that_changes_is_remarked_where_somebody_speaks_twice(synthesis, monkeypatch):
    take = spoken((200.0, 200.0, 200.0))
    result = Result(take.codes, take.samples, take.figures, None, take.places, take.expected_voices)
    monkeypatch.setattr(single_take, "has_another_voice", lambda *_: True)
    remarked = {
        script: CHANGED_VOICE in synthesis.take(make_request(synthesis, script), result).remarks
        for script in (SCRIPT, "[S1] Hello. [S2] Hi. [S1] Bye.", "[S1] Hello. [S2] Hi.", "Hello.")
    }
    assert list(remarked.values()) == [True, True, False, False]
    monkeypatch.setattr(single_take, "has_another_voice", lambda *_: False)
    assert CHANGED_VOICE not in synthesis.take(make_request(synthesis, SCRIPT), result).remarks
