"""The command `say`: generate one take and write its audio, its codes or both."""

from __future__ import annotations

import argparse
import json
import os
import stat
import sys
import threading
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np

from dia_demo import audio
from dia_demo.cli.commands.dialogue import (
    add_dialogue,
    check_times,
    knows_words,
    say_dialogue,
    write_times,
)
from dia_demo.cli.commands.say_stream import check_stream, say_stream
from dia_demo.cli.common import (
    StatusLine,
    stop_on_interrupt,
)
from dia_demo.cli.take_options import add_take_options, request_of, script_warnings
from dia_demo.engine.events import (
    Cancelled,
    Failed,
    Figures,
    Finished,
    FinishReason,
    Loading,
    Progress,
    Result,
    Started,
)
from dia_demo.errors import InputError, RunError
from dia_demo.services.dialogue.events import ChunkReport
from dia_demo.services.dialogue.plan import Join, make_plan, needs_chunks
from dia_demo.services.dialogue.single_take import report_of_take, with_words
from dia_demo.services.remote.synthesis import open_synthesis
from dia_demo.services.settings import Settings
from dia_demo.services.synthesis import Synthesis
from dia_demo.services.take import Request
from dia_demo.services.wording import ENDINGS, length_remark, sharing_clause, time_left


def register(commands) -> None:
    """Add `say` to the command line."""
    parser = commands.add_parser("say", help="generate speech from a script")
    parser.set_defaults(run=_say)
    add = parser.add_argument
    add_take_options(parser)
    add(
        "-o",
        "--output",
        type=Path,
        metavar="FILE",
        help=f"audio file to write: {', '.join(audio.FORMATS)}",
    )
    add_dialogue(parser)
    add("--codes", type=Path, metavar="FILE.npy", help="write the codes of the take")
    add("--json", action="store_true", help="print the figures as one JSON object")
    add("--stream", action="store_true", help="with - as the script: speak stdin as it arrives")


def _say(options: argparse.Namespace) -> int:
    if options.stream:
        check_stream(options)
    if options.output is None and options.codes is None:
        raise InputError(
            f"Nothing to write: give -o FILE{audio.STORED_SUFFIX}, --codes FILE.npy or both."
        )
    if options.output is not None:
        audio.format_of(options.output)
    check_times(options)
    for path in (options.output, options.codes, options.subtitles, options.words):
        if path is not None:
            _check_output(path)
    settings = Settings.from_env()
    synthesis = open_synthesis(settings)
    if options.stream:
        return say_stream(synthesis, request_of(options, settings, script=""), options)
    request = request_of(options, settings, with_audio=options.output is not None)
    if request.with_audio and options.chunks == "auto" and needs_chunks(request):
        return _say_in_chunks(synthesis, request, options)
    result, notes = _run(synthesis, request)
    if options.codes is not None:
        _write_codes(options.codes, result.codes)
    remark = length_remark(result.figures)
    remarks: tuple[str, ...] = () if remark is None else (remark,)
    reports: tuple[ChunkReport, ...] = ()
    if options.output is not None:
        take = with_words(synthesis.take(request, result), result)
        take.save(options.output)
        remarks = take.remarks
        reports = (report_of_take(request, result),)
        if options.words or options.subtitles:
            write_times(options, take.words, knows_words(request.model))
    warnings = [warning for warning in script_warnings(request) if warning not in notes]
    _print_remarks((*warnings, *remarks))
    _print_figures(result.figures, result.voices, (*notes, *remarks), reports, options)
    return 0


def _say_in_chunks(synthesis: Synthesis, request: Request, options: argparse.Namespace) -> int:
    """A script that is too long for one take, or has pauses of a given length."""
    plan = make_plan(request, Join(options.join), options.retries)
    figures, voices, codes, reports = say_dialogue(synthesis, plan, options)
    if options.codes is not None:
        _write_codes(options.codes, codes)
    remarks = tuple(filter(None, (report.remark for report in reports)))
    warnings = script_warnings(request, in_parts=True)
    _print_remarks(dict.fromkeys((*request.notes, *warnings, *remarks)))
    _print_figures(figures, voices, (*request.notes, *remarks), reports, options)
    return 0


def _check_output(path: Path) -> None:
    """Raise InputError if a file cannot be written, before minutes are spent on its content."""
    folder = path.absolute().parent
    if not folder.is_dir():
        raise InputError(f"The folder {folder} does not exist: create it first.")
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


def _write_codes(path: Path, codes: np.ndarray) -> None:
    try:
        with open(path, "wb") as file:
            np.save(file, codes)
    except OSError as error:
        raise RunError(f"{path} could not be written: {error.strerror}.") from error


def _run(synthesis: Synthesis, request: Request) -> tuple[Result, tuple[str, ...]]:
    """Generate the take, with progress on the status line; also the notes on its start."""
    notes: tuple[str, ...] = ()
    show = StatusLine()
    cancel = threading.Event()
    with stop_on_interrupt(cancel):
        for event in synthesis.stream(request, cancel):
            match event:
                case Loading():
                    show(f"{event.text}{_left_clause(event)}")
                case Started(notes=notes):
                    for note in notes:
                        print(f"warning: {note}", file=sys.stderr)
                case Progress():
                    show(
                        f"{event.audio_seconds:.1f} s of audio, {event.realtime_factor:.2f}x "
                        f"realtime{_left_clause(event)}"
                    )
                case Finished():
                    show("")
                    return event.result, notes
                case Cancelled(result=Result() as result):
                    show("")
                    return result, notes
                case Cancelled():
                    raise RunError("Stopped before there was any speech, so no file was written.")
                case Failed():
                    raise RunError(event.message)
    raise AssertionError("a stream ended without its last event")


def _left_clause(event: Loading | Progress) -> str:
    return "" if event.left is None else f", {time_left(event.left)} left"


def _print_remarks(remarks: Iterable[str]) -> None:
    for remark in remarks:
        print(f"warning: {remark}", file=sys.stderr)


def _print_figures(
    figures: Figures,
    voices: tuple[str | None, str | None] | None,
    remarks: Sequence[str],
    reports: Sequence[ChunkReport],
    options: argparse.Namespace,
) -> None:
    if options.json:
        chunks = [asdict(report) for report in reports]
        more = {"voices": voices, "remarks": remarks, "chunks": chunks}
        print(json.dumps(asdict(figures) | more))
        return
    shared = f" {sharing_clause(figures.shared_with)}" if figures.shared_with else ""
    written = " and ".join(str(path) for path in (options.output, options.codes) if path)
    parts = f", in {len(reports)} parts" if len(reports) > 1 else ""
    print(
        f"{written}: {figures.audio_seconds:.1f} s of audio in {figures.wall_seconds:.1f} s, "
        f"{figures.realtime_factor:.2f}x realtime{shared}, seed {figures.seed}, "
        f"{figures.precision}{parts}"
    )
    if figures.finish_reason != FinishReason.END:
        print(f"Ended: {ENDINGS[figures.finish_reason]}.")
