"""A script that is made in parts, and verdicts in place of those on random weights."""

from __future__ import annotations

from collections.abc import Callable

from dia_demo.engine.row_stream import RowStream
from dia_demo.services.judging.judge import Fault, Verdict

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


def stop_at_step(
    monkeypatch, is_time: Callable[[RowStream], bool], stop: Callable[[], object]
) -> None:
    """Call `stop` after the first step for which `is_time`, in the thread that makes it: one that
    watches a run may be too late."""
    note_step, is_over = RowStream.note_step, False

    def note(stream: RowStream, seconds: float, others: int) -> None:
        nonlocal is_over
        note_step(stream, seconds, others)
        if not is_over and is_time(stream):
            is_over = True
            stop()

    monkeypatch.setattr(RowStream, "note_step", note)
