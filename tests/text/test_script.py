"""Scripts: their bytes are exact, their turns have line numbers, and their length is estimated."""

import pytest

from dia_demo.errors import InputError
from dia_demo.text.checks.script_check import check_script
from dia_demo.text.script import Turn, encode_script, expected_seconds, parse_turns
from tests.helpers.scripts import GOOD, codes_of, random_scripts


def test_bytes_are_utf8_with_one_byte_a_tag():
    assert encode_script("[S1] Hé\n[S2]  ok ") == b"\x01 H\xc3\xa9\n\x02  ok "
    assert encode_script("[S1] b", "[S2] a") == b"\x02 a\n\x01 b"


@pytest.mark.parametrize("ending", ["", " [S2]", "\n[S1]", " [S2] [S1] "])
def test_a_prompts_last_tag_is_no_turn_before_the_script(ending):
    """Some takes had a garbled turn there."""
    assert encode_script("[S1] b", f"[S2] a{ending}") == b"\x02 a\n\x01 b"
    assert encode_script("\n [S2] b [S1]", f"[S2] a{ending}") == b"\x02 a\n\n \x02 b \x01"


def test_a_prompts_last_tag_is_the_scripts_if_that_has_none():
    assert encode_script("b", "[S2] a [S1]") == b"\x02 a \x01\nb"


def test_tags_without_words_are_no_words_of_a_prompt():
    assert encode_script("[S1] b", "[S2] ") == b"\x01 b"


def test_what_is_no_tag_stays_as_it_is():
    assert encode_script("[s1] [S3] (S1) [S 1]") == b"[s1] [S3] (S1) [S 1]"


@pytest.mark.parametrize("script", ["", "  \n\t ", "[S1] a\x00b", "[S1] \ud83d half"])
def test_a_script_the_model_cannot_read_is_refused(script):
    with pytest.raises(InputError):
        encode_script(script)
    assert any(finding.level == "error" for finding in check_script(script).findings)


def test_a_transcript_the_model_cannot_read_is_refused():
    with pytest.raises(InputError):
        encode_script("[S1] fine", "[S1] \x00")
    assert "unreadable_transcript" in codes_of("[S1] fine", transcript="[S1] \x00")


def test_an_accepted_script_survives_encoding():
    for script in random_scripts(300):
        try:
            raw = encode_script(script)
        except InputError:
            continue
        back = raw.replace(b"\x01", b"[S1]").replace(b"\x02", b"[S2]")
        assert back.decode("utf-8") == script
        assert check_script(script).num_bytes == len(raw)


# Turns and seconds


def test_each_turn_has_its_line_number():
    assert parse_turns("\nfirst\n[S1] one [S2]\ntwo\n[S1]") == (
        Turn(0, "first", 2),
        Turn(1, "one", 3),
        Turn(2, "two", 3),
    )


def test_the_report_counts_every_turn():
    report = check_script(GOOD)
    assert (report.num_speakers, len(report.turns)) == (2, 3)


def test_expected_seconds_depend_on_the_spoken_text():
    assert expected_seconds("[S1] " + "a" * 150) == pytest.approx(10.0)
    assert expected_seconds("[S1]    a\n\n\n") == expected_seconds("[S1] a")
    assert expected_seconds("[S1] aa [S2] bb") > expected_seconds("[S1] aabb")
    assert expected_seconds("[S1] abc", 0.5) == pytest.approx(1.5)
    assert expected_seconds("") == 0
