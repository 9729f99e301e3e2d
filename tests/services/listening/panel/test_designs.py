"""What each design accepts as an answer."""

import pytest

from dia_demo.errors import InputError
from dia_demo.services.listening.panel.designs import Design, check_answer, check_attributes

GOOD = [
    ("preference", 2, {"better": 0}, {"better": 0, "strength": None}),
    ("preference", 2, {"better": 0, "strength": 3}, {"better": 0, "strength": None}),
    ("preference", 2, {"better": 2, "strength": 3, "more": 1}, {"better": 2, "strength": 3}),
    ("abx", 3, {"x": 1}, {"x": 1}),
    ("cmos", 2, {"score": -3}, {"score": -3}),
    ("mushra", 3, {"scores": [0, 50, 100]}, {"scores": [0, 50, 100]}),
    ("bws", 4, {"best": 4, "worst": 1}, {"best": 4, "worst": 1}),
    ("mos", 1, {"score": 5}, {"score": 5}),
]
BAD = [
    ("preference", 2, {"better": 3}),
    ("preference", 2, {"better": True}),
    ("preference", 2, {"better": 1, "strength": 4}),
    ("preference", 2, None),
    ("abx", 3, {"x": 0}),
    ("abx", 3, {"x": "1"}),
    ("cmos", 2, {"score": 4}),
    ("cmos", 2, {"score": 1.0}),
    ("mushra", 3, {"scores": [0, 50]}),
    ("mushra", 3, {"scores": [0, 50, 101]}),
    ("mushra", 3, {"scores": "050"}),
    ("bws", 4, {"best": 2, "worst": 2}),
    ("bws", 4, {"best": 5, "worst": 2}),
    ("mos", 1, {"score": 0}),
    ("mos", 1, {}),
]


@pytest.mark.parametrize(("design", "clips", "answer", "stored"), GOOD)
def test_valid_answers_keep_the_fields_of_their_design(design, clips, answer, stored):
    assert check_answer(Design(design), clips, answer) == stored


@pytest.mark.parametrize(("design", "clips", "answer"), BAD)
def test_invalid_answers_are_refused(design, clips, answer):
    with pytest.raises(InputError):
        check_answer(Design(design), clips, answer)


def test_attributes_are_those_offered_each_once():
    assert check_attributes(("voice", "noise"), ["noise", "noise", "voice"]) == ["voice", "noise"]
    with pytest.raises(InputError, match="no attribute 'pace'"):
        check_attributes(("voice", "noise"), ["pace"])
