"""The command `audition`: several takes of one script, made together, to choose from."""

from __future__ import annotations

import argparse
import json
import sys
import threading
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from dia_demo.audio import FORMATS
from dia_demo.cli.common import StatusLine, stop_on_interrupt
from dia_demo.cli.take_options import add_take_options, request_of, script_warnings
from dia_demo.config import SEED_LIMIT
from dia_demo.engine.events import Cancelled, Failed, Finished, Loading, Progress, Started
from dia_demo.engine.scheduler import PLACES
from dia_demo.errors import InputError, RunError
from dia_demo.services.dialogue.single_take import with_words
from dia_demo.services.earlier.labels import file_stem
from dia_demo.services.remote.synthesis import open_synthesis
from dia_demo.services.settings import Settings
from dia_demo.services.synthesis import Synthesis
from dia_demo.services.take import Request, Take
from dia_demo.services.wording import plural, time_left


def register(commands) -> None:
    """Add `audition` to the command line."""
    parser = commands.add_parser("audition", help="make several takes of a script to choose from")
    parser.set_defaults(run=_audition)
    add_take_options(parser)
    add = parser.add_argument
    add("-n", "--takes", type=int, default=4, metavar="N", help=f"2 to {PLACES}; default 4")
    add("-o", "--output", type=Path, required=True, metavar="FOLDER", help="for the takes' files")
    suffixes = [suffix.lstrip(".") for suffix in FORMATS]
    add("--format", choices=suffixes, default=suffixes[0], help="of the files")
    add("--json", action="store_true", help="print the takes' figures as one JSON list")


def _audition(options: argparse.Namespace) -> int:
    if not 2 <= options.takes <= PLACES:
        raise InputError(f"An audition has 2 to {PLACES} takes, not {options.takes}.")
    _prepare(options.output)
    settings = Settings.from_env()
    first = request_of(options, settings)
    seeds = [(first.params.seed + k) % (SEED_LIMIT + 1) for k in range(options.takes)]
    requests = [replace(first, params=replace(first.params, seed=seed)) for seed in seeds]
    made = _run(open_synthesis(settings), requests, options)
    if options.json:
        print(json.dumps(made))
    return 0


def _prepare(folder: Path) -> None:
    """Raise InputError if the folder cannot be made, before minutes are spent on its content."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"The folder {folder} cannot be created: {error.strerror}.") from error


def _run(synthesis: Synthesis, requests: list[Request], options: argparse.Namespace) -> list[dict]:
    """Make the takes and write each as soon as it ends; what was written, in order."""
    made: dict[int, dict] = {}
    problems: list[str] = []
    show, cancel = StatusLine(), threading.Event()
    with stop_on_interrupt(cancel), closing(synthesis.stream_together(requests, cancel)) as events:
        for event in events:
            match event:
                case Started(notes=notes) if event.row == 0:
                    for note in notes:
                        print(f"warning: {note}", file=sys.stderr)
                case Loading() | Progress():
                    show(_words(event, len(made), len(requests)))
                case Finished(result=result) | Cancelled(result=result) if result is not None:
                    try:
                        take = with_words(synthesis.take(requests[event.row], result), result)
                        made[event.row] = _write_take(take, event.row, options)
                    except RunError as error:
                        problems.append(str(error))
                case Failed():
                    problems.append(event.message)
    show("")
    warnings = script_warnings(requests[0]) if made else []
    for problem in dict.fromkeys((*warnings, *problems)):
        print(f"warning: {problem}", file=sys.stderr)
    if not made:
        raise RunError(problems[0] if problems else "Stopped before any take had speech.")
    return [made[row] for row in sorted(made)]


def _words(event: Loading | Progress, done: int, count: int) -> str:
    left = "" if event.left is None else f", {time_left(event.left)} left"
    if isinstance(event, Loading):
        return event.text + left
    return f"{done} of {plural(count, 'take')} done{left}"


def _write_take(take: Take, row: int, options: argparse.Namespace) -> dict:
    """Write a take's file; its figures, for programs."""
    stem = file_stem(take.request.script, {**vars(take.figures)})
    path = take.save(options.output / f"{row + 1}_{stem}.{options.format}")
    if not options.json:
        remarks = "".join(f" {remark}" for remark in take.remarks)
        seconds = take.figures.audio_seconds
        print(f"{path}: {seconds:.1f} s of audio, seed {take.figures.seed}.{remarks}")
    return {"file": str(path), **take.report()}
