"""Findings of a script's length, and checks of the longest scripts, which cost linear work."""

import json
import re

import pytest

from dia_demo.errors import InputError
from dia_demo.services.settings import Settings
from dia_demo.services.synthesis import Synthesis
from dia_demo.services.take import Request
from dia_demo.text.checks.script_check import check_script
from dia_demo.text.script import MAX_SCRIPT_CHARACTERS, encode_script
from tests.helpers.long import long_after
from tests.helpers.models.known import DIA_NAME, NANO
from tests.helpers.processes import run_python
from tests.helpers.scripts import codes_of, finding_of

CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


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
    assert finding_of(
        over.repaired + script[5:], "over_max_tokens", max_seconds=20, byte_limit=2000
    ).repaired


# The byte limit


def test_a_script_over_the_limit_is_cut_at_a_sentence():
    script = "[S1] One sentence. Two sentences. [S2] The third is too long to fit."
    over = finding_of(script, "too_many_bytes", byte_limit=40)
    fitting = encode_script(script)[:40].decode()
    assert over.level == "error"
    assert fitting[-7:] + " | rd is too long" in over.message
    assert "too_many_bytes" not in codes_of(script)
    assert over.repaired == "[S1] One sentence. Two sentences."


def test_one_cut_makes_a_long_script_fit_as_it_is_read():
    """Forty turns, with numbers that are longer in words."""
    lines = [
        f"[S{n % 2 + 1}] Turn {n} has 1,234 words, and costs $5.50 at 10:45." for n in range(40)
    ]
    synthesis = Synthesis(Settings())
    for model, tokens, normalise in (("nano", 1024, False), (DIA_NAME, 3072, True)):
        report = synthesis.models[model].check("\n".join(lines), tokens, normalise=normalise)
        assert not report.can_be_made
        cuts = [one for one in report.findings if one.repair_label == "Cut after the last sentence"]
        assert [one.code for one in cuts] == ["too_many_bytes"]
        after = synthesis.models[model].check(cuts[0].repaired, tokens, normalise=normalise)
        assert after.can_be_made and len(after.turns) >= 2
        assert not {"too_many_bytes", "over_max_tokens"} & {one.code for one in after.findings}


def test_advice_on_max_tokens_can_be_followed():
    script = "[S1] " + "This is one of many sentences. " * 30
    over = finding_of(script, "over_max_tokens", max_seconds=10.0, most_seconds=100.0)
    assert "Raise max tokens" in over.message
    over = finding_of(script, "over_max_tokens", max_seconds=10.0, most_seconds=37.0)
    assert "Raise" not in over.message and "at most 37 s" in over.message


def test_no_message_holds_a_control_character():
    script = "[S1] Bell\x07 (od\x1bd). [\x02x] [S2] Hi \x01. " * 40
    for finding in check_script(script, byte_limit=500).findings:
        assert not CONTROL.search(finding.message), finding
    info = NANO
    with pytest.raises(InputError) as refused:
        Request("[S1] Hello. [S2] Ho. " * 200, info.config.defaults, info).encode()
    assert "[S2] Ho." in str(refused.value) and not CONTROL.search(str(refused.value))
    assert not CONTROL.search(str(InputError(script)))


@pytest.mark.parametrize(
    "script", ["[S1]", "[S1] [S2]", "[S1]\n[S2] ... [S1] ?!", "[S1] \U0001f600"]
)
def test_a_script_without_words_is_refused(script):
    (finding,) = check_script(script).findings
    assert finding.code == "empty" and finding.level == "error"
    with pytest.raises(InputError, match="no words"):
        encode_script(script)


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


CHECK = """
import sys
from dia_demo.text.checks import script_check

script_check.MAX_SCRIPT_CHARACTERS = 10**9
script = eval(sys.argv[1])
check = script_check.check_script(script, byte_limit=len(script) // 8)
print(" ".join(finding.code for finding in check.findings))
"""


# Seconds of work if it grows with the script; hours, and so a failure, if it grows with its square.
@pytest.mark.parametrize(
    "script",
    long_after(2, ["'[s1' + ' ' * 4_000_000 + 'x'", "'a. ' * 300_000", "'[S1]a' * 200_000"]),
    ids=["spaces in a tag", "sentences", "tags"],
)
@pytest.mark.slow
def test_the_work_of_a_check_grows_only_with_the_script(script, tmp_path):
    assert "too_many_bytes" in run_python(CHECK, script, cache=tmp_path).stdout


def test_above_the_bound_nothing_is_looked_at_but_the_length(monkeypatch):
    for name in ("parse_turns", "remarks_on", "normalise"):
        monkeypatch.setattr(f"dia_demo.text.checks.script_check.{name}", None)
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


LINES = [
    f"Sentence number {chr(97 + k)} of a long script with many words in it." for k in range(26)
]


@pytest.mark.parametrize(
    "script",
    [
        "\n\n".join(
            f"{n}\n00:00:{n:02d},000 --> 00:00:{n + 1:02d},000\n{'AB'[n % 2]}nn: {line}"
            for n, line in enumerate(LINES, 1)
        ),
        json.dumps([{"speaker": "AB"[n % 2], "text": line} for n, line in enumerate(LINES)]),
        "Sure! Here is your dialogue:\n\n"
        + "\n\n".join(f"**{'AB'[n % 2]}nn:** {line}" for n, line in enumerate(LINES)),
    ],
    ids=["subtitles", "JSON", "a chat bot"],
)
def test_one_click_makes_a_long_script_of_another_format_fit(script):
    report = check_script(script)
    (finding,) = (finding for finding in report.findings if finding.code == "too_many_bytes")
    assert finding.repair_label == "Make turns and cut after the last sentence"
    after = check_script(finding.repaired)
    assert after.can_be_made and finding.repaired.startswith(f"[S1] {LINES[0]}")
    assert not {"too_many_bytes", "format", "names"} & {left.code for left in after.findings}
