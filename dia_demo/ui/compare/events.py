"""The events of the Compare tab: which component calls which handler."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gradio as gr

from dia_demo.ui import form
from dia_demo.ui.compare import reload
from dia_demo.ui.compare.form.fields import QUESTION, SHARED, SIDE_FIELDS
from dia_demo.ui.compare.handlers import CompareHandlers
from dia_demo.ui.compare.layout import CompareParts
from dia_demo.ui.compare.setup import START, VOICE_MENUS, SetupHandlers
from dia_demo.ui.files import connect_download
from dia_demo.ui.runs import IMMEDIATE, PRIVATE, Trigger, choice_event, connect_change, connect_run

# The choices that decide which fields are shown.
QUESTIONS = ("kind", "differs", "separate")
# Of choices that come while one is answered, the last is answered too.
LAST: dict[str, Any] = {"trigger_mode": "always_last", **IMMEDIATE}
# Times are shown in the browser's time zone.
WITH_ZONE = "(key) => [key, Intl.DateTimeFormat().resolvedOptions().timeZone]"


def connect(
    page: gr.Blocks,
    handlers: CompareHandlers,
    take_fields: Mapping[str, Any],
    kept: gr.HTML,
    tabs: gr.Tabs,
    person: gr.BrowserState,
    saved: gr.BrowserState,
) -> None:
    """Connect the tab's components.

    take_fields: those of `form.FIELDS` on the page; kept: the message of what was done with kept
    voices; person: the key of this browser; saved: the values of Compare's own form.
    """
    parts = handlers.parts
    # The server checks the key when the page opens and gives a new browser one.
    zone = gr.JSON(visible=False)
    entered = page.load(
        handlers.enter, [person, zone], [person, parts.kept], js=WITH_ZONE, **IMMEDIATE
    )
    restored, opened = reload.connect(page, entered, parts, tabs, handlers, person, saved)
    _connect_setup(page, parts, take_fields, kept, handlers.setup, person, restored)
    _connect_making(page, parts, take_fields, handlers, person, opened)
    _connect_kept(parts, handlers, person)


def _connect_setup(
    page: gr.Blocks,
    parts: CompareParts,
    take_fields: Mapping[str, Any],
    kept: gr.HTML,
    handlers: SetupHandlers,
    person: gr.BrowserState,
    restored: gr.events.Dependency,
) -> None:
    fields = parts.fields
    shared = [take_fields[name] for name in SHARED]
    everything, described = [*parts.inputs, *shared], [parts.note, parts.report]
    # What changes other fields is described once they have changed.
    watched = [field for name, field in fields.items() if name not in QUESTIONS]
    changes = [page.load, *(field.change for field in (*watched, *shared, parts.settled))]
    # One event, which is never in progress twice: an older description cannot come after a newer.
    # As sent: gradio would refuse a choice that was sent just before its menu got others.
    inputs = [person, *everything]
    connect_change(changes, handlers.describe, inputs, described, preprocess=False)
    menus = [fields[name] for name in VOICE_MENUS]
    asked = [person, fields["differs"], *menus]
    as_sent: dict[str, Any] = {"preprocess": False, **IMMEDIATE}
    for changed in _connect_question(parts, handlers, restored):
        offered = changed.then(handlers.offer_voices, asked, menus, **as_sent)
        offered.then(None, None, parts.settled, js="() => performance.now()")
    changes = [page.load, person.change, kept.change]
    connect_change(changes, handlers.offer_voices, asked, menus, preprocess=False)
    _connect_fields(parts, handlers)
    parts.report.click(handlers.repair, everything, parts.writer, **IMMEDIATE)
    source = [fields["differs"], *(take_fields[name] for name in form.FIELDS)]
    start = [fields[name] for name in START]
    parts.copy.click(handlers.copy, source, start, **IMMEDIATE)


def _connect_question(
    parts: CompareParts, handlers: SetupHandlers, restored: gr.events.Dependency
) -> list[gr.events.Dependency]:
    """What is compared, and how: each choice changes the fields that are shown."""
    fields = parts.fields
    first_side = [fields[f"a_{name}"] for name in SIDE_FIELDS]
    second_side = [fields[f"b_{name}"] for name in SIDE_FIELDS]
    question = [fields[name] for name in QUESTIONS]
    values = [fields[name] for name in QUESTION[1:]]
    words = [parts.before, parts.between, parts.after]
    shown = [*values, fields["separate"], *second_side, *parts.rows.values(), *words]
    chosen = [*question, *first_side]
    return [
        choice_event(fields["differs"])(handlers.choose_setting, chosen, shown, **IMMEDIATE),
        fields["kind"].input(handlers.choose_kind, question, shown, **LAST),
        fields["separate"].input(handlers.separate, chosen, shown, **LAST),
        restored.then(handlers.choose_kind, question, shown, **IMMEDIATE),
    ]


def _connect_fields(parts: CompareParts, handlers: SetupHandlers) -> None:
    """A model brings its own defaults, but only one that was chosen: values that come from
    elsewhere are not replaced by them."""
    fields = parts.fields
    first_side = [fields[f"a_{name}"] for name in SIDE_FIELDS]
    second_side = [fields[f"b_{name}"] for name in SIDE_FIELDS]
    values = [fields[name] for name in QUESTION[1:]]
    model = [fields[name] for name in ("differs", "a_model", "a_precision")]
    choice_event(fields["a_model"])(
        handlers.change_model, model, [*first_side, *values], **IMMEDIATE
    )
    choice_event(fields["b_model"])(
        handlers.change_second_model, fields["b_model"], second_side, **IMMEDIATE
    )
    choices = (
        ("first_choice", handlers.choose_first, first_side),
        ("second_choice", handlers.choose_second, second_side),
    )
    for name, handler, side in choices:
        choice_event(fields[name])(handler, [fields["differs"], fields[name]], side, **IMMEDIATE)


def _connect_making(
    page: gr.Blocks,
    parts: CompareParts,
    take_fields: Mapping[str, Any],
    handlers: CompareHandlers,
    person: gr.BrowserState,
    opened: gr.events.Dependency,
) -> None:
    outputs = [
        parts.status,
        parts.setup,
        parts.lab,
        parts.kept,
        parts.make,
        parts.stop,
        parts.resume,
        parts.downloads,
        parts.make_problem,
        parts.kept_problem,
    ]
    shared = [take_fields[name] for name in SHARED]
    chosen = [person, parts.kept]
    triggers = [
        Trigger(parts.make, handlers.make, [person, *parts.inputs, *shared]),
        Trigger(parts.resume, handlers.resume, chosen),
    ]
    connect_run(
        page,
        handlers.run,
        triggers,
        outputs,
        handlers.idle,
        chosen,
        stop_inputs=[person],
        result=".lab-room",
    )
    watching = opened.then(handlers.rejoin, person, outputs, **PRIVATE)
    for after in (watching.then, watching.failure):
        after(handlers.idle, chosen, [parts.make, parts.stop, parts.resume], **IMMEDIATE)


def _connect_kept(parts: CompareParts, handlers: CompareHandlers, person: gr.BrowserState) -> None:
    outputs = [parts.kept, parts.lab, parts.setup, parts.resume, parts.downloads, parts.status]
    outputs += [parts.make_problem, parts.kept_problem]
    chosen = [person, parts.kept]
    parts.show.click(handlers.show, chosen, outputs, **IMMEDIATE)
    parts.again.click(handlers.again, chosen, outputs, **IMMEDIATE)
    parts.delete.click(handlers.delete, chosen, outputs, **IMMEDIATE)
    parts.upload.upload(handlers.load, [person, parts.upload], outputs, **PRIVATE)
    # A file is written on request; the page downloads it when it is complete.
    file, problem, menu = parts.file, parts.download_problem, parts.format_menu
    connect_download(parts.zip, handlers.zip, chosen, file, problem)
    connect_download(parts.csv, handlers.csv, chosen, file, problem)
    connect_download(parts.audio, handlers.audio, chosen, file, problem, menu)
    changed = [parts.downloads, parts.kept, parts.kept_problem]
    parts.lab.click(handlers.refresh_downloads, chosen, changed, **IMMEDIATE)
