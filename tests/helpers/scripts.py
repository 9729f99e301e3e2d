"""Findings of a script, for tests: by their codes, and in scripts made of every kind of mistake."""

import random
from collections.abc import Iterator

from dia_demo.text.checks.script_check import Finding, check_script

GOOD = (
    "[S1] Did you hear that the old bridge opens again on Friday?\n"
    "[S2] I did (laughs), and I will be the first one across.\n"
    "[S1] Then take me with you. [S2]"
)
# Pieces that make every finding appear in some order, near-misses and hostile ones included.
PIECES = (
    "[S1]", "[S2]", "[S1] ", "\n[S2] ", "[s1]", "(S2)", "[Speaker 1]", "\nS1: ", "[S3]", "[John]",
    "[laughs]", "(laugh)", "(laughs)", "(cough)", "(a remark that is no sound)", "(", "]", "[S",
    " Hello there.", " How are you?", "\n", "  ", "ä", "漢字", "😀", "👩\u200d💻", "20", "1]",
    " A rather long sentence without an end to it that goes on", "”", "…", "\x00", "\ud800",
)  # fmt: skip


def codes_of(script: str, **options) -> set[str]:
    return {finding.code for finding in check_script(script, **options).findings}


def finding_of(script: str, code: str, **options) -> Finding:
    """The first finding with this code."""
    findings = check_script(script, **options).findings
    matching = [finding for finding in findings if finding.code == code]
    assert matching, f"no {code} in {codes_of(script, **options)}"
    return matching[0]


def random_scripts(count: int) -> Iterator[str]:
    """Always the same scripts."""
    rng = random.Random(7)
    for _ in range(count):
        yield "".join(rng.choice(PIECES) for _ in range(rng.randint(1, 25)))
