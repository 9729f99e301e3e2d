"""What the Compare tab says of a comparison: its title, and how far it is."""

from __future__ import annotations

from datetime import datetime

from dia_demo.services.listening.comparison import Comparison
from dia_demo.services.listening.plan.names import (
    LABELS,
    capitalize,
    label_in_sentence,
    value_texts,
)
from dia_demo.services.listening.plan.setting import differences
from dia_demo.services.listening.render import RenderEnded, RenderEvent
from dia_demo.services.wording import local_time, plural, time_left
from dia_demo.ui.person_runs import ABANDONED
from dia_demo.ui.status import Status, explain, factor

SOME_FAILED = "Some takes failed. Press Resume to retry them."
AUDIO_REMOVED = (
    "Its audio was removed to free space on this machine; votes and result are kept. Resume "
    "generates the same audio again."
)
DELETED = Status("idle", "Ready", "The comparison was deleted.", 0.0, "The comparison was deleted")

_MOST_NAMED = 100


def status_of(event: RenderEvent) -> Status:
    """The progress of the whole plan in one line."""
    if isinstance(event, RenderEnded):
        return _ended_status(event)
    made = f"{event.pairs_made} of {plural(event.pairs, 'pair')} ready"
    parts = [made]
    if event.realtime_factor is not None:
        parts.append(f"{factor(event.realtime_factor)} realtime")
    left = "" if event.left is None else f"{time_left(event.left)} left"
    if left:
        parts.append(left)
    if event.takes_failed:
        parts.append(f"{plural(event.takes_failed, 'take')} failed")
    reached = min(0.98, event.fraction)
    return Status("running", event.phase, ", ".join(parts), reached, "Generating", left=left)


def _ended_status(event: RenderEnded) -> Status:
    made = f"{event.pairs_made} of {plural(event.pairs, 'pair')}"
    reached = event.pairs_made / event.pairs
    if event.failures:
        detail = f"{made} ready. {SOME_FAILED} The first error: {event.failures[0]}"
        return Status("failed", "Incomplete", detail, reached, SOME_FAILED)
    if event.stopped:
        detail = f"{made} ready. Press Resume to generate the rest."
        return Status("stopped", "Stopped", detail, reached, f"Stopped, {detail}")
    return Status("done", "Done", f"{made} ready.", 1.0, "All pairs are ready")


def failed_status(error: Exception) -> Status:
    """Why a request failed."""
    message = explain(error)
    return Status("failed", "Request failed", message, 0.0, f"Failed: {message}")


def status_of_stored(comparison: Comparison, was_abandoned: bool) -> Status:
    """How far a comparison is that was opened. was_abandoned: its last run was stopped because
    nobody watched it."""
    plan = comparison.plan
    made = sum(trial.made for trial in plan.trials)
    if made == len(plan.trials):
        return Status("done", "Ready", f"{made} of {plural(made, 'pair')} ready.", 1.0)
    if plan.sound_removed and not comparison.running:
        return Status("stopped", "Audio removed", AUDIO_REMOVED, 0.0)
    ready = f"{made} of {plural(len(plan.trials), 'pair')} ready."
    reached = made / len(plan.trials)
    if comparison.running:
        return Status("running", "Generating", ready, reached)
    if failures := comparison.failed_takes():
        detail = f"{ready} {SOME_FAILED} The first error: {failures[0].message}"
        return Status("failed", "Incomplete", detail, reached)
    rest = f"{ready} Press Resume to generate the rest."
    notes = (ABANDONED,) if was_abandoned else ()
    return Status("stopped", "Incomplete", rest, reached, notes=notes)


def title(comparison: Comparison, zone: str | None = None) -> str:
    """What is compared, how, how far it is, and when it began. zone: the browser's time zone."""
    plan = comparison.plan
    kinds = {"preference": "blind", "abx": "ABX", "sighted": "side by side"}
    kind = "round" if len(plan.settings) > 2 else kinds[plan.kind]
    named = ", ".join(
        f"{label_in_sentence(LABELS[name])} {' or '.join(value_texts(name, values))}"
        for name, values in differences(plan.settings).items()
    )
    when = _when(plan.created, zone)
    state = f"{len(comparison.votes)} of {len(plan.trials)} judged"
    state += ", audio removed" if plan.sound_removed else ""
    named = capitalize(named) or "Identical settings"
    # On a phone only the beginning is shown.
    return f"{named[:_MOST_NAMED]} · {state} · {kind}{when}"


def _when(created: str, zone: str | None) -> str:
    """When a plan was made; nothing if its file does not say so."""
    try:
        return f" · {local_time(datetime.fromisoformat(created), zone)}"
    except ValueError:
        return ""
