"""The status of a run in words: events to a `Status`, exceptions to one sentence.

Pure functions without gradio. `dia_demo.ui.html` turns a `Status` into HTML.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from dia_demo.config import PARAMS
from dia_demo.engine.events import (
    AudioChunk,
    Cancelled,
    Event,
    Failed,
    Figures,
    Finished,
    Loading,
    Progress,
    Result,
    Started,
    Waiting,
)
from dia_demo.engine.time_left import TimeLeft
from dia_demo.errors import DiaDemoError
from dia_demo.services.listening.plan.names import LABELS
from dia_demo.services.wording import ENDINGS, length_remark, sharing_clause, time_left

log = logging.getLogger(__name__)

UNEXPECTED = (
    "An internal error ended this run. The details are in the program's log. Please try again."
)
# The settings as messages name them, for the command line and for programs, and as the page does.
_LABELS = LABELS | {name: spec.label for name, spec in PARAMS.items()}
_SETTING = re.compile(rf"(?:^|(?<=: ))({'|'.join(_LABELS)})(?= must be)")


@dataclass(frozen=True)
class Status:
    """The state of a run, in one line.

    state: idle, waiting, loading, running, done, stopped, cut or failed. fraction None: progress is
    unknown. announcement is read by screen readers: it changes with the state, not with every
    figure. notes stay for the whole run, for example what was done to a voice prompt.
    """

    state: str
    headline: str
    detail: str = ""
    fraction: float | None = None
    announcement: str = ""
    notes: tuple[str, ...] = ()
    # The time left in words, which the tab's title shows as well.
    left: str = ""


IDLE = Status("idle", "Ready", "Press Generate.", 0.0)
PREPARING = Status("loading", "Getting ready", "Reading the script.", 0.0, "Getting ready")


def status_of(event: Event, previous: Status) -> Status:
    """The status after `event`; `previous` if the event changes nothing that is shown."""
    if isinstance(event, AudioChunk):
        return previous
    notes = event.notes if isinstance(event, Started) else previous.notes
    left = (
        _left_clause(event.left)
        if isinstance(event, Waiting | Loading | Started | Progress)
        else ""
    )
    return replace(_status_of(event, previous), notes=notes, left=left)


def _status_of(event: Event, previous: Status) -> Status:
    match event:
        case Waiting(place=position, left=left):
            return _waiting_status(position, left)
        case Loading():
            detail = _with_left(event.text, event.left)
            return Status("loading", "Getting ready", detail, event.fraction, event.what)
        case Started(seed=seed):
            detail = _with_left(f"Started, seed {seed}", event.left)
            return Status("running", "Generating", detail, 0.0, "Generating")
        case Progress():
            return _running_status(event)
        case Finished(result=result):
            return _finished_status(result.figures)
        case Cancelled(result=result):
            return _stopped_status(result, previous.fraction)
        case Failed(message=message):
            return failed_status(in_page_words(message))
    raise AssertionError(f"unknown event: {event!r}")


def failed_status(message: str) -> Status:
    """The status of a run without a take."""
    return Status("failed", "Generation failed", message, 0.0, f"Failed: {message}")


def with_remarks(status: Status, remarks: Sequence[str]) -> Status:
    """The status with the remarks on its take as notes, but for those it says already."""
    notes = (f"Note: {remark}" for remark in remarks if remark not in status.detail)
    return replace(status, notes=(*status.notes, *notes))


def explain(error: Exception) -> str:
    """An exception as a sentence for the page. Unexpected exceptions are logged instead."""
    if isinstance(error, DiaDemoError):
        return in_page_words(str(error))
    log.error("Unexpected error", exc_info=error)
    return UNEXPECTED


def in_page_words(message: str) -> str:
    """A message in which a setting has its label: "Max tokens must be", not "max_tokens"."""
    return _SETTING.sub(lambda match: _LABELS[match[1]], message)


def _waiting_status(position: int, left: TimeLeft | None) -> Status:
    place = _with_left(f"Place {position} in the queue", left)
    detail = f"{place} It starts as soon as a place is free."
    return Status("waiting", "Waiting", detail, None, f"Waiting, place {position}")


def _left_clause(left: TimeLeft | None) -> str:
    """The time until a run is complete, if it is known."""
    return "" if left is None else f"{time_left(left)} left"


def _with_left(text: str, left: TimeLeft | None) -> str:
    return f"{', '.join(filter(None, [text, _left_clause(left)]))}."


def _running_status(progress: Progress) -> Status:
    fraction = 0.0
    if progress.expected_seconds > 0:
        # The total is estimated from the script, so only the end of the run fills the bar.
        fraction = min(0.98, progress.audio_seconds / progress.expected_seconds)
    made = f"{progress.audio_seconds:.1f} s of audio"
    speed = f"{factor(progress.realtime_factor)} realtime"
    detail = ", ".join(
        filter(None, [made, speed, sharing_clause(progress.others), _left_clause(progress.left)])
    )
    return Status("running", "Generating", detail, fraction, "Generating")


def _finished_status(figures: Figures) -> Status:
    made = (
        f"{figures.audio_seconds:.1f} s of audio in {figures.wall_seconds:.1f} s, "
        f"{factor(figures.realtime_factor)} realtime{_sharing_suffix(figures)}"
    )
    if figures.finish_reason == "max_tokens":
        headline, remark = "Cut off at Max tokens", length_remark(figures)
        advice = "The script was not finished: raise Max tokens or shorten the script."
        detail = f"{made}. {remark or advice}"
        return Status("cut", headline, detail, 1.0, f"{headline}. {detail}")
    return Status("done", "Done", f"{made}.", 1.0, f"Done, {made}")


def _sharing_suffix(figures: Figures) -> str:
    return f" {sharing_clause(figures.shared_with)}" if figures.shared_with else ""


def _stopped_status(result: Result | None, reached: float | None) -> Status:
    if result is None or result.samples is None or not len(result.samples):
        detail = "There was no speech yet."
        return Status("stopped", "Stopped", detail, 0.0, "Stopped, no speech")
    amount = f"{result.figures.audio_seconds:.1f} s of audio kept"
    # The bar stays where the run was stopped; only a whole take fills it.
    return Status("stopped", "Stopped", f"{amount}.", reached or 0.0, f"Stopped, {amount}")


FIGURE_NAMES = (
    "Audio",
    "Wall time",
    "Realtime factor",
    "Tokens only",
    "Codec only",
    "First audio after",
    "Seed",
    "Ended",
    "Precision",
    "Model",
)
NO_FIGURES = [(name, "–") for name in FIGURE_NAMES]


def figure_rows(figures: Figures) -> list[tuple[str, str]]:
    """The figures of a take as (name, value) pairs, the most important first."""

    def factor_of(seconds: float) -> str:
        return factor(figures.audio_seconds / seconds) if seconds else "–"

    first = figures.first_audio_seconds
    values = (
        f"{figures.audio_seconds:.1f} s",
        f"{figures.wall_seconds:.1f} s",
        factor(figures.realtime_factor),
        factor_of(figures.token_seconds),
        factor_of(figures.codec_seconds),
        "–" if first is None else f"{first:.1f} s",
        str(figures.seed),
        ENDINGS.get(figures.finish_reason, figures.finish_reason),
        f"{figures.precision} on {figures.device}",
        figures.model.rsplit("/", 1)[-1],
    )
    return list(zip(FIGURE_NAMES, values, strict=True))


def factor(value: float) -> str:
    """A realtime factor: two decimals below 10."""
    return f"{value:.2f}x" if value < 10 else f"{value:.0f}x"


def tokens_hint(max_tokens: int, seconds: float) -> str:
    """A number of tokens with its length: "1,720 tokens ≈ 20 s"."""
    decimals = 0 if seconds >= 10 else 1
    return f"{max_tokens:,} tokens ≈ {seconds:.{decimals}f} s"
