"""Voices of takes whose words have known times: exact in the file, in parts and joined."""

from dataclasses import asdict, replace

import numpy as np
import pytest

from dia_demo.engine.events import Figures, FinishReason, SpokenWord
from dia_demo.errors import InputError
from dia_demo.prompt.codes import pack_codes
from dia_demo.prompt.voice_file import RECORDING, VoiceFile
from dia_demo.services.remote.plain import PlainVoice
from dia_demo.services.take import VoicePrompt
from dia_demo.services.voices.choice import _prompt_of
from dia_demo.services.voices.keep import keep_take

FPS = 12.5
WORDS = [("Hello", 0.16, 1), ("there.", 0.72, 1), ("How", 1.68, 2), ("so?", 2.4, 2)]


def contents(**changes):
    """The metadata of a take of 4 s, as `Take.metadata` writes it."""
    figures = Figures(
        4.0, 1.0, 4.0, 0.5, 0.5, 0.1, 10, FinishReason.END, 1, "m", "int8", "cpu", 24000, 1,
        numerics={"codebooks": "c"},
    )  # fmt: skip
    codes = np.arange(50 * 32, dtype=np.int16).reshape(50, 32)
    return {
        "script": "[S1] Hello there. [S2] How so?",
        "figures": asdict(figures),
        "frames_per_second": FPS,
        "speed": 1.0,
        "settings": {},
        "codes": pack_codes(codes),
        "spoken_words": [list(word) for word in WORDS],
    } | changes


def test_a_kept_take_has_its_codes_and_words_also_from_its_file(tmp_path):
    voice = keep_take(contents(), "Anna")
    assert voice.words == tuple(WORDS) and len(voice.codes) == 50
    again = VoiceFile.read(voice.write(tmp_path / "anna.dia-voice.safetensors"))
    assert again.words == voice.words and np.array_equal(again.codes, voice.codes)


def test_a_part_knows_what_it_says():
    """Frames 8 to 38: their words at the times of the part, and their script."""
    voice = keep_take(contents(), "Anna", (0.64, 3.04))
    assert voice.transcript == "[S1] there. [S2] How so?"
    assert voice.words == (("there.", 0.08, 1), ("How", 1.04, 2), ("so?", 1.76, 2))
    assert np.array_equal(voice.codes, keep_take(contents(), "Anna").codes[8:38])


def test_a_part_of_a_faster_take_is_in_seconds_of_its_file():
    voice = keep_take(contents(speed=2.0), "Anna", (0.32, 1.52))
    assert [word for word, _, _ in voice.words] == ["there.", "How", "so?"]


def test_two_voices_follow_one_another():
    one = replace(keep_take(contents(), "A", (0.0, 1.6)), name="A")
    other = replace(keep_take(contents(), "B", (1.6, 4.0)), name="B")
    prompt = _prompt_of([other, one])  # B speaks as S1 and A as S2.
    assert [(word.word, word.speaker) for word in prompt.words] == [
        ("How", 1), ("so?", 1), ("Hello", 2), ("there.", 2),
    ]  # fmt: skip
    assert prompt.words[2].seconds == pytest.approx(0.16 + 2.4)
    assert _prompt_of([replace(one, words=()), other]).words == ()
    assert not prompt.are_words_estimated
    assert _prompt_of([other, replace(one, source=RECORDING)]).are_words_estimated


def test_words_travel_to_an_engine_elsewhere(tmp_path):
    words = tuple(SpokenWord(*word) for word in WORDS)
    voice = VoicePrompt(
        codes=np.zeros((3, 32), np.int16), transcript="[S1] Hi.", words=words,
        are_words_estimated=True,
    )  # fmt: skip
    sent = PlainVoice.from_voice(voice).voice(tmp_path)
    assert sent.words == words and sent.are_words_estimated


@pytest.mark.parametrize(
    "damaged", [[["Hello", -1.0, 1]], [["a", 1.0, 1], ["b", 0.5, 1]], [["a", 99, 1]], [[1, 2]], {}]
)
def test_damaged_times_are_refused(damaged):
    with pytest.raises(InputError, match="times of the words in this file are damaged"):
        keep_take(contents(spoken_words=damaged), "Anna")
