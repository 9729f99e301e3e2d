"""The endpoints for programs: a take with plain arguments, the script checker, the models.

They are described in docs/api.md. Their numbers are not the page's sliders, which would limit a
program to what suits the page's model.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import asdict, replace
from typing import Any

import gradio as gr

from dia_demo.audio import suffix_of
from dia_demo.config import PARAMS, PRECISIONS
from dia_demo.engine.events import Failed, Started
from dia_demo.engine.family import ModelInfo
from dia_demo.errors import RunError
from dia_demo.services.earlier.labels import file_stem
from dia_demo.services.synthesis import Synthesis
from dia_demo.services.take import Request, Take
from dia_demo.text.checks.script_check import ScriptReport
from dia_demo.text.pronunciations import Pronunciations
from dia_demo.ui.api.arguments import (
    Argument,
    arguments_of_check,
    arguments_of_generate,
    described,
    with_signature,
)
from dia_demo.ui.generate import form
from dia_demo.ui.generate.handlers import GenerateHandlers, finished_result


def add_endpoints(handlers: GenerateHandlers) -> None:
    """Add the endpoints "/generate", "/check" and "/models" to the page being built."""
    synthesis = handlers.synthesis
    models, runtime = list(synthesis.models.values()), synthesis.settings.runtime
    arguments = arguments_of_generate(models, runtime.model, runtime.precision)
    figures = described("Figures", FIGURES)
    take = gr.Audio(label="Take", visible=False)
    outputs: list[Any] = [take, figures]
    _add("generate", make_generate(handlers, arguments), arguments, outputs)
    arguments = arguments_of_check(models, runtime.model)
    _add("check", make_check(synthesis, arguments), arguments, [described("Report", REPORT)])
    _add("models", make_models(synthesis), {}, [described("Models", MODELS)])


def _add(name: str, work: Callable, arguments: dict[str, Argument], outputs: list) -> None:
    inputs = [argument.component() for argument in arguments.values()]
    gr.on([], work, inputs, outputs, api_name=name)


def make_generate(
    handlers: GenerateHandlers, arguments: dict[str, Argument]
) -> Callable[..., Iterator[tuple[str, dict]]]:
    """The function behind "/generate"."""

    def generate(request: gr.Request, *values: Any) -> Iterator[tuple[str, dict]]:
        """Generate speech from a script: an audio file and its figures.

        A number that is left out is the model's own default; seed null or -1 is a random one.
        """
        named = _checked(arguments, values)
        with handlers.calls.run(request) as cancel, handlers.files.scratch() as folder:
            info = handlers.synthesis.models[named["model"]]
            for name, default in form.defaults_of(info).items():
                named[name] = default if named[name] is None else named[name]
            named[form.IN_PARTS] = False
            form_values = form.Form.of([named[name] for name in form.FIELDS])
            take, notes = whole_take(handlers.synthesis, handlers.request_of(form_values), cancel)
            report = take.report()
            report["remarks"] = [*notes, *report["remarks"]]
            # Yielded while the folder exists: gradio copies the file first.
            stem = file_stem(take.request.script, vars(take.figures))
            yield str(take.save(folder / f"{stem}{suffix_of(named['format'])}")), report

    return with_signature(generate, arguments)


def _checked(arguments: dict[str, Argument], values: tuple) -> dict[str, Any]:
    """The values by name. Raises InputError for a missing one and for one of the wrong type."""
    pairs = zip(arguments.values(), values, strict=True)
    return {argument.name: argument.checked(value) for argument, value in pairs}


def whole_take(
    synthesis: Synthesis, request: Request, cancel: threading.Event
) -> tuple[Take, tuple[str, ...]]:
    """Run to the end: the take, and the notes on its start. Raises RunError without audio."""
    notes: tuple[str, ...] = ()
    with closing(synthesis.stream(request, cancel, in_int8_meanwhile=True)) as events:
        for event in events:
            if isinstance(event, Failed):
                raise RunError(event.message)
            if isinstance(event, Started):
                notes = event.notes
            if result := finished_result(event):
                return synthesis.take(request, result), notes
    raise RunError("The run was stopped before there was any speech. Send the request again.")


def make_check(synthesis: Synthesis, arguments: dict[str, Argument]) -> Callable[..., dict]:
    """The function behind "/check"."""

    def check(request: gr.Request, *values: Any) -> dict:
        """Check a script without generating anything: what the page shows below the script."""
        named = _checked(arguments, values)
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


def _object(description: str, **properties: str) -> dict:
    """JSON schema of an object. properties: of each, its type and its description."""
    fields = {}
    for name, text in properties.items():
        kind, _, words = text.partition(": ")
        fields[name] = {"type": kind, "description": words, "items": {}}
    return {"type": "object", "description": description, "properties": fields}


FIGURES = _object(
    "Measurements of the take: lengths and times in seconds, settings.",
    audio_seconds="number: length of the audio",
    wall_seconds="number: from the start of the run to its end",
    realtime_factor="number: audio_seconds / wall_seconds; above 1 is faster than playback",
    token_seconds="number: of wall_seconds, for the tokens",
    codec_seconds="number: of wall_seconds, for turning tokens into audio",
    first_audio_seconds="number: until the first audio, null without audio",
    steps="integer: decoder steps",
    finish_reason="string: end, max_tokens (cut off) or cancelled",
    seed="integer: repeats the take with the same settings",
    model="string: name of the model",
    precision="string: precision of the weights; int8 while int4 is being calibrated",
    device="string: cpu or xpu",
    sample_rate="integer: samples a second",
    peak_rss_bytes="integer: most memory of the program so far",
    expected_seconds="number: how long the script was expected to take",
    numerics="object: class of processor, versions and kernels, which decide the rounding",
    surplus_turns="integer: turns more than the script has, negative if some are missing; or null",
    shared_with="integer: the most other takes generated at the same time; each makes it slower",
    voices="array: names of the voices of S1 and S2 (null: the prompt's); null without names",
    remarks="array: what was done to a voice prompt, and what is odd about sound or length",
)
REPORT = _object(
    "The contents of the script, and findings with their repairs.",
    speakers="integer: number of speakers",
    turns="integer: number of turns",
    bytes="integer: bytes that the model reads",
    byte_limit="integer: the most it can read",
    expected_seconds="number: estimated length of the audio",
    read_as="string: the script as the model reads it",
    findings="array: code, level (error, warning or tip), message, line, repaired, repair_label",
)
MODELS = {
    "type": "array",
    "description": "The models, the embedded voice first.",
    "items": _object(
        "",
        name="string: for the argument model",
        title="string: as on the page",
        note="string: what it is",
        sample_rate="integer: of its audio",
        byte_limit="integer: longest script with its voice transcript",
        normalises="boolean: scripts are always written out in words",
        precisions="array: for the argument precision",
        parameters="object: minimum, maximum and default by name",
        seconds_per_second="number: expected wait for a second of audio here, null if not known",
    ),
}
