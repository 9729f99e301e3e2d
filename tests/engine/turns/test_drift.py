"""A turn that leaves its voice is brought back; one that does not has the codes it always had."""

from dataclasses import replace

import numpy as np
import pytest

from dia_demo.checkpoint_config import read_model_config
from dia_demo.codec.codec import Codec, load_codec
from dia_demo.engine.row import Row
from dia_demo.engine.scheduler import run_to_end
from dia_demo.engine.turns.drift import DOUBT, STRENGTH, VoiceDrift
from dia_demo.prompt.voice_traits import distance, voice_traits
from dia_demo.text.script import encode_script
from dia_demo.voices import RATIO_UNIT, Voice, VoiceTable
from tests.helpers.models.checkpoints import load
from tests.helpers.models.known import EMBEDDED_FOLDER

BOOKS, CODES = 2, 4
# Code 1 is that of the first voice, code 2 that of the second, 3 that of both and 0 of silences.
RATIOS = np.array([[0, 16, -16, 0], [0, -16, 16, 0]], np.int8)
ONE, TWO = (
    Voice(name, mark, 0.0, (0.0,), ratios=np.tile(ratios, BOOKS).tobytes())
    for name, mark, ratios in zip(("one", "two"), (0, 3), RATIOS, strict=True)
)
TABLE = VoiceTable((ONE, TWO), ((0, 0),), (0, 0), ((0,),), 0.0, 0.0, 0)
# How much more likely a frame of its codes is in the second voice than in the first.
FRAME = BOOKS * 2 * 16 * RATIO_UNIT


def hear(drift: VoiceDrift, turn: int, code: int, frames: int) -> None:
    for _ in range(frames):
        drift.hear(turn, ONE, np.full(BOOKS, code))


def frames_until_doubt(drift: VoiceDrift, turn: int, code: int) -> int:
    for frames in range(1, 1000):
        hear(drift, turn, code, 1)
        if drift.correction is not None:
            return frames
    raise AssertionError("no doubt arose")


def test_a_turn_in_another_voice_is_corrected_until_it_ends():
    drift = VoiceDrift(TABLE)
    frames = frames_until_doubt(drift, 0, 2)
    assert DOUBT / FRAME < frames < 2 * DOUBT / FRAME
    expected = STRENGTH * RATIO_UNIT * np.tile(RATIOS[0], (BOOKS, 1))
    np.testing.assert_allclose(drift.correction, expected)
    hear(drift, 0, 1, 100)
    assert drift.correction is not None, "in the same turn"
    hear(drift, 1, 2, 1)
    assert drift.correction is None, "in the next turn"
    assert frames_until_doubt(drift, 2, 2) == frames, "nothing is left of the turns before"


@pytest.mark.parametrize("code", [0, 1, 3])
def test_codes_of_the_right_voice_of_all_and_of_silences_raise_no_doubt(code):
    drift = VoiceDrift(TABLE)
    hear(drift, 0, code, 500)
    assert drift.correction is None


def test_what_was_long_ago_counts_no_more():
    drift = VoiceDrift(TABLE)
    frames = frames_until_doubt(drift, 0, 2)
    for _ in range(50):
        hear(drift, 1, 2, frames - 1)
        hear(drift, 1, 0, 300)
    assert drift.correction is None


def test_a_turn_of_an_unknown_voice_and_an_end_are_not_judged():
    drift = VoiceDrift(TABLE)
    for turn, voice, first_code in ((0, None, 2), (1, ONE, CODES)):  # CODES: an end.
        for _ in range(500):
            drift.hear(turn, voice, np.array([first_code, 2]))
        assert drift.correction is None


def test_a_table_without_ratios_corrects_nothing():
    table = replace(TABLE, voices=tuple(replace(voice, ratios=b"") for voice in TABLE.voices))
    drift = VoiceDrift(table)
    for _ in range(500):
        drift.hear(0, table.voices[0], np.full(BOOKS, 2))
    assert drift.correction is None


# The embedded voice

CONFIG = read_model_config(EMBEDDED_FOLDER)
assert CONFIG.voices is not None
WITHOUT = replace(
    CONFIG,
    voices=replace(
        CONFIG.voices, voices=tuple(replace(voice, ratios=b"") for voice in CONFIG.voices.voices)
    ),
)
# Voices, and what they say: in three of them a turn is in another voice if nothing is done.
DIALOGUES = [
    ("awb deep", "What did the man at the station tell you?"),
    ("rms 180", "He told me that the train is late."),
    ("awb", "The people in this country work very hard."),
    ("rms 165", "Yes, and they sing while they work."),
    ("awb", "You have to be careful when you cross the road."),
    ("rms 191", "I know, there are too many cars."),
    ("awb deep", "I would rather stay at home and cook something."),
    ("rms 165", "That sounds like a good evening."),
    ("rms deep", "Where did you put the keys?"),
    ("rms high", "They are on the table in the hall."),
    ("rms 135", "Thank you for the letter."),
    ("awb 205", "You are welcome, it was a pleasure."),
]


def rows_of(config) -> list[Row]:
    pairs = zip(DIALOGUES[::2], DIALOGUES[1::2], strict=True)
    return [
        Row(
            config,
            encode_script(f"[S1] {first} [S2] {second}"),
            replace(config.defaults, seed=seed),
            chosen=(one, two),
        )
        for seed, ((one, first), (two, second)) in enumerate(pairs)
    ]


def farthest(row: Row, codec: Codec) -> float:
    """How far the turn that is farthest from its voice is from it: of the sound, in nepers."""
    assert row.turns is not None
    starts, codes = [start for start, _ in row.turns.begun], row.codes()
    found = []
    for (start, number), end in zip(row.turns.begun, [*starts[1:], len(codes)], strict=True):
        voice = row.turns.voices[row.turns.passages[number].speaker]
        assert voice is not None
        heard = voice_traits(codec.decode(codes[start:end]))
        found.append(distance(heard.spectrum, voice.spectrum))
    return max(found)


@pytest.mark.processor
def test_turns_of_the_embedded_voice_come_back_and_others_stay_as_they_are():
    model, codec = load(EMBEDDED_FOLDER), load_codec(EMBEDDED_FOLDER)
    before, after = rows_of(WITHOUT), rows_of(CONFIG)
    run_to_end(model, before)
    run_to_end(model, after)
    far = [[farthest(row, codec) for row in rows] for rows in (before, after)]
    changed = [
        not np.array_equal(one.codes(), other.codes())
        for one, other in zip(before, after, strict=True)
    ]
    assert sum(changed) >= 2 and not all(changed)
    # Another voice is 1.2 nepers away or more.
    assert max(far[0]) > 1.5 and max(far[1]) < 1.2, far
    for is_changed, one, other in zip(changed, *far, strict=True):
        assert not is_changed or other < one - 0.2, far
