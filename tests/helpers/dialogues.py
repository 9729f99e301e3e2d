"""A script that is made in parts, and verdicts in place of those on random weights."""

from __future__ import annotations

from dia_demo.services.dialogue.judging.judge import Fault, Verdict

SCRIPT = (
    "[S1] One two three four. [S2] Five six seven. (pause 0.5) [S1] Eight, nine and ten now. "
    "[S2] And this is the last of the lines here."
)
GOOD = Verdict((), False, 2.0)
BAD = Verdict((Fault.TOO_FAST,), False, 9.0)


def judge_by_test(monkeypatch) -> dict[tuple[int, int], Verdict]:
    """Random weights say nothing: the verdicts on attempts, which a test fills in; else good."""
    verdicts: dict[tuple[int, int], Verdict] = {}
    monkeypatch.setattr(
        "dia_demo.services.dialogue.run.judge",
        lambda take, *_: verdicts.get((take.chunk, take.attempt), GOOD),
    )
    return verdicts
