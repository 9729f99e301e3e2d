"""Files that the page downloads: the menu of audio formats, and the events that write a file first.

The menus of a page show the same choice, which the browser remembers (assets/page/files.js).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import gradio as gr

from dia_demo.audio import FORMATS
from dia_demo.files import PAGE_FILES
from dia_demo.ui.runs import PRIVATE

SCRIPT = PAGE_FILES / "files.js"
_OPTIONS = "".join(
    f'<option value="{suffix.removeprefix(".")}">{kind.label}</option>'
    for suffix, kind in FORMATS.items()
)
FORMAT_MENU = f'<select class="audio-format" aria-label="Format of downloads">{_OPTIONS}</select>'
# The last input is the format, which only the browser knows.
_WITH_FORMAT = "(...values) => [...values.slice(0, -1), window.diaFiles.format]"
_DOWNLOAD = "({ file }) => { if (file) window.diaFiles.download(file); }"


def build_format_menu() -> gr.HTML:
    """The menu. For `connect_download` its value is the name of the chosen format, or None."""
    return gr.HTML(
        html_template=FORMAT_MENU,
        js_on_load="window.diaFiles.showFormat(element);",
        elem_classes="audio-format-part",
    )


def connect_download(
    button: gr.Button,
    handler: Callable,
    inputs: Sequence[gr.blocks.Block],
    file: gr.JSON,
    problem: gr.HTML | None = None,
    menu: gr.HTML | None = None,
) -> None:
    """Download what `handler` writes when the button is pressed.

    The handler gets the values of `inputs`, then the format's name if there is a menu. It returns
    {"file": path} for `file`, which is hidden; with `problem`, updates of both.
    """
    written = button.click(
        handler,
        inputs if menu is None else [*inputs, menu],
        file if problem is None else [file, problem],
        js=None if menu is None else _WITH_FORMAT,
        **PRIVATE,
    )
    written.success(None, file, None, js=_DOWNLOAD, api_visibility="private")
