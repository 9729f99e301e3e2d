"""Repairs of scripts: each removes its finding, adds no error, and loses no word."""

import pytest

from dia_demo.text.checks.script_check import check_script, fix_all
from dia_demo.text.script import parse_turns
from tests.helpers.long import long_after
from tests.helpers.scripts import random_scripts


def test_fix_all_leaves_nothing_to_fix():
    script = "John: I’m 20 (laugh).\nMary: It’s $5, *really*! 😀"
    fixed = fix_all(script, check_script)
    assert fixed == "[S1] I'm twenty (laughs).\n[S2] It's five dollars, really! [S1]"
    assert check_script(fixed).fixes == ()
    for script in random_scripts(25):
        assert check_script(fix_all(script, check_script)).fixes == (), script


@pytest.mark.slow
@pytest.mark.parametrize("count", long_after(1, (75, 150)))
def test_a_repair_removes_its_finding_without_adding_errors(count):
    repairs = set()
    for script in random_scripts(count):
        options = {"byte_limit": 60, "max_seconds": 9.0}
        report = check_script(script, **options)
        errors = {finding.code for finding in report.findings if finding.level == "error"}
        for finding in report.findings:
            if finding.repaired is None:
                continue
            repairs.add(finding.code)
            after = check_script(finding.repaired, **options).findings
            messages = {(left.code, left.message) for left in after}
            assert (finding.code, finding.message) not in messages, script
            assert {left.code for left in after if left.level == "error"} <= errors, script
    assert repairs >= {
        "no_first_tag", "same_speaker", "unknown_tag", "unknown_sound", "no_last_tag",
        "starts_with_s2", "emoji", "unreadable", "too_many_bytes",
    }  # fmt: skip


@pytest.mark.parametrize("count", long_after(1, (100, 500)))
def test_repairs_never_lose_a_word_but_where_they_say_so(count):
    structural = {"no_first_tag", "same_speaker", "no_last_tag", "starts_with_s2"}
    for script in random_scripts(count):
        for finding in check_script(script).findings:
            if finding.repaired is not None and finding.code in structural:
                words = [turn.text.split() for turn in parse_turns(script)]
                after = [turn.text.split() for turn in parse_turns(finding.repaired)]
                assert sum(after, []) == sum(words, []), script
