"""The command line, on the same services as the page: `say`, `compare`, `bench`, `doctor`.

Exit code 0 on success, 2 for a usage or input error (one line on stderr), 1 for a failure while
running. Progress goes to stderr where that is a terminal; stdout carries results alone.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import stat
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np

from dia_demo import audio
from dia_demo.cli import bench, compare, device
from dia_demo.cli.common import (
    Parser,
    StatusLine,
    add_runtime,
    add_voice,
    runtime_of,
    stop_on_interrupt,
    voice_of,
)
from dia_demo.config import PARAMS
from dia_demo.engine.events import Cancelled, Failed, Finished, Loading, Progress, Result, Started
from dia_demo.errors import DiaDemoError, InputError, RunError
from dia_demo.services import models
from dia_demo.services.doctor import examine
from dia_demo.services.settings import Settings
from dia_demo.services.synthesis import Request, Synthesis, random_seed
from dia_demo.task import result_of

# A value that is quoted may come from a file and be of any length.
LONGEST_ERROR = 2000


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit code."""
    logging.basicConfig(level=logging.ERROR, format="%(message)s")
    try:
        options = _parser().parse_args(argv)
        code = options.run(options)
        if sys.stdout is not None:  # Closed from the start: nobody wants to read anything.
            sys.stdout.flush()
        return code
    except InputError as error:
        return _told(error, 2)
    except DiaDemoError as error:
        return _told(error, 1)
    except BrokenPipeError:  # Whoever read the output has enough of it, as `head` has.
        _drop_output()
        return 1
    except OSError as error:
        _drop_output()
        place = error.filename or "The output could not be written"
        return _told(RunError(f"{place}: {error.strerror or error}."), 1)
    except KeyboardInterrupt:
        return _told(RunError("Stopped."), 130)


def _told(error: DiaDemoError, code: int) -> int:
    print("error: " + " ".join(str(error).split())[:LONGEST_ERROR], file=sys.stderr)
    return code


def _drop_output() -> None:
    """What still stands in the buffer of stdout would fail once more when the program ends."""
    with suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _parser() -> argparse.ArgumentParser:
    parser = Parser(prog="python -m dia_demo", description="Dia text-to-dialogue on a CPU.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND", parser_class=Parser)
    say = commands.add_parser("say", help="speak a script into a sound file")
    say.set_defaults(run=_say)
    say.add_argument("script", help='"[S1] Hello. [S2] Hi there."; - reads it from stdin')
    say.add_argument("-o", "--output", type=Path, metavar="FILE", help=".wav or .flac to write")
    add_runtime(say)
    for name, spec in PARAMS.items():
        say.add_argument(
            f"--{name.replace('_', '-')}",
            type=int if spec.is_whole else float,
            metavar="N" if spec.is_whole else "F",
            help=spec.help[0].lower() + spec.help[1:].rstrip("."),
        )
    say.add_argument("--speed", type=float, default=1.0, metavar="F", help="0.5 to 2, pitch kept")
    add_voice(say)
    say.add_argument("--codes", type=Path, metavar="FILE.npy", help="also write the take's codes")
    say.add_argument("--json", action="store_true", help="end stdout with the figures as JSON")
    compare.register(commands)
    bench.register(commands)
    doctor = commands.add_parser("doctor", help="what this machine has and what will be chosen")
    doctor.set_defaults(run=_doctor)
    add_runtime(doctor)
    doctor.add_argument("--json", action="store_true")
    doctor.add_argument("--report", type=Path, metavar="FILE", help="keep a device's self-check")
    return parser


