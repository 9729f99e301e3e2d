"""training/distill: what a student's takes lose, by words."""

from __future__ import annotations

import numpy as np
import pytest

from dia_demo.errors import InputError
from tests.helpers.models.checkpoints import write_small
from training.distill import __main__ as command
from training.distill import judge

FIRST, SECOND = "My sister lives in a town near the sea.", "How much does this red shirt cost?"
THIRD = "The bus was late because of the heavy snow."
DIALOGUE = f"[S1] {FIRST} [S2] {SECOND} [S1] {THIRD} [S2]"


def test_a_dialogue_that_was_cut_off_is_not_whole():
    heard = judge.Heard([DIALOGUE] * 3, [True, False, True])
    assert judge.share_whole([DIALOGUE] * 3, heard) == pytest.approx(2 / 3)


def test_the_difference_is_that_of_the_same_scripts():
    """One of seven words wrong in every tenth take, in the other checkpoint's everywhere."""
    scripts = [f"[S1] {SECOND}"] * 100
    wrong = "How much does this red shirt host?"
    before = [wrong if k % 10 == 0 else SECOND for k in range(100)]
    found = judge.compare(scripts, before, [wrong] * 100)
    words = len(SECOND.split())
    assert (found.before, found.after) == pytest.approx((0.1 / words, 1 / words))
    spread = 1.96 * np.sqrt(0.09 / 100) / words
    assert found.low == pytest.approx(0.9 / words - spread, abs=0.2 * spread)
    assert found.high == pytest.approx(0.9 / words + spread, abs=0.2 * spread)
    same = judge.compare(scripts, before, before)
    assert same.before == same.after and same.low == same.high == 0


def test_more_sentences_than_there_are_is_refused():
    assert len(set(judge.sentences(200))) == 200
    with pytest.raises(InputError, match="There are 200 sentences to judge, not 201"):
        judge.sentences(201)


def test_a_codec_that_the_recogniser_does_not_hear_is_refused(tmp_path):
    folder = write_small(tmp_path, codec=True)
    config = folder / "codec" / "config.json"
    config.write_text(config.read_text().replace("16000", "24000"))
    with pytest.raises(
        InputError, match="The recogniser hears 16000 Hz, and .* speaks at 24000 Hz"
    ):
        judge.listen(str(folder), ["[S1] Yes."], "float32", 1)


@pytest.mark.long
def test_a_checkpoint_loses_nothing_against_itself(capsys):
    command.main("judge --student nano --sentences 3 --dialogues 2".split())
    words, whole = capsys.readouterr().out.splitlines()
    errors = words.split("word error ")[1].split(";")[0].split(" and ")
    assert errors[0] == errors[1] and words.endswith("between 0.0% and 0.0% (95%)")
    assert whole.startswith("2 dialogues: ") and float(errors[0].rstrip("%")) < 30


@pytest.mark.parametrize(
    ("heard", "expected"),
    [
        (f"{FIRST} {SECOND} {THIRD}", True),
        (f"{FIRST} how much does the bread cost {THIRD}", True),
        (f"{FIRST} {THIRD}", False),
        (f"{FIRST} {SECOND}", False),
        (f"{FIRST} {SECOND} {SECOND} {THIRD}", False),
        (f"{FIRST} {SECOND} {THIRD} {THIRD}", False),
        (f"{SECOND} {FIRST} {THIRD}", False),
        (f"{FIRST} how much {THIRD}", False),
        ("", False),
    ],
)
def test_a_dialogue_is_whole_if_nothing_is_dropped_or_said_twice(heard, expected):
    assert judge.is_whole(DIALOGUE, heard) is expected
