"""The download of a model on the page: what it needs, its progress, how it ended.

It is shown while the chosen model is not on this machine, and while any other is downloaded. It
follows the form; while something happens, a timer polls for it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import Any

import gradio as gr

from dia_demo.config import PRECISIONS
from dia_demo.files import PAGE_FILES
from dia_demo.services.downloads.downloads import DownloadState, DownloadStatus
from dia_demo.services.downloads.needs import Needs, needs_of
from dia_demo.services.people import is_key
from dia_demo.services.synthesis import Synthesis
from dia_demo.services.wording import about_duration, byte_size, duration, plural
from dia_demo.ui import form
from dia_demo.ui.runs import IMMEDIATE, Updates, connect_change, event_value
from dia_demo.ui.status import factor

SECONDS_BETWEEN_QUESTIONS = 1.0
EXAMPLE_SECONDS = 10.0
# Read by screen readers: once, and not with every figure.
ANNOUNCED = {
    DownloadState.HERE: "Download finished",
    DownloadState.LOOKING: "Asking the hub",
    DownloadState.NEEDED: "This model must be downloaded first",
    DownloadState.RUNNING: "Downloading",
    DownloadState.FAILED: "Download failed",
}
# What the buttons of the card do, and their labels.
LABELS = {
    "download": "Download",
    "resume": "Resume",
    "cancel": "Cancel",
    "retry": "Try again",
    "delete": "Delete the partial download",
    "discard": "Delete the download",
}
CHANGING = (DownloadState.LOOKING, DownloadState.RUNNING)


@dataclass(frozen=True)
class DownloadPanel:
    """card: the download. timer: runs while it changes. described: the model whose config was known
    when the page was last updated, "" where it was not."""

    card: gr.HTML
    timer: gr.Timer
    described: gr.State


def build_layout() -> DownloadPanel:
    """The card, empty until the page has loaded."""
    script = (PAGE_FILES / "download.js").read_text(encoding="utf-8")
    card = gr.HTML(elem_id="download", js_on_load=script)
    timer = gr.Timer(SECONDS_BETWEEN_QUESTIONS, active=False)
    return DownloadPanel(card, timer, gr.State(""))


class DownloadHandlers:
    """The events of the panel.

    sampling: the fields whose ranges and defaults a model's config gives. change_model: their
    updates for a model.
    """

    def __init__(
        self,
        synthesis: Synthesis,
        panel: DownloadPanel,
        sampling: Sequence[gr.blocks.Block],
        change_model: Callable[[str], Sequence],
    ) -> None:
        self.synthesis, self.panel = synthesis, panel
        self.sampling, self.change_model = list(sampling), change_model

    def refresh(
        self, request: gr.Request, key: object, model: str, precision: str, described: str
    ) -> Updates:
        """The card for the chosen model; the sliders as well, once its config has arrived."""
        if model not in self.synthesis.models or precision not in PRECISIONS:
            return {self.panel.timer: gr.skip()}
        status = self._status_to_show(model, person_of(request, key))
        updates: Updates = {
            self.panel.timer: gr.Timer(active=status is not None and status.state in CHANGING),
            self.panel.card: "" if status is None else self._card(status, precision),
        }
        known = model if self.synthesis.models[model].folder is not None else f"unknown {model}"
        if described == f"unknown {model}" and known == model:
            updates |= dict(zip(self.sampling, self.change_model(model), strict=True))
        return updates | {self.panel.described: known}

    def act(
        self,
        event: gr.EventData,
        request: gr.Request,
        key: object,
        model: str,
        precision: str,
        described: str,
    ) -> Updates:
        """Download, cancel, try again or delete, for the model that the card shows."""
        downloads, person = self.synthesis.downloads, person_of(request, key)
        status = self._status_to_show(model, person)
        match event_value(event, "action"), status:
            case "download" | "resume", None:  # Somebody else's download has just ended.
                downloads.start(model, person)
            case _, None:
                pass
            case "download" | "resume", _:
                downloads.start(status.model, person)
            case "cancel", _:
                downloads.cancel(status.model, person)
            case "retry", _ if status.total:
                downloads.start(status.model, person)
            case "retry", _:
                downloads.look_again(status.model)
            case "delete" | "discard", _:
                downloads.remove(status.model)
        return self.refresh(request, key, model, precision, described)

    def _status_to_show(self, model: str, person: str) -> DownloadStatus | None:
        """The chosen model's status if it is not here, or was downloaded for this person; else that
        of a download in progress; else that of the program's own model, if it failed."""
        downloads = self.synthesis.downloads
        chosen = downloads.status(model, person)
        if chosen.state is not DownloadState.HERE or chosen.mine:
            return chosen
        for other in downloads.running:
            return downloads.status(other, person)
        start = downloads.status(self.synthesis.settings.runtime.model, person)
        return start if start.state is DownloadState.FAILED else None

    def _card(self, status: DownloadStatus, precision: str) -> str:
        info = self.synthesis.models[status.model]
        if status.state is not DownloadState.NEEDED:
            return card_html(info.title, status)
        runtime = replace(
            self.synthesis.settings.runtime, model=info.name, precision=precision, device="cpu"
        )
        needs = needs_of(info, runtime, self.synthesis.speed)
        return card_html(info.title, status, figures(status, needs))


def person_of(request: gr.Request, key: object) -> str:
    """Who asks: the browser's key, or the page where there is none."""
    return key if isinstance(key, str) and is_key(key) else request.session_hash or ""


