"""What leads to what on the Compare tab: one block, called by `build`."""

from __future__ import annotations

import gradio as gr

from dia_demo.ui.compare.form import SIDE_FIELDS, VOICE
from dia_demo.ui.compare.handlers import CompareHandlers
from dia_demo.ui.compare.layout import CompareParts
from dia_demo.ui.generate import form
from dia_demo.ui.generate.layout import Parts
from dia_demo.ui.runs import when_over

_QUIET = {"queue": False, "show_progress": "hidden", "api_visibility": "private"}
_FETCH = """({ file }) => {
  if (!file) return;
  const link = document.createElement("a");
  const path = file.split("/").map(encodeURIComponent).join("/");
  link.href = new URL(`gradio_api/file=${path}`, document.baseURI);
  link.download = file.split("/").pop();
  link.click();
}"""
_SLOW = {"show_progress": "hidden", "api_visibility": "private"}


def wire_compare(
    page: gr.Blocks,
    parts: CompareParts,
    generate: Parts,
    handlers: CompareHandlers,
    person: gr.BrowserState,
) -> None:
    """Connect the tab's components; `person` holds the key of this browser."""
    # The server looks the key over when the page opens; a browser without one gets one.
    page.load(handlers.enter, person, [person, parts.kept], **_QUIET)
    page.unload(handlers.closed)
    _wire_setup(page, parts, generate, handlers)
    _wire_making(parts, generate, handlers, person)
    _wire_keeping(parts, handlers, person)


def _wire_setup(page, parts: CompareParts, generate: Parts, handlers: CompareHandlers) -> None:
    gr.on(
        [page.load, *(field.change for field in parts.fields.values())],
        handlers.describe,
        parts.inputs,
        parts.note,
        trigger_mode="always_last",
        **_QUIET,
    )
    kind = parts.fields["kind"]
    kind.change(handlers.choose_kind, kind, [parts.round, *parts.second], **_QUIET)
    sides = [parts.fields[f"{side}_{name}"] for side in "ab" for name in SIDE_FIELDS]
    source = [generate.fields[name] for name in form.FIELDS]
    parts.copy.click(handlers.copy, source, [parts.fields["scripts"], *sides], **_QUIET)


def _wire_making(parts, generate: Parts, handlers: CompareHandlers, person) -> None:
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
    for run in (
        parts.make.click(handlers.make, [person, *parts.inputs, *voice], outputs, **_SLOW),
        parts.resume.click(handlers.resume, [person, parts.kept], outputs, **_SLOW),
    ):
        buttons = [parts.make, parts.stop, parts.resume]
        when_over(run, handlers.ready, [person, parts.kept], buttons)
    parts.stop.click(handlers.stop, None, parts.stop, **_QUIET)


def _wire_keeping(parts: CompareParts, handlers: CompareHandlers, person) -> None:
    outputs = [parts.kept, parts.lab, parts.setup, parts.resume, parts.zip, parts.status]
    chosen = [person, parts.kept]
    parts.show.click(handlers.show, chosen, outputs, **_QUIET)
    parts.again.click(handlers.again, chosen, outputs, **_QUIET)
    parts.delete.click(handlers.delete, chosen, outputs, **_QUIET)
    parts.upload.upload(handlers.load, [person, parts.upload], outputs, **_SLOW)
    # Made when it is asked for, and fetched once it is there.
    zipped = parts.zip.click(handlers.zip, chosen, [parts.zip_file, parts.status], **_SLOW)
    zipped.success(None, parts.zip_file, None, js=_FETCH, api_visibility="private")
    parts.lab.click(handlers.voted, chosen, [parts.zip, parts.kept, parts.status], **_QUIET)
