"""The list of a dialogue's parts, in the card of the take."""

from __future__ import annotations

from collections.abc import Callable

import gradio as gr

from dia_demo.files import PAGE_FILES
from dia_demo.ui.html import start_class

NO_PARTS: dict = {"parts": []}
_LIST = (
    '<div class="parts-head"><h3>Parts</h3><p class="parts-count"></p>'
    '<button type="button" class="parts-resume">Resume</button></div>'
    '<p class="parts-problem" role="alert"></p><ol class="parts"></ol>'
    '<div class="parts-files"><span>Download</span>'
    '<button type="button" data-get="srt">Subtitles, SRT</button>'
    '<button type="button" data-get="vtt">Subtitles, VTT</button>'
    '<button type="button" data-get="speakers">Each speaker (zip)</button>'
    '<button type="button" data-get="parts">Each part (zip)</button></div>'
)


def build_layout(answer: Callable[[object], dict]) -> gr.HTML:
    """The list, hidden while there are no parts. answer: what the server says to its questions."""

    def parts(request: object) -> dict:
        return answer(request)

    return gr.HTML(
        NO_PARTS,
        html_template=_LIST,
        js_on_load=start_class(PAGE_FILES / "parts.js", "Parts"),
        server_functions=[parts],
        elem_id="parts",
    )
