"""The findings below a script, and what writes their repairs into its field. Both are started for a
field, which is named by its selector."""

from __future__ import annotations

from itertools import count
from typing import Any

import gradio as gr

from dia_demo.files import PAGE_FILES
from dia_demo.ui.html import start_class

SCRIPT_FILES = PAGE_FILES / "script"


def build_report(field: str, elem_id: str) -> gr.HTML:
    """The findings, each with the button that repairs it."""
    start = start_class(SCRIPT_FILES / "report.js", "Report", field=field)
    return gr.HTML(elem_id=elem_id, js_on_load=start)


def build_writer(field: str, elem_id: str, **options: Any) -> gr.HTML:
    """Writes its value, one of `Replacements`, into the field."""
    start = start_class(SCRIPT_FILES / "writer.js", "ScriptWriter", field=field)
    return gr.HTML({}, js_on_load=start, elem_id=elem_id, **options)


class Replacements:
    """Texts that the page writes into a field as a person would type them (see
    assets/page/script/writer.js)."""

    def __init__(self) -> None:
        self._numbers = count(1)

    def replace(self, before: str, after: str | None):
        """The value of the page's writer; unchanged where there is no new text."""
        if after is None:
            return gr.skip()
        # A new value every time, also for the same repair after an undo.
        return {"before": before, "after": after, "number": next(self._numbers)}
