"""The state of a dialogue in words."""

from __future__ import annotations

from dia_demo.engine.events import Figures
from dia_demo.engine.time_left import TimeLeft
from dia_demo.services.dialogue.events import ChunkProgress, ChunkReport
from dia_demo.services.dialogue.plan import DialoguePlan
from dia_demo.services.wording import duration, plural, time_left
from dia_demo.ui.status import Status, factor


def planned_status(plan: DialoguePlan, found: int, left: TimeLeft | None) -> Status:
    """The script is split, and some parts may be there already."""
    parts = plural(len(plan.chunks), "part")
    about = f"{parts}, about {duration(plan.script.seconds / plan.request.speed)} in all"
    made = f"{found} of {parts} were made before" if found else about
    return _running_status(made, 0.0, left)


def progress_status(event: ChunkProgress, made: int, count: int) -> Status:
    """Parts are being made."""
    done, total = duration(event.done_seconds), duration(event.total_seconds)
    detail = f"{made} of {plural(count, 'part')}, {done} of about {total}"
    # Only the end of the run fills the bar.
    return _running_status(detail, min(0.98, event.done_seconds / event.total_seconds), event.left)


def finished_status(figures: Figures, reports: tuple[ChunkReport, ...]) -> Status:
    """The whole is there; parts that kept a fault are named."""
    made = (
        f"{duration(figures.audio_seconds)} of audio in {plural(len(reports), 'part')}, "
        f"{factor(figures.realtime_factor)} realtime"
    )
    notes = tuple(
        f"Note: part {report.index + 1} has a fault: {report.verdict}. Listen to it, and make it "
        "again if you hear it."
        for report in reports
        if report.verdict != "good"
    )
    return Status("done", "Done", f"{made}.", 1.0, f"Done, {made}", notes)


def stopped_status(made: int, count: int, begun: int, fraction: float | None) -> Status:
    """Stop was pressed; what is complete is kept. begun: parts that are not complete, but can be
    played."""
    kept = _kept_clause(made, count, begun)
    return Status("stopped", "Stopped", kept, fraction or 0.0, f"Stopped. {kept}")


def failed_status(message: str, made: int, count: int) -> Status:
    """A part could not be made; what is complete is kept."""
    detail = f"{message} {_kept_clause(made, count)}"
    return Status("failed", "Generation failed", detail, 0.0, f"Failed: {message}")


def incomplete_status(made: int, count: int, begun: int) -> Status:
    """What a page says of a dialogue that an earlier run left; see `stopped_status`."""
    kept = f"Your last dialogue is not complete. {_kept_clause(made, count, begun)}"
    return Status("stopped", "Not complete", kept, made / count, kept)


def _kept_clause(made: int, count: int, begun: int = 0) -> str:
    heard = f" You can play the beginning of {plural(begun, 'more part')}." if begun else ""
    if not made:
        heard = f", but you can play the beginning of {plural(begun, 'part')}" if begun else ""
        return f"No part was complete yet{heard}. Press Resume to begin again."
    return f"{made} of {plural(count, 'part')} are kept.{heard} Press Resume to make the rest."


def _running_status(detail: str, fraction: float, left: TimeLeft | None) -> Status:
    words = "" if left is None else f"{time_left(left)} left"
    shown = ", ".join(filter(None, [detail, words]))
    return Status("running", "Generating", shown, fraction, "Generating", left=words)
