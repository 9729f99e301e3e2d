"""Pauses of a given length: how they are written, and what is none."""

import pytest

from dia_demo.errors import InputError
from dia_demo.text.dialogue.pauses import find_pauses, remove_pauses, simplify_pauses
from dia_demo.text.formats.table import write_turns


@pytest.mark.parametrize(
    "written, seconds",
    [
        ("(pause)", 1), ("(Pause 1.5)", 1.5), ("(pause 1,5 s)", 1.5), ("(pause: 2 seconds)", 2),
        ("(pause for 3 s)", 3), ("(pause .5)", 0.5), ("(pause 0)", 0), ("[pause:1.5s]", 1.5),
        ("[pause: 250ms]", 0.25), ("[pause]", 1), ('<break time="1.5s"/>', 1.5), ("<break/>", 1),
        ("<break time='500ms' />", 0.5), ('<break strength="weak" time="2s"></break>', 2),
    ],
)  # fmt: skip
def test_pauses_are_read_as_programs_and_people_write_them(written, seconds):
    script = f"[S1] One {written} two."
    (pause,) = find_pauses(script)
    assert (script[pause.start : pause.end], pause.seconds) == (written, seconds)
    assert find_pauses(simplify_pauses(script))[0].seconds == seconds
    assert remove_pauses(script).split() == "[S1] One two.".split()


@pytest.mark.parametrize(
    "words", ["(laughs)", "pause 3", "(pauses)", "a pause (short)", "<breakfast/>", "[S1]"]
)
def test_other_words_are_no_pause(words):
    assert find_pauses(words) == []


def test_a_pause_that_is_too_long_is_refused():
    with pytest.raises(InputError, match=r"\(pause 31\) is too long: a pause may last 0 to 30 s"):
        find_pauses("[S1] One. (pause 31) Two.")


@pytest.mark.parametrize(
    "script",
    [
        "Anna: Hello. <break time='2s'/> You there?\nBen: Yes.",
        "<speak>Hello. <break time='2s'/> You there?</speak>",
        "Anna: Hello.\n[pause:2s]\nBen: Yes.",
    ],
)
def test_a_pause_stays_in_a_script_of_another_format(script):
    assert [pause.seconds for pause in find_pauses(write_turns(simplify_pauses(script)))] == [2]
