"""app.py in which chosen event handlers fail, so that tests see who is told.

FAULT names a file with the numbers of the events that fail at the moment; a number with "!" fails
in a way the program did not foresee. Nothing is hidden or folded, so that everything can be
pressed.
"""

from __future__ import annotations

import inspect
import os
from functools import wraps
from pathlib import Path

FAULT = Path(os.environ["FAULT"])


def refuse(number: int) -> None:
    from dia_demo.errors import InputError

    asked = FAULT.read_text().split() if FAULT.exists() else []
    if str(number) in asked:
        raise InputError(f"Event {number} was made to fail.")
    if f"{number}!" in asked:
        raise KeyError(f"secret of event {number}")


def faulty(handler, number: int):
    """The handler, which fails while its number is asked for."""
    if inspect.isgeneratorfunction(handler):

        @wraps(handler)
        def updates(*values, **named):
            refuse(number)
            yield from handler(*values, **named)

        return updates

    @wraps(handler)
    def update(*values, **named):
        refuse(number)
        return handler(*values, **named)

    return update


def main() -> None:
    import gradio as gr
    from gradio.block_function import BlockFunction

    from dia_demo.server.run import serve
    from dia_demo.services.settings import Settings
    from dia_demo.services.synthesis import Synthesis
    from dia_demo.ui.page import build_ui

    register = BlockFunction.__init__

    def registered(event, fn, inputs, outputs, *rest, **named):
        # Beneath whatever the page does to its handlers, as a handler's own failure is.
        number = named["_id"]
        register(event, fn and faulty(fn, number), inputs, outputs, *rest, **named)

    BlockFunction.__init__ = registered
    synthesis = Synthesis(Settings.from_env())
    page = build_ui(synthesis)
    for block in page.blocks.values():
        if isinstance(block, gr.Button | gr.UploadButton | gr.Column | gr.Row | gr.Group):
            block.visible = True
        if isinstance(block, gr.Accordion):
            block.open = True
    page.config = page.get_config_file()
    serve(page, synthesis)


if __name__ == "__main__":
    main()
