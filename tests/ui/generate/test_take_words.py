"""The words of a take: inside its file, and as the player shows them."""

from dataclasses import replace

import pytest

from dia_demo import audio
from dia_demo.services.take import TimedWord
from dia_demo.ui.generate.take_files import SavedTake, player_take
from tests.helpers.page.page_stubs import silent_take

WORDS = (
    TimedWord("Good", 0.2, 0.4, "S1", 0),
    TimedWord("morning.", 0.5, 0.9, "S1", 0),
    TimedWord("<b>Yes.", 1.4, 1.8, "S2", 1),
)


def saved(path, words) -> SavedTake:
    take = replace(silent_take("[S1] Good morning. [S2] <b>Yes."), words=words)
    return SavedTake(take.save(path), take.samples, take.sample_rate, 7, None)


@pytest.mark.parametrize("suffix", audio.FORMATS)
def test_a_file_contains_the_words(tmp_path, suffix):
    shown = player_take(saved(tmp_path / f"take{suffix}", WORDS))
    assert shown["script"] == "[S1] Good morning. [S2] <b>Yes."
    assert shown["cues"] == [
        {"speaker": "S1", "turn": 0, "end": 0.9, "words": [["Good", 0.2], ["morning.", 0.5]]},
        {"speaker": "S2", "turn": 1, "end": 1.8, "words": [["<b>Yes.", 1.4]]},
    ]


def test_a_file_of_an_earlier_version_has_none(tmp_path):
    shown = player_take(saved(tmp_path / "take.wav", ()))
    assert shown["cues"] == []


def test_words_of_another_shape_are_left_out(tmp_path):
    path = audio.write_audio(
        tmp_path / "take.wav", silent_take().samples, 16000, {"script": "", "words": [{"a": 1}]}
    )
    assert player_take(SavedTake(path, silent_take().samples, 16000, 7, None))["cues"] == []
