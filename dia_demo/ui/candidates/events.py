"""The events of candidates: the button that makes them, and what is pressed in their list."""

from __future__ import annotations

import gradio as gr

from dia_demo.ui.candidates.handlers import CandidateHandlers
from dia_demo.ui.generate.events import run_outputs
from dia_demo.ui.generate.layout import GenerateParts
from dia_demo.ui.runs import IMMEDIATE, PRIVATE


def connect(
    parts: GenerateParts,
    handlers: CandidateHandlers,
    person: gr.BrowserState,
) -> gr.events.Dependency:
    """Connect button and list; `person` holds the key of this browser. The event that may delete
    takes is returned."""
    outputs, run = run_outputs(parts), handlers.page.run
    made = parts.make_candidates.click(
        handlers.make,
        [person, parts.candidate_count, *parts.inputs],
        outputs,
        api_name="press_make_candidates",
        **PRIVATE,
    )
    again = parts.candidates.click(handlers.press, person, outputs, **PRIVATE)
    for event in (made, again):
        for after in (event.then, event.failure):
            after(run.idle_of, person, run.buttons, **IMMEDIATE)
    return parts.candidates.submit(handlers.choose, person, outputs, **IMMEDIATE)