def _say(options: argparse.Namespace) -> int:
    if options.output is None and options.codes is None:
        raise InputError("Nothing to write: give -o FILE.wav, --codes FILE.npy or both.")
    if options.output is not None and options.output.suffix.lower() not in audio.FORMATS:
        raise InputError(f"-o must end in {' or '.join(audio.FORMATS)}, not {options.output}.")
    for path in (options.output, options.codes):
        if path is not None:
            _check_place(path)
    settings = Settings.from_env()
    synthesis = Synthesis(settings)
    request = _request(options, settings)
    result = _run(synthesis, request)
    if options.codes is not None:
        _write_codes(options.codes, result.codes)
    if options.output is not None:
        take = synthesis.take(request, result)
        take.save(options.output)
        for problem in take.health.problems():
            print(f"warning: {problem}", file=sys.stderr)
    _print_figures(result, options)
    return 0


def _check_place(path: Path) -> None:
    """InputError where a file cannot go there, before minutes are spent on its content."""
    folder = path.absolute().parent
    if not folder.is_dir():
        raise InputError(f"The folder {folder} does not exist: make it first.")
    if not os.access(folder, os.W_OK):
        raise InputError(f"The folder {folder} cannot be written to: choose another.")
    try:
        is_folder = stat.S_ISDIR(path.stat().st_mode)
    except FileNotFoundError:
        return
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror}. Choose another.") from error
    if is_folder:
        raise InputError(f"{path} is a folder: give the name of a file in it.")


def _request(options: argparse.Namespace, settings: Settings) -> Request:
    runtime = runtime_of(options, settings)
    info = result_of(models.fetch_description(runtime.model))
    given = {name: getattr(options, name) for name in PARAMS}
    given["seed"] = random_seed() if options.seed is None else options.seed
    params = replace(info.config.defaults, **{k: v for k, v in given.items() if v is not None})
    return Request(
        script=sys.stdin.read() if options.script == "-" else options.script,
        params=params,
        runtime=runtime,
        voice=voice_of(options),
        speed=options.speed,
        with_audio=options.output is not None,
    )


def _write_codes(path: Path, codes: np.ndarray) -> None:
    try:
        with open(path, "wb") as file:
            np.save(file, codes)
    except OSError as error:
        raise RunError(f"{path} could not be written: {error.strerror}.") from error


def _run(synthesis: Synthesis, request: Request) -> Result:
    """Drain the request's events, telling a person at a terminal how it goes."""
    show = StatusLine()
    cancel = threading.Event()
    with stop_on_interrupt(cancel):
        for event in synthesis.stream(request, cancel):
            match event:
                case Loading():
                    show(f"{event.what}: {event.fraction:.0%}")
                case Started():
                    for note in event.notes:
                        print(f"warning: {note}", file=sys.stderr)
                case Progress():
                    show(
                        f"{event.audio_seconds:.1f} s of audio, {event.realtime_factor:.2f}x "
                        f"realtime, about {event.seconds_left:.0f} s left"
                    )
                case Finished():
                    show("")
                    return event.result
                case Cancelled(result=Result()):
                    show("")
                    return event.result
                case Cancelled():
                    raise RunError("Stopped before the first sound: nothing was kept.")
                case Failed():
                    raise RunError(event.message)
    raise AssertionError("a stream ended without saying how")


def _print_figures(result: Result, options: argparse.Namespace) -> None:
    figures = result.figures
    if options.json:
        print(json.dumps(asdict(figures)))
        return
    kept = " and ".join(str(path) for path in (options.output, options.codes) if path)
    print(
        f"{kept}: {figures.audio_seconds:.1f} s of audio in {figures.wall_seconds:.1f} s, "
        f"{figures.realtime_factor:.2f}x realtime, seed {figures.seed}, {figures.precision}"
    )
    endings = {
        "max_tokens": "It was cut: max tokens was reached before the script's end.",
        "cancelled": "It was stopped; what was made so far is kept.",
    }
    if figures.finish_reason in endings:
        print(endings[figures.finish_reason])


def _doctor(options: argparse.Namespace) -> int:
    if options.device != "cpu":
        return device.check(options)
    report = examine(runtime_of(options, Settings.from_env()))
    print(json.dumps(asdict(report)) if options.json else report.as_text())
    return 0 if report.ready else 1
