"""A script as it will be read: every kind of thing that people write and nobody says as written."""

from __future__ import annotations

import random
import re

import pytest

from dia_demo.text.normaliser import normalise
from dia_demo.text.script import TAG
from tests.text.readings import READ_AS, SCRIPTS

PIECES = [
    *("[S1]", "[S2]", " ", " ", " ", "\n", *".,!?'\"()-_#*&@%x+=~|`/é½", "–", "—", "…", "’", "“"),
    *("$3.50", "£", "10:45", "7pm", "p.m.", "3/4", "2025", "1999", "25%", "1st", "'90s", "5", "km"),
    *("Dr.", "St.", "No.", "U.S.A.", "NASA", "etc.", "John:", "Mary:", "[John]", "S1:", "v2.0"),
    *("and", "Hello", "I", "A", "K", "007", "1,000", ".5", "COVID-19", "<b>", "</b>", "<laughs>"),
    *("(laughs)", "😀", "a@b.com", "https://x.io/a", "°C", "\u200b", "\u00a0", "&amp;"),
]


@pytest.mark.parametrize("written, read", READ_AS)
def test_what_is_written_is_read_in_words(written, read):
    assert normalise(f"[S1] {written}").text == f"[S1] {read}"


@pytest.mark.parametrize("written, read", SCRIPTS)
def test_scripts_are_read_by_their_speakers(written, read):
    assert normalise(written).text == read


@pytest.mark.parametrize(
    "written, read",
    [
        ("The FBI at 7pm.", "[S1] The eff bee eye at seven pee em."),
        ("Vitamin C, plan B", "[S1] Vitamin see, plan bee"),
        ("A cat and I", "[S1] A cat and I"),
        ("Café naïve", "[S1] Cafe naive"),
    ],
)
def test_a_voice_without_letters_gets_their_names(written, read):
    assert normalise(written, letter_names=True).text == read


@pytest.mark.parametrize("letter_names", [False, True])
def test_readings_of_anything(letter_names):
    """Nothing is left to read in words, reading again changes nothing, changes tell all."""
    draw = random.Random(3)
    for _ in range(1500):
        script = "".join(draw.choices(PIECES, k=draw.randint(1, 12)))
        reading = normalise(script, letter_names)
        assert not re.search(r"\d|[–—…’“\u200b\u00a0]", TAG.sub("", reading.text)), script
        assert normalise(reading.text, letter_names).text == reading.text, script
        assert applied(script, reading.changes) == reading.text, script


def applied(script, changes):
    """The script with the changes made to it."""
    parts, done = [], 0
    for change in changes:
        assert change.start >= done and script[change.start : change.end] == change.written
        parts += [script[done : change.start], change.read]
        done = change.end
    return "".join([*parts, script[done:]])


def test_changes_name_the_words_that_changed():
    changes = normalise("[S1] It costs $5, at 7pm. [S2] Fine.").changes
    assert [(change.written, change.read) for change in changes] == [
        ("$5", "five dollars"),
        ("7pm", "seven P M"),
    ]


def test_a_script_in_plain_words_has_no_changes():
    script = "[S1] The river was quiet this morning. (laughs)\n[S2] Then let us go, shall we?"
    assert normalise(script, letter_names=True).changes == ()


def test_parts_mark_the_words_that_changed():
    reading = normalise("[S1] I’m here, it’s $5.")
    assert reading.parts() == [
        ("[S1] ", False),
        ("I'm", True),
        (" here, ", False),
        ("it's", True),
        (" ", False),
        ("five dollars.", True),
    ]
