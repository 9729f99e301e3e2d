"""A script as it will be read: every kind of thing that people write and nobody says as written."""

from __future__ import annotations

import random
import re

import pytest

from dia_demo.text.normaliser import normalise
from dia_demo.text.reading.rules import rule, word
from dia_demo.text.script import TAG
from tests.helpers.long import long_after
from tests.helpers.models.known import NANO
from tests.text.readings import READ_AS, SCRIPTS
from tests.text.readings_of_amounts import AMOUNTS
from tests.text.readings_of_dates import DATES
from tests.text.readings_of_numbers import NUMBERS
from tests.text.readings_of_words import WORDS

PIECES = [
    *("[S1]", "[S2]", " ", " ", " ", "\n", *".,!?'\"()-_#*&@%x+=~|`/é½", "–", "—", "…", "’", "“"),
    *("$3.50", "£", "10:45", "7pm", "p.m.", "3/4", "2025", "1999", "25%", "1st", "'90s", "5", "km"),
    *("Dr.", "St.", "No.", "U.S.A.", "NASA", "etc.", "John:", "Mary:", "[John]", "S1:", "v2.0"),
    *("and", "Hello", "I", "A", "K", "007", "1,000", ".5", "COVID-19", "<b>", "</b>", "<laughs>"),
    *("(gasps)", "[laughs]", "(pause 2)", "NOT", "US", "IV", "H.264", "10^6", "x²", "1-800-CALL"),
    *("911", "1 000", "$-5", "€2.500,00", "1h 30m", "June 3-5", "<3", "C++", "a<b", "[1]", "AT&T"),
    *("mg/dL", "kWh", "0:45", "24:00", "192.168.0.1", "2024/10/01", "main.py", "N/A", "II", "£m"),
    *("(laughs)", "😀", "a@b.com", "https://x.io/a", "°C", "\u200b", "\u00a0", "&amp;"),
]


@pytest.mark.parametrize("written, read", [*READ_AS, *AMOUNTS, *DATES, *NUMBERS, *WORDS])
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
        ("NVIDIA", "[S1] en vidia"),
        ("A cat and I", "[S1] A cat and I"),
        ("Café naïve", "[S1] Cafe naive"),
    ],
)
def test_a_voice_without_letters_gets_their_names(written, read):
    assert normalise(written, letter_names=True).text == read


@pytest.mark.parametrize(
    "script",
    [
        "My brother works at night, and I don't like it. Who did that?",
        "It's a long way to the river. Wait for us, said the old man!",
        "I am not going. She's as tall as I am, isn't she?",
        "John and Betty sat against the wall. I waited for it all week, amongst friends.",
    ],
)
def test_capitals_are_read_as_small_letters(script):
    assert normalise(script.upper(), letter_names=True).text == f"[S1] {script}"


def test_capital_words_among_small_ones_are_read_as_small_ones():
    written = "I am NOT going, this is SO good. NEVER call the FBI, NASA or UCLA."
    small = "[S1] I am not going, this is so good. Never call the"
    assert normalise(written).text == f"{small} F B I, NASA or U C L A."
    spelled = normalise(written, letter_names=True).text
    assert spelled == f"{small} eff bee eye, Nasa or you see ell ay."


@pytest.mark.parametrize(
    "written, read, left_out",
    [
        ("(gasps) No! (laughs)", "No! (laughs)", ["(gasps)"]),
        ("Hi. (clears throat) So *sighs* yes.", "Hi. So yes.", ["(clears throat)", "(sighs)"]),
        ("[laughs] Ha. [door slams] [Applause]", "(laughs) Ha.", ["[door slams]", "[Applause]"]),
        ("(sings) La. (softly) Go. *smiles*", "La. Go.", ["(sings)", "(softly)", "(smiles)"]),
        ("(laughing) Well. <cough>", "(laughs) Well.", ["(coughs)"]),
        ("He (my brother) is (probably) here.", "He (my brother) is (probably) here.", []),
    ],
)
def test_sounds_that_the_embedded_voice_has_not_learnt_are_left_out_with_a_remark(
    written, read, left_out
):
    reading = normalise(f"[S1] {written}", letter_names=True)
    assert reading.text == f"[S1] {read}"
    assert len(reading.remarks) == (1 if left_out else 0)
    assert all(f"“{sound}”" in reading.remarks[0] for sound in left_out)


@pytest.mark.parametrize(
    "written, read",
    [
        ("[S1] Hi. [S2] (gasps) [S1] Oh.", "[S1] Hi. Oh."),
        ("[S1] Hi.\n[S2] (gasps)!\n[S1] Oh.\n[S2] No.", "[S1] Hi.\nOh.\n[S2] No."),
        ("[S1] (gasps) [S2] Hi. [S1] (sighs)", "[S2] Hi."),
        ("[S1] Hi. [S2] (laughs) [S1] Oh.", "[S1] Hi. [S2] (laughs) [S1] Oh."),
        ("[S1] Hi. [S2] (gasps) (coughs) [S1] (sighs) [S2] Oh. [S1]", "[S1] Hi. [S2] Oh. [S1]"),
        ("[S1] (gasps)", "[S1]"),
    ],
)
def test_a_turn_of_sounds_that_are_left_out_is_left_out(written, read):
    reading = normalise(written, letter_names=True)
    assert reading.text == read
    assert bool(reading.remarks) == ("(laughs)" not in written)


