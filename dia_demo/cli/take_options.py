"""The options of a take, which `say` and `audition` share."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

from dia_demo.cli.common import (
    add_normalise,
    add_pronunciations,
    add_runtime,
    add_voice,
    model_of,
    pronunciations_of,
    runtime_of,
    voice_of,
)
from dia_demo.cli.script_input import script_of
from dia_demo.config import PARAMS, GenerationParams, random_seed
from dia_demo.services.settings import Settings
from dia_demo.services.take import Request
from dia_demo.services.voices.choice import add_voices
from dia_demo.services.voices.kept import KeptVoices
from dia_demo.text.remark import Level


def add_take_options(parser: argparse.ArgumentParser) -> None:
    """The script and everything that decides what its take sounds like."""
    add = parser.add_argument
    add("script", nargs="?", help='"[S1] Hello. [S2] Hi there.", or a file; - reads stdin')
    add("--file", type=Path, metavar="FILE", help="read the script from a file")
    add_runtime(parser)
    for name, spec in PARAMS.items():
        add(
            f"--{name.replace('_', '-')}",
            type=int if spec.is_whole else float,
            metavar="N" if spec.is_whole else "F",
            help=spec.help[0].lower() + spec.help[1:].rstrip("."),
        )
    add("--speed", type=float, default=1.0, metavar="F", help="0.25 to 4; keeps the pitch")
    add_voice(parser)
    add(
        "--voice",
        action="append",
        default=[],
        metavar="NAME | FILE",
        help="a kept voice, a voice file, or a voice of the model: once for S1, again for S2",
    )
    add_normalise(parser)
    add_pronunciations(parser)


def script_warnings(request: Request, in_parts: bool = False) -> list[str]:
    """What the page warns of below the script, in sentences; a take is made nonetheless.
    in_parts: see `ModelInfo.reading`."""
    has_lines = "\n" in request.script.strip()
    return [
        f"Line {finding.line}: {finding.message}" if has_lines and finding.line else finding.message
        for finding in request.check_script(in_parts).findings
        # Where a take was cut off is told by its figures.
        if finding.level != Level.TIP and finding.code != "over_max_tokens"
    ]


def request_of(
    options: argparse.Namespace,
    settings: Settings,
    with_audio: bool = True,
    script: str | None = None,
) -> Request:
    """The request of these options; a random seed without one. script: in place of that of the
    options. Raises InputError if a file or a voice cannot be used."""
    runtime = runtime_of(options, settings)
    info = model_of(runtime.model)
    values = {name: getattr(options, name) for name in PARAMS}
    values["seed"] = random_seed() if options.seed is None else options.seed
    chosen = {name: value for name, value in values.items() if value is not None}
    GenerationParams.check_known(chosen, info.config)
    request = Request(
        script=script_of(options.script, options.file) if script is None else script,
        params=replace(info.config.defaults, **chosen),
        model=info,
        runtime=runtime,
        voice=voice_of(options),
        speed=options.speed,
        with_audio=with_audio,
        normalise=options.normalise,
        pronunciations=pronunciations_of(options),
    )
    kept = KeptVoices.for_user(settings)
    return add_voices(request, options.voice, kept, with_files=True)