def figures(status: DownloadStatus, needs: Needs) -> list[tuple[str, str]]:
    """What a download and the model need against what is there, as (name, value)."""
    disk = byte_size(status.missing)
    if needs.prepared:
        disk += f", and {byte_size(needs.prepared)} for weights prepared in {needs.precision}"
    if status.free_disk is not None:
        disk += f"; {byte_size(status.free_disk)} free"
    memory = f"{byte_size(needs.memory)} in {needs.precision}"
    if needs.free_memory is not None:
        memory += f"; {byte_size(needs.free_memory)} free"
    if needs.shortage:
        memory = f"it cannot run here: {needs.shortage}"
    speed = "not known before the first take"
    if needs.realtime is not None:
        wait = about_duration(EXAMPLE_SECONDS / needs.realtime)
        speed = f"{factor(needs.realtime)} realtime: {wait} for {EXAMPLE_SECONDS:.0f} s of speech"
    return [
        ("Download", byte_size(status.missing)),
        ("Disk", disk),
        ("Memory", memory),
        ("Speed here", speed),
    ]


def card_html(title: str, status: DownloadStatus, rows: Sequence[tuple[str, str]] = ()) -> str:
    """The card of a model's download. rows: of `figures`."""
    cells = "".join(
        f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for name, value in rows
    )
    buttons = "".join(
        f'<button type="button" data-action="{action}">{LABELS[action]}</button>'
        for action in _actions(status)
    )
    return (
        f'<div class="download" data-state="{status.state}">'
        f'<div class="download-words"><p>{_line(title, status)}</p>{_bar(title, status)}'
        f'<dl class="download-figures">{cells}</dl></div>'
        f'<div class="download-buttons">{buttons}</div>'
        f'<p class="sr-only" role="status" aria-live="polite">{escape(ANNOUNCED[status.state])}</p>'
        "</div>"
    )


def _actions(status: DownloadStatus) -> list[str]:
    """What the buttons do, the first one the main one."""
    match status.state:
        case DownloadState.NEEDED:
            actions = ["resume" if status.on_disk else "download"]
        case DownloadState.RUNNING:
            actions = ["cancel"] if status.mine else []
        case DownloadState.FAILED:
            again = "resume" if status.on_disk and status.total else "retry"
            if not status.can_retry:
                return ["discard"] if status.on_disk else []
            actions = [again]
        case _:
            actions = []
    return [*actions, "delete"] if status.on_disk else actions


def _line(title: str, status: DownloadStatus) -> str:
    """What is the case, as HTML."""
    name, size = f"<strong>{escape(title)}</strong>", byte_size(status.on_disk)
    if status.total:
        size += f" of {byte_size(status.total)}"
    match status.state:
        case DownloadState.LOOKING:
            return f"{name} is not on this machine. Asking the hub for its size."
        case DownloadState.NEEDED if status.on_disk:
            return f"{name} is partially downloaded: {size}."
        case DownloadState.NEEDED:
            return f"{name} is not on this machine."
        case DownloadState.RUNNING:
            return f"Downloading {name}: {escape(progress_text(status))}"
        case DownloadState.FAILED:
            text = f"{name} is not ready. {escape(status.problem)}"
            return f"{text} Downloaded so far: {size}." if status.on_disk else text
        case _:
            return f"{name} is downloaded. Press Generate."


def progress_text(status: DownloadStatus) -> str:
    """Bytes, speed and time left, and who else waits for them."""
    if not status.total:
        return "asking the hub for its size."
    parts = [f"{byte_size(status.here)} of {byte_size(status.total)}"]
    if status.waiting is not None:
        parts.append(f"waiting for the hub for {duration(status.waiting)}")
    elif status.speed:
        parts.append(f"{byte_size(status.speed)}/s")
        if status.seconds_left is not None:
            parts.append(f"{about_duration(status.seconds_left)} left")
    text = f"{', '.join(parts)}. The download continues if you close this page."
    if status.mine and status.others:
        text += f" {plural(status.others, 'other visitor')} asked for it as well."
    return text


def _bar(title: str, status: DownloadStatus) -> str:
    if status.state is not DownloadState.RUNNING or not status.total:
        return ""
    percent = round(100 * status.here / status.total)
    return (
        f'<div class="bar" role="progressbar" aria-label="Download of {escape(title)}" '
        f'aria-valuemin="0" aria-valuemax="100" aria-valuenow="{percent}">'
        f'<div class="bar-fill" style="width: {percent}%"></div></div>'
    )


def connect(
    page: gr.Blocks,
    fields: dict[str, Any],
    person: gr.BrowserState,
    handlers: DownloadHandlers,
) -> None:
    """Connect the panel with the form's model and precision."""
    panel = handlers.panel
    inputs = [person, fields["model"], fields["precision"], panel.described]
    outputs = [panel.card, panel.timer, panel.described, *handlers.sampling]
    changes = [fields["model"].change, fields["precision"].change, panel.timer.tick, page.load]
    connect_change(changes, handlers.refresh, inputs, outputs, preprocess=False)
    panel.card.click(handlers.act, inputs, outputs, **IMMEDIATE)


def sampling_fields(fields: dict[str, Any]) -> list[gr.blocks.Block]:
    """The fields that `FormHandlers.change_model` updates, in its order."""
    return [*(fields[name] for name in form.SAMPLING), fields["normalise"]]
