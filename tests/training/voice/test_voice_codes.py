"""What a model's own takes say of how likely each code is in each voice."""

import numpy as np

from dia_demo.voices import RATIO_UNIT, Voice, VoiceTable
from training.voice.judge.voice_codes import (
    LARGEST_RATIO,
    log_ratios,
    select_in_voice,
    with_ratios,
)

# Codes 0 and 1 are silence, 2 begins a turn, 3 and 4 are marks; speech has the others.
VOICES = Voice("one", 3, 0.0, (0.0,)), Voice("two", 4, 0.0, (0.0,))
ONE, TWO, CODES = 0, 1, 9
TABLE = VoiceTable(VOICES, ((2, 2),), (0, 0), ((0, 1),), 0.0, 0.0, 0)
MOSTLY_5, MOSTLY_6 = [5, 5, 5, 6, 7, 7], [6, 6, 6, 5, 7, 7]


def said(voice: int, codes: list[int], count: int = 400) -> tuple[int, np.ndarray]:
    """A turn with a silence at its end, in the voice of this place in the table."""
    frames = np.repeat(np.array(codes * (count // len(codes)) + [0] * 50), 2).reshape(-1, 2)
    return voice, frames


def test_ratios_say_which_voice_has_a_code_more_often():
    ratios = log_ratios(TABLE, [said(ONE, MOSTLY_5), said(TWO, MOSTLY_6)], CODES)
    assert ratios.shape == (2, 2, CODES) and ratios.dtype == np.int8
    one, two = ratios[:, 0] * RATIO_UNIT
    # 3 of 6 and 1 of 6 against 2 of 6; 50 frames of both count beside some 400.
    assert abs(one[5] - np.log(1.45)) < 0.1 and abs(one[6] - np.log(0.55)) < 0.1
    assert abs(two[6] - one[5]) < 0.1 and one[7] == two[7] == 0
    assert not ratios[:, :, :5].any(), "silences, beginnings and marks say nothing"
    assert not ratios[:, :, 8].any(), "nor does a code that nobody said"
    np.testing.assert_array_equal(ratios[:, 0], ratios[:, 1])


def test_a_ratio_has_a_limit():
    ratios = log_ratios(TABLE, [said(ONE, [5], 90_000), said(TWO, [6], 90_000)], CODES)
    assert ratios[0, 0, 6] * RATIO_UNIT == -LARGEST_RATIO


def test_turns_that_leave_their_voice_are_left_out():
    turns = [said(ONE, MOSTLY_5), said(TWO, MOSTLY_6), said(ONE, MOSTLY_6)]
    table = with_ratios(TABLE, log_ratios(TABLE, turns[:2], CODES))
    kept = select_in_voice(table, turns)
    assert [id(codes) for _, codes in kept] == [id(codes) for _, codes in turns[:2]]
