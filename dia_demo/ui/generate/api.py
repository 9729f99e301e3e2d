"""The one endpoint for programs: the same run as the page's, with plain arguments.

Its numbers are no sliders: a slider would hold a program to the ends that suit the page's model.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import asdict

import gradio as gr

from dia_demo.engine.events import Failed
from dia_demo.errors import RunError
from dia_demo.services.synthesis import Synthesis, Take
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


def make_endpoint(handlers: GenerateHandlers):
    """The function behind "/generate"; its arguments are the names a program uses."""

    def generate(
        request: gr.Request,
        script,
        temperature=None,
        cfg_scale=None,
        max_tokens=None,
        top_p=None,
        top_k=None,
        seed=None,
        speed=1.0,
        voice_prompt=None,
        voice_transcript=None,
        model=None,
        precision=None,
        xpu=False,
    ) -> Iterator[tuple[str, dict]]:
        """Speak a script: the take as a 16-bit WAV file, and its figures.

        A number that is left out is the model's own default; seed None or -1 is a random one.
        """
        started = handlers.synthesis.settings.runtime
        model, precision = model or started.model, precision or started.precision
        sampling = [temperature, cfg_scale, max_tokens, top_p, top_k]
        rest = [seed, speed, voice_prompt, voice_transcript, model, precision, xpu]
        with handlers.run.sessions.run(request) as cancel, handlers.scratch() as home:
            defaults = form.defaults_of(handlers.synthesis.info(model))
            named = zip(form.SAMPLING, sampling, strict=True)
            filled = [defaults[name] if value is None else value for name, value in named]
            take = whole_take(handlers.synthesis, form.Form(script, *filled, *rest), cancel)
            # Handed over before the folder goes: gradio makes its copy first.
            yield str(take.save(home / "take.wav")), asdict(take.figures)

    return generate


def whole_take(synthesis: Synthesis, values: form.Form, cancel: threading.Event) -> Take:
    """Run to the end. Raises RunError where there is nothing to hear."""
    asked = values.to_request(synthesis.settings.runtime)
    with closing(synthesis.stream(asked, cancel)) as events:
        for event in events:
            if isinstance(event, Failed):
                raise RunError(event.message)
            if result := finished_result(event):
                return synthesis.take(asked, result)
    raise RunError("The run was stopped before it made any audio.")
