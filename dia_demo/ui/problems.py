"""Errors of every handler are shown on the page as one sentence.

gradio shows only the errors of events in its queue; assets/page/problems.js shows the others.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps

import gradio as gr

from dia_demo.files import PAGE_FILES
from dia_demo.ui.gradio_internals import replace_handlers
from dia_demo.ui.status import explain

SCRIPT = PAGE_FILES / "problems.js"
STYLE = PAGE_FILES / "problems.css"


def explain_errors(page: gr.Blocks) -> None:
    """Make every event registered so far show a failure as one sentence."""
    replace_handlers(page, _wrap_handler)


def _wrap_handler(handler: Callable) -> Callable:
    """The handler with its exceptions as gr.Error. gradio reads its signature, so that stays."""
    if inspect.isgeneratorfunction(handler):

        @wraps(handler)
        def updates(*values, **named):
            try:
                yield from handler(*values, **named)
            except Exception as error:
                raise _to_gradio_error(error) from error

        return updates

    @wraps(handler)
    def update(*values, **named):
        try:
            return handler(*values, **named)
        except Exception as error:
            raise _to_gradio_error(error) from error

    return update


def _to_gradio_error(error: Exception) -> gr.Error:
    if isinstance(error, gr.Error):
        return error
    return gr.Error(explain(error), title="Request failed", print_exception=False)
