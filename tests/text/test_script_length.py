"""Findings of a script's length, and checks of the longest scripts, which cost linear work."""

import gc
import time

import pytest

from dia_demo.text.script import MAX_SCRIPT_CHARACTERS, encode_script
from dia_demo.text.script_check import check_script
from tests.helpers.scripts import codes_of, finding_of


def test_a_voice_of_unknown_habits_has_no_natural_length():
    assert not {"too_short", "too_long"} & codes_of("[S1] Hi.", natural_seconds=None)


def test_length_findings_follow_the_expected_seconds():
    assert "too_short" in codes_of("[S1] Hi.")
    long = "[S1] " + "word " * 70
    assert "too_long" in codes_of(long)
    over = finding_of(long, "over_max_tokens", max_seconds=10.0)
    assert over.level == "warning" and "10 s" in over.message
    assert "over_max_tokens" not in codes_of(long, max_seconds=40.0)


def test_a_cut_script_fits_both_limits():
    script = "[S1] " + "This is one of many sentences. " * 40
    over = finding_of(script, "too_many_bytes", byte_limit=1000, max_seconds=20.0)
    after = check_script(over.repaired, byte_limit=1000, max_seconds=20.0)
    assert after.num_bytes < 1000 and 15 < after.expected_seconds <= 20
    assert finding_of(over.repaired + script[5:], "over_max_tokens", max_seconds=20).repaired


# The byte limit


def test_a_script_over_the_limit_is_cut_at_a_sentence():
    script = "[S1] One sentence. Two sentences. [S2] The third is too long to fit."
    over = finding_of(script, "too_many_bytes", byte_limit=40)
    fitting = encode_script(script)[:40].decode()
    assert over.level == "error"
    assert fitting[-7:] + " | rd is too long" in over.message
    assert "too_many_bytes" not in codes_of(script)
    assert over.repaired == "[S1] One sentence. Two sentences."


def test_the_transcript_counts_towards_the_limit():
    script, transcript = "[S1] Short enough. And more.", "[S2] " + "word " * 4
    assert "too_many_bytes" not in codes_of(script, byte_limit=40)
    over = finding_of(script, "too_many_bytes", byte_limit=40, transcript=transcript)
    assert over.repaired == "[S1] Short enough."
    full = finding_of(script, "too_many_bytes", byte_limit=10, transcript=transcript)
    assert "transcript" in full.message and full.repaired is None


def test_a_cut_never_splits_a_character():
    for limit in range(3, 30):
        over = finding_of("[S1]ääääääääääääääääääääääää", "too_many_bytes", byte_limit=limit)
        assert len(encode_script(over.repaired)) in (limit, limit - 1)


# Long and hostile scripts: linear work up to a bound, and none above it


def seconds_to_check(script):
    """Processor seconds of the fastest of a few checks, without collecting garbage."""
    times = []
    for _ in range(3):
        gc.collect()
        gc.disable()
        start = time.thread_time()
        check_script(script, byte_limit=len(script) // 2)
        times.append(time.thread_time() - start)
        gc.enable()
    return min(times)


@pytest.mark.parametrize(
    "grown, size",
    [
        (lambda size: "[s1" + " " * size + "x", 2_000),
        (lambda size: "[S1]a" * (size // 5), 20_000),
        (lambda size: "a. " * (size // 3), 30_000),
    ],
    ids=["spaces in a tag", "tags", "sentences"],
)
@pytest.mark.slow
def test_four_times_the_script_takes_about_four_times_as_long(grown, size, monkeypatch):
    monkeypatch.setattr("dia_demo.text.script_check.MAX_SCRIPT_CHARACTERS", 10**9)
    assert seconds_to_check(grown(4 * size)) < 10 * seconds_to_check(grown(size))


def test_above_the_bound_nothing_is_looked_at_but_the_length(monkeypatch):
    for name in ("parse_turns", "remarks_on", "normalise"):
        monkeypatch.setattr(f"dia_demo.text.script_check.{name}", None)
    for script, transcript in (("a" * (MAX_SCRIPT_CHARACTERS + 1), ""), ("a", "b" * 20_000)):
        (finding,) = check_script(script, transcript=transcript).findings
        assert (finding.code, finding.level, finding.repaired) == (
            "too_many_characters",
            "error",
            None,
        )
        assert f"1 to {MAX_SCRIPT_CHARACTERS:,} are allowed" in finding.message


def test_the_longest_script_is_checked_in_full():
    report = check_script("[S1] Words. [S2] More. ".ljust(MAX_SCRIPT_CHARACTERS, "a"))
    assert len(report.turns) == 2 and "too_many_bytes" in {
        finding.code for finding in report.findings
    }
