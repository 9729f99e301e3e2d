"""Help with writing a script: suggestions while typing, a margin with the speakers, two buttons.

The page does all of it (assets/page/script/help.js); from here it gets the sounds of each model.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

import gradio as gr

from dia_demo.engine.family import ModelInfo
from dia_demo.files import PAGE_FILES
from dia_demo.text.normaliser import SOUNDS_OF_NANO
from dia_demo.text.script import NONVERBALS
from dia_demo.ui import html
from dia_demo.ui.html import start_class

_BUTTONS = (
    ("add-turn", "Add turn", "Begin a turn of the other speaker after the one at the cursor"),
    ("swap-speakers", "Swap speakers", "S1 becomes S2 and S2 becomes S1, in the selection or all"),
)


def build_layout(info: ModelInfo, field: str) -> gr.HTML:
    """The script's heading with two buttons, which also starts what the page does in the script's
    field. field: its selector."""
    buttons = "".join(
        f'<button type="button" class="{name}" title="{title}">{label}</button>'
        for name, label, title in _BUTTONS
    )
    template = (
        f'<div class="script-help">{buttons}<span class="sr-only" role="status"></span></div>'
    )
    with gr.Row(elem_id="script-head"):
        gr.HTML(html.heading("Script"), js_on_load=None)
        return gr.HTML(
            {"sounds": sounds_of(info), "text": ""},
            html_template=template,
            js_on_load=start_class(PAGE_FILES / "script" / "help.js", "ScriptHelp", field=field),
            elem_id="script-help",
        )


def connect(
    script_help: gr.HTML, script: gr.Textbox, model: gr.Dropdown, models: Iterable[ModelInfo]
) -> None:
    """Follow the script and the chosen model, in the browser alone."""
    sounds = json.dumps({info.name: sounds_of(info) for info in models})
    gr.on(
        [script.change, model.change],
        None,
        [script, model],
        script_help,
        js=f"(text, model) => ({{ text, sounds: {sounds}[model] }})",
        show_progress="hidden",
    )


def sounds_of(info: ModelInfo) -> list[str]:
    """The sounds that a model makes where they stand in brackets."""
    return sorted(SOUNDS_OF_NANO) if info.profile.normalises else list(NONVERBALS)