def test_dia_keeps_its_sounds():
    script = "[S1] (gasps) No! (laughs) [S2] (clears throat) Hi. [S1]"
    assert normalise(script).text == script


@pytest.mark.parametrize("pause", ["(pause 1.5)", "(pause)", "[pause: 2 s]", "(long pause)"])
def test_a_pause_is_not_read_aloud(pause):
    assert normalise(f"[S1] Wait. {pause} Go on.").text == "[S1] Wait. ... Go on."


@pytest.mark.parametrize(
    "pause", ["(pause 1.5)", "(pause)", "[pause: 2 s]", '<break time="1.5s"/>', "(Pause for 20 ms)"]
)
@pytest.mark.parametrize("letter_names", [False, True])
def test_pauses_that_are_kept_stay_as_they_are_written(pause, letter_names):
    script = f"[S1] Wait {pause}{pause}. Then 3 (beat) of 4 {pause}. [S2] {pause} \ue000 Oh."
    reading = normalise(script, letter_names, keeps_pauses=True)
    words = f"Wait {pause}{pause}. Then three ... of four {pause}. [S2] {pause} \ue000 Oh."
    assert reading.text == f"[S1] {words}"
    assert [change.read for change in reading.changes] == ["three", "...", "four"]
    assert normalise(reading.text, letter_names, keeps_pauses=True).changes == ()


@pytest.mark.parametrize(
    "written",
    [
        "on 3/4/2025",
        "He visited US.",
        "at 7.30",
        "0:45",
        "0:00",
        "12/25",
        "5 - 3",
        "12 345",
        "Elizabeth I was here.",
    ],
)
def test_what_may_be_meant_otherwise_gets_a_remark(written):
    (remark,) = normalise(f"[S1] {written}").remarks
    assert " is read as “" in remark


@pytest.mark.parametrize(
    "written", ["It is 5 km.", "on 3 May 2025", "the US Army", "13/4/2025", "on 12/25"]
)
def test_what_is_clear_gets_no_remark(written):
    assert normalise(f"[S1] {written}").remarks == ()


@pytest.mark.parametrize("letter_names", [False, True])
@pytest.mark.parametrize("count", long_after(1, (300, 1500)))
def test_readings_of_anything(letter_names, count):
    """Nothing is left to read in words, reading again changes nothing, changes tell all."""
    draw = random.Random(3)
    for _ in range(count):
        script = "".join(draw.choices(PIECES, k=draw.randint(1, 12)))
        reading = normalise(script, letter_names)
        assert not re.search(r"\d|[–—…’“\u200b\u00a0]", TAG.sub("", reading.text)), script
        assert normalise(reading.text, letter_names).text == reading.text, script
        assert applied(script, reading.changes) == reading.text, script


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("[S1] 1 [S12] 2[S3]", ["1", "2"]),
        ("[S1234] [s1]", ["1", "2", "3", "4", "1"]),
        ("1[S2]3", ["1", "3"]),
        ("[S[S1]1", ["1"]),
    ],
)
def test_no_rule_looks_into_tags(text, found):
    assert [match[0] for match in rule(r"\d", word("")).matches(text)] == found


def test_an_empty_match_is_found_once():
    assert [match.span() for match in rule("(?<=a)", word("")).matches("aba")] == [(1, 1), (3, 3)]


def test_the_rest_of_a_tag_is_text_after_a_match_that_ends_inside_it():
    assert [match[0] for match in rule(r"a \[S|\d", word("")).matches("a [S1] [S2]")] == [
        "a [S",
        "1",
    ]


@pytest.mark.parametrize("script", ["[S1] Hello. [s2] Hi. [s1]", "[S1] Fine.[s1]"])
def test_tags_in_lower_case_are_not_read_as_censored_words(script):
    assert normalise(script).text == script.replace("[s", "[S")


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


def test_the_checker_reports_what_is_left_out_or_may_be_meant_otherwise():
    report = NANO.check("[S1] (gasps) On 3/4/2025. [S2] Hi. [S1]", 400)
    remarks = [finding for finding in report.findings if finding.code == "reading"]
    assert [finding.level for finding in remarks] == ["tip", "tip"]
    assert "“3/4/2025” is read as “March fourth" in remarks[0].message
    assert "“(gasps)”" in remarks[1].message


@pytest.mark.parametrize("written", ["Plan A is good.", "an A plus", "from A to Z", "I got an A."])
def test_the_letter_a_is_no_article(written):
    assert " ay" in normalise(f"[S1] {written}", letter_names=True).text
    assert " ay" not in normalise("[S1] This is a plan, A plan.", letter_names=True).text
