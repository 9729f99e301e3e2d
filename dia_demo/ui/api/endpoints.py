"""The endpoints for programs: takes with plain arguments, the script checker, the models.

They are described in docs/api.md; every other event of the page is private. Their numbers are not
the page's sliders, which would limit a program to what suits the page's model.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any

import gradio as gr

from dia_demo.config import PARAMS, PRECISIONS
from dia_demo.engine.family import ModelInfo
from dia_demo.services.listening.store import ComparisonStore
from dia_demo.services.synthesis import Synthesis
from dia_demo.text.checks.script_check import ScriptReport
from dia_demo.text.pronunciations import Pronunciations
from dia_demo.ui import form
from dia_demo.ui.api import answers
from dia_demo.ui.api.argument import checked_values, make_api, with_signature
from dia_demo.ui.api.arguments import (
    Arguments,
    arguments_of_audition,
    arguments_of_check,
    arguments_of_compare,
    arguments_of_dialogue,
    arguments_of_generate,
)
from dia_demo.ui.api.compare import make_compare
from dia_demo.ui.api.dialogue import make_dialogue_endpoint
from dia_demo.ui.api.takes import make_audition, make_generate
from dia_demo.ui.generate.handlers import GenerateHandlers


def add_endpoints(handlers: GenerateHandlers, comparisons: ComparisonStore) -> None:
    """Add the endpoints to the page being built."""
    synthesis = handlers.synthesis
    models, runtime = list(synthesis.models.values()), synthesis.settings.runtime
    start = models, runtime.model, runtime.precision

    arguments = arguments_of_generate(*start)
    take = gr.Audio(label="Take", visible=False)
    outputs: list[Any] = [take, make_api("Figures", answers.FIGURES)]
    _add("generate", make_generate(handlers, arguments), arguments, outputs)

    arguments = arguments_of_audition(*start)
    files = gr.File(label="Takes", file_count="multiple", visible=False)
    outputs = [files, make_api("Figures", answers.AUDITION)]
    _add("audition", make_audition(handlers, arguments), arguments, outputs)

    arguments = arguments_of_dialogue(*start)
    whole = gr.Audio(label="Dialogue", visible=False)
    subtitles = gr.File(label="Subtitles", visible=False)
    outputs = [whole, subtitles, make_api("Figures", answers.DIALOGUE)]
    _add("dialogue", make_dialogue_endpoint(handlers, arguments), arguments, outputs)

    arguments = arguments_of_compare(*start)
    archive = gr.File(label="Archive", visible=False)
    outputs = [archive, make_api("Summary", answers.COMPARISON)]
    _add("compare", make_compare(handlers, comparisons, arguments), arguments, outputs)

    arguments = arguments_of_check(models, runtime.model)
    report = make_api("Report", answers.REPORT)
    _add("check", make_check(synthesis, arguments), arguments, [report])
    _add("models", make_models(synthesis), {}, [make_api("Models", answers.MODELS)])


def _add(name: str, work: Callable, arguments: Arguments, outputs: list) -> None:
    inputs = [argument.component() for argument in arguments.values()]
    gr.on([], work, inputs, outputs, api_name=name)


def make_check(synthesis: Synthesis, arguments: Arguments) -> Callable[..., dict]:
    """The function behind "/check"."""

    def check(request: gr.Request, *values: Any) -> dict:
        """Check a script without generating anything: what the page shows below the script."""
        named = checked_values(arguments, values)
        info = synthesis.models[named["model"]]
        tokens = named["max_tokens"]
        if tokens is None:
            tokens = info.config.defaults.max_tokens
        PARAMS["max_tokens"].range(info.config).check("max_tokens", tokens)
        report = info.check(
            named["script"],
            int(tokens),
            named["voice_transcript"],
            named["normalise"],
            Pronunciations.parse(named["pronunciations"]),
        )
        return report_of(report, named["script"], info)

    return with_signature(check, arguments)


def report_of(report: ScriptReport, script: str, info: ModelInfo) -> dict[str, Any]:
    """A report on a script as JSON."""
    return {
        "speakers": report.num_speakers,
        "turns": len(report.turns),
        "bytes": report.num_bytes,
        "byte_limit": info.config.encoder.max_positions,
        "expected_seconds": round(report.expected_seconds, 2),
        "read_as": script if report.reading is None else report.reading.text,
        "findings": [asdict(finding) for finding in report.findings],
    }


def make_models(synthesis: Synthesis) -> Callable[[], list[dict]]:
    """The function behind "/models"."""

    def models() -> list[dict]:
        """The models to choose from, with the range and the default of each parameter."""
        return [model_of(info, pace(info)) for info in synthesis.models.values()]

    def pace(info: ModelInfo) -> float | None:
        runtime = replace(synthesis.settings.runtime, model=info.name)
        return synthesis.speed.seconds_per_second(info, runtime)

    return models


def model_of(info: ModelInfo, seconds_per_second: float | None) -> dict[str, Any]:
    """A model as JSON."""
    parameters = {}
    for name in form.SAMPLING:
        allowed = PARAMS[name].range(info.config)
        parameters[name] = {
            "minimum": allowed.low,
            "maximum": allowed.high,
            "default": getattr(info.config.defaults, name),
        }
    return {
        "name": info.name,
        "title": info.title,
        "note": info.note,
        "sample_rate": info.sample_rate,
        "byte_limit": info.config.encoder.max_positions,
        "normalises": info.profile.normalises,
        "precisions": list(PRECISIONS),
        "parameters": parameters,
        "seconds_per_second": seconds_per_second,
    }
