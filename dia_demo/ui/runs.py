"""What follows a run that a button began: the button comes back once the run is over."""

from __future__ import annotations

from collections.abc import Callable

from gradio.events import Dependency


def when_over(run: Dependency, ready: Callable, inputs, outputs) -> None:
    """Let `ready` free the buttons after an event, however it ended.

    Not in the event's own last update: the page lets go of a click that comes before the run it
    follows is over. And not by `then` alone, which gradio's page skips after an error.
    """
    for after in (run.then, run.failure):
        after(
            ready,
            inputs,
            outputs,
            queue=False,
            show_progress="hidden",
            api_visibility="private",
        )
