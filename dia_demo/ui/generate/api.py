"""The endpoint for programs: the same run as on the page, with plain arguments.

Its numbers are not the page's sliders, which would limit a program to what suits the page's model.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import asdict
from inspect import Parameter, Signature
from typing import Any

import gradio as gr

from dia_demo.engine.events import Failed
from dia_demo.errors import RunError
from dia_demo.services.synthesis import Synthesis
from dia_demo.services.take import Take
from dia_demo.ui.generate import form
from dia_demo.ui.generate.handlers import GenerateHandlers, finished_result
from dia_demo.ui.generate.layout import GenerateParts


def add_endpoint(parts: GenerateParts, handlers: GenerateHandlers) -> None:
    """Add the endpoint "/generate" to the page being built."""
    numbers = {
        name: gr.Number(visible=False, label=parts.fields[name].label)
        for name in (*form.SAMPLING, "seed")
    }
    inputs = [(parts.fields | numbers)[name] for name in form.FIELDS]
    figures = gr.JSON(visible=False, label="Figures")
    endpoint = make_endpoint(handlers)
    gr.on([], endpoint, inputs, [parts.take, figures], api_name="generate")


# Every other argument may be left out; None is the model's or the program's own default.
REQUIRED, DEFAULTS = ("script",), {"speed": 1.0, "xpu": False}


def make_endpoint(handlers: GenerateHandlers) -> Callable[..., Iterator[tuple[str, dict]]]:
    """The function behind "/generate"; the names of its arguments are those of `form.FIELDS`."""

    def generate(request: gr.Request, *values: Any) -> Iterator[tuple[str, dict]]:
        """Generate speech from a script: a 16-bit WAV file and its figures.

        A number that is left out is the model's own default; seed None or -1 is a random one.
        """
        started = handlers.synthesis.settings.runtime
        named = dict(zip(form.FIELDS, values, strict=True))
        named["model"] = named["model"] or started.model
        named["precision"] = named["precision"] or started.precision
        with handlers.run.sessions.run(request) as cancel, handlers.scratch() as folder:
            for name, default in form.defaults_of(handlers.synthesis.info(named["model"])).items():
                named[name] = default if named[name] is None else named[name]
            asked = form.Form.of([named[name] for name in form.FIELDS])
            take = whole_take(handlers.synthesis, asked, cancel)
            # Yielded while the folder exists: gradio copies the file first.
            yield str(take.save(folder / "take.wav")), asdict(take.figures)

    # gradio reads the names and defaults of the arguments from the signature.
    generate.__signature__ = _signature()  # type: ignore[attr-defined]
    return generate


def _signature() -> Signature:
    kind = Parameter.POSITIONAL_OR_KEYWORD
    arguments = [
        Parameter(name, kind, default=Parameter.empty if name in REQUIRED else DEFAULTS.get(name))
        for name in form.FIELDS
    ]
    return Signature([Parameter("request", kind, annotation=gr.Request), *arguments])


def whole_take(synthesis: Synthesis, values: form.Form, cancel: threading.Event) -> Take:
    """Run to the end. Raises RunError if there is no audio."""
    asked = values.to_request(synthesis.settings.runtime)
    with closing(synthesis.stream(asked, cancel)) as events:
        for event in events:
            if isinstance(event, Failed):
                raise RunError(event.message)
            if result := finished_result(event):
                return synthesis.take(asked, result)
    raise RunError("The run was stopped before there was any audio.")
