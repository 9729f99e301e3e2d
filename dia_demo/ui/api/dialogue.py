"""The endpoint "/dialogue": a script of any length, made in parts and joined."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import gradio as gr

from dia_demo.audio import suffix_of
from dia_demo.services.dialogue.output import write_dialogue
from dia_demo.services.dialogue.plan import Join, make_plan
from dia_demo.services.dialogue.subtitles import write_subtitles
from dia_demo.services.earlier.labels import file_stem
from dia_demo.services.programs.dialogue import make_dialogue
from dia_demo.ui.api.argument import checked_values, with_signature
from dia_demo.ui.api.arguments import Arguments
from dia_demo.ui.api.takes import request_of
from dia_demo.ui.generate.handlers import GenerateHandlers


def make_dialogue_endpoint(
    handlers: GenerateHandlers, arguments: Arguments
) -> Callable[..., Iterator[tuple[str, str | None, dict]]]:
    """The function behind "/dialogue"."""
    synthesis = handlers.synthesis

    def dialogue(request: gr.Request, *values: Any) -> Iterator[tuple[str, str | None, dict]]:
        """Generate a script of any length in parts: one audio file, its subtitles if they are asked
        for, and its figures with the words, their times, and a verdict on each part.

        A part with a fault is made again. (pause 1.5) in the script is silence of that length.
        """
        named = checked_values(arguments, values)
        with handlers.calls.run(request) as cancel, handlers.files.scratch() as folder:
            asked = request_of(handlers, named)
            synthesis.check_length(asked.script)
            plan = make_plan(asked, Join(named["join"]), named["retries"])
            made = make_dialogue(synthesis, plan, folder / "parts", cancel)
            stem = file_stem(plan.text, vars(made.figures))
            path, shown = folder / f"{stem}{suffix_of(named['format'])}", None
            write_dialogue(path, made.run, made.figures)
            if named["subtitles"] != "none":
                shown = str(write_subtitles(path.with_suffix(f".{named['subtitles']}"), made.words))
            # Yielded while the folder exists: gradio copies the files first.
            yield str(path), shown, made.report()

    return with_signature(dialogue, arguments)
