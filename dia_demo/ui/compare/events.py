"""The events of the Compare tab: which component calls which handler."""

from __future__ import annotations

import gradio as gr

from dia_demo.ui.compare import reload
from dia_demo.ui.compare.form import SIDE_FIELDS, VOICE
from dia_demo.ui.compare.handlers import CompareHandlers
from dia_demo.ui.compare.layout import CompareParts
from dia_demo.ui.generate import form
from dia_demo.ui.generate.layout import GenerateParts
from dia_demo.ui.runs import IMMEDIATE, PRIVATE, Trigger, connect_run

DOWNLOAD = """({ file }) => {
  if (!file) return;
  const link = document.createElement("a");
  const path = file.split("/").map(encodeURIComponent).join("/");
  link.href = new URL(`gradio_api/file=${path}`, document.baseURI);
  link.download = file.split("/").pop();
  link.click();
}"""


def connect(
    page: gr.Blocks,
    parts: CompareParts,
    generate: GenerateParts,
    handlers: CompareHandlers,
    tabs: gr.Tabs,
    person: gr.BrowserState,
    saved: gr.BrowserState,
) -> None:
    """Connect the tab's components. person: the key of this browser; saved: the form's values."""
    # The server checks the key when the page opens and gives a new browser one.
    entered = page.load(handlers.enter, person, [person, parts.kept], **IMMEDIATE)
    reload.connect(page, entered, parts, tabs, handlers, person, saved)
    _connect_setup(page, parts, generate, handlers)
    _connect_making(page, parts, generate, handlers, person)
    _connect_kept(parts, handlers, person)


def _connect_setup(
    page: gr.Blocks, parts: CompareParts, generate: GenerateParts, handlers: CompareHandlers
) -> None:
    gr.on(
        [page.load, *(field.change for field in parts.fields.values())],
        handlers.describe,
        parts.inputs,
        parts.note,
        trigger_mode="always_last",
        **IMMEDIATE,
    )
    kind = parts.fields["kind"]
    kind.change(handlers.choose_kind, kind, [parts.round, *parts.second], **IMMEDIATE)
    sides = [parts.fields[f"{side}_{name}"] for side in "ab" for name in SIDE_FIELDS]
    source = [generate.fields[name] for name in form.FIELDS]
    parts.copy.click(handlers.copy, source, [parts.fields["scripts"], *sides], **IMMEDIATE)


def _connect_making(
    page: gr.Blocks,
    parts: CompareParts,
    generate: GenerateParts,
    handlers: CompareHandlers,
    person: gr.BrowserState,
) -> None:
    outputs = [
        parts.status,
        parts.setup,
        parts.lab,
        parts.kept,
        parts.make,
        parts.stop,
        parts.resume,
        parts.zip,
    ]
    voice = [generate.fields[name] for name in VOICE]
    chosen = [person, parts.kept]
    triggers = [
        Trigger(parts.make, handlers.make, [person, *parts.inputs, *voice]),
        Trigger(parts.resume, handlers.resume, chosen),
    ]
    connect_run(page, handlers.run, triggers, outputs, handlers.idle, chosen)


def _connect_kept(parts: CompareParts, handlers: CompareHandlers, person: gr.BrowserState) -> None:
    outputs = [parts.kept, parts.lab, parts.setup, parts.resume, parts.zip, parts.status]
    chosen = [person, parts.kept]
    parts.show.click(handlers.show, chosen, outputs, **IMMEDIATE)
    parts.again.click(handlers.again, chosen, outputs, **IMMEDIATE)
    parts.delete.click(handlers.delete, chosen, outputs, **IMMEDIATE)
    parts.upload.upload(handlers.load, [person, parts.upload], outputs, **PRIVATE)
    # The zip is written on request; the page downloads it when it is complete.
    zipped = parts.zip.click(handlers.zip, chosen, [parts.zip_file, parts.status], **PRIVATE)
    zipped.success(None, parts.zip_file, None, js=DOWNLOAD, api_visibility="private")
    parts.lab.click(handlers.voted, chosen, [parts.zip, parts.kept, parts.status], **IMMEDIATE)
