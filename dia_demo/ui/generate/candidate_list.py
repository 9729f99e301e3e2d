"""The button that makes candidates, and their list in the card of the take."""

from __future__ import annotations

from collections.abc import Callable

import gradio as gr

from dia_demo.files import PAGE_FILES
from dia_demo.services.earlier.candidates import FEWEST, MOST
from dia_demo.ui.html import start_class

NO_CANDIDATES: dict = {"candidates": []}
DEFAULT_COUNT = 4
_LIST = (
    '<div class="candidates-head"><h3>Candidates</h3>'
    '<button type="button" class="candidates-discard">Delete the others</button></div>'
    '<p class="candidates-problem" role="alert"></p><ol class="candidates"></ol>'
)


def build_button() -> tuple[gr.Button, gr.Dropdown, gr.HTML]:
    """The button, the menu of numbers, and the expected time."""
    with gr.Row(elem_id="candidates-row"):
        make = gr.Button("Make candidates", size="sm", min_width=0, elem_id="make-candidates")
        count = gr.Dropdown(
            list(range(FEWEST, MOST + 1)),
            value=DEFAULT_COUNT,
            label="Number of candidates",
            show_label=False,
            container=False,
            filterable=False,
            min_width=0,
            scale=0,
            elem_id="candidate-count",
        )
        wait = gr.HTML(elem_id="candidates-wait", js_on_load=None, min_width=0)
    return make, count, wait


def build_list(answer: Callable[[object], dict]) -> gr.HTML:
    """The list. answer: what the server says to its questions."""

    def candidates(request: object) -> dict:
        return answer(request)

    return gr.HTML(
        NO_CANDIDATES,
        html_template=_LIST,
        js_on_load=start_class(PAGE_FILES / "candidates.js", "Candidates"),
        server_functions=[candidates],
        elem_id="candidates",
    )
