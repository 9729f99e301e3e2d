"""The events of the voices: which component calls which handler."""

from __future__ import annotations

from collections.abc import Sequence

import gradio as gr

from dia_demo.ui.files import connect_download
from dia_demo.ui.runs import IMMEDIATE, PRIVATE
from dia_demo.ui.voices.handlers import VoiceHandlers


def connect(
    page: gr.Blocks,
    handlers: VoiceHandlers,
    person: gr.BrowserState,
    model: gr.blocks.Block,
    take_file: gr.State,
    prompt: Sequence[gr.blocks.Block],
) -> None:
    """Connect menus and panel. model: the menu of models. take_file: the path of the take on show.
    prompt: sound and words of the voice prompt."""
    voices, panel = handlers.voices, handlers.panel
    listed = [person, model, *voices.menus, panel.kept]
    shown = [*voices.menus, panel.kept, panel.new_name, panel.rename, panel.export, panel.remove]

    def refresh_after(event) -> None:
        # As they are: gradio rejects a restored choice that a menu does not offer yet.
        event.then(handlers.refresh, listed, shown, preprocess=False, **IMMEDIATE)

    refresh_after(page.load(None, None, None, js="() => {}"))
    assert isinstance(model, gr.Dropdown)
    refresh_after(model.change(None, None, None, js="() => {}"))
    for menu, button in zip(voices.menus, voices.hear, strict=True):
        button.click(handlers.hear, [person, model, menu], voices.sample, **PRIVATE)
    part = [panel.start, panel.end, panel.words]
    fields = [panel.message, panel.name, panel.new_name, panel.consent, *part]
    sound, words = prompt
    of_prompt = [person, panel.name, sound, words, model, panel.consent, *part]
    clicks = (
        (panel.keep_take.click, handlers.keep_take, [person, panel.name, take_file, *part]),
        (panel.keep_prompt.click, handlers.keep_prompt, of_prompt),
        (panel.file.upload, handlers.add_file, [person, panel.file]),
        (panel.rename.click, handlers.rename, [person, panel.kept, panel.new_name]),
        (panel.remove.click, handlers.remove, [person, panel.kept]),
    )
    for event, handler, inputs in clicks:
        refresh_after(event(handler, inputs, fields, **PRIVATE))
    connect_download(panel.export, handlers.export, [person, panel.kept], panel.exported)
    page.unload(handlers.sessions_closed)
