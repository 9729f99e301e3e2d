"""The command line, on the same services as the page: `say` and `doctor`.

Exit code 0 on success, 2 for a usage or input error (one line on stderr), 1 for a failure while
running. Progress goes to stderr where that is a terminal; stdout carries results alone.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np

from dia_demo import audio
from dia_demo.config import DEVICES, PRECISIONS, RuntimeConfig
from dia_demo.engine.events import Cancelled, Failed, Finished, Loading, Progress, Result, Started
from dia_demo.errors import DiaDemoError, InputError, RunError
from dia_demo.services import catalogue
from dia_demo.services.doctor import examine
from dia_demo.services.settings import Settings
from dia_demo.services.synthesis import Request, Synthesis, VoicePrompt, random_seed


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit code."""
    logging.basicConfig(level=logging.ERROR, format="%(message)s")
    try:
        options = _parser().parse_args(argv)
        return options.run(options)
    except InputError as error:
        return _told(error, 2)
    except DiaDemoError as error:
        return _told(error, 1)


def _told(error: DiaDemoError, code: int) -> int:
    print("error: " + " ".join(str(error).split()), file=sys.stderr)
    return code


class _Parser(argparse.ArgumentParser):
    """One line on stderr instead of the whole usage."""

    def error(self, message: str) -> None:
        raise InputError(f"{message}. See: {self.prog} --help")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="python -m dia_demo", description="Dia text-to-dialogue on a CPU.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND", parser_class=_Parser)
    say = commands.add_parser("say", help="speak a script into a sound file")
    say.set_defaults(run=_say)
    say.add_argument("script", help='"[S1] Hello. [S2] Hi there."; - reads it from stdin')
    say.add_argument("-o", "--output", type=Path, metavar="FILE", help=".wav or .flac to write")
    _add_runtime(say)
    for name, kind in (
        ("temperature", float),
        ("cfg-scale", float),
        ("top-p", float),
        ("top-k", int),
        ("max-tokens", int),
        ("seed", int),
    ):
        say.add_argument(f"--{name}", type=kind, metavar="F" if kind is float else "N")
    say.add_argument("--speed", type=float, default=1.0, metavar="F", help="0.5 to 2, pitch kept")
    say.add_argument("--voice-prompt", type=Path, metavar="AUDIO", help="a voice to go on with")
    say.add_argument("--voice-transcript", default="", metavar="TEXT", help="what the prompt says")
    say.add_argument("--voice-codes", type=Path, metavar="FILE.npy", help="a prompt as codes")
    say.add_argument("--codes", type=Path, metavar="FILE.npy", help="also write the take's codes")
    say.add_argument("--json", action="store_true", help="end stdout with the figures as JSON")
    doctor = commands.add_parser("doctor", help="what this machine has and what will be chosen")
    doctor.set_defaults(run=_doctor)
    _add_runtime(doctor)
    doctor.add_argument("--json", action="store_true")
    return parser


def _add_runtime(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--model", metavar="nano | OWNER/NAME | PATH")
    parser.add_argument("--precision", choices=PRECISIONS)
    parser.add_argument("--device", choices=DEVICES, default="cpu")
    parser.add_argument("--threads", type=int, metavar="N")


def _runtime(options: argparse.Namespace, settings: Settings) -> RuntimeConfig:
    """The environment's settings, overruled by what was given."""
    given = {name: getattr(options, name) for name in ("model", "precision", "device", "threads")}
    return replace(settings.runtime, **{k: v for k, v in given.items() if v is not None})


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
    if path.is_dir():
        raise InputError(f"{path} is a folder: give the name of a file in it.")


def _request(options: argparse.Namespace, settings: Settings) -> Request:
    runtime = _runtime(options, settings)
    info = _drain(catalogue.fetch_description(runtime.model))
    names = ("temperature", "cfg_scale", "top_p", "top_k", "max_tokens", "seed")
    given = {name: getattr(options, name) for name in names}
    given["seed"] = random_seed() if options.seed is None else options.seed
    params = replace(info.config.defaults, **{k: v for k, v in given.items() if v is not None})
    return Request(
        script=sys.stdin.read() if options.script == "-" else options.script,
        params=params,
        runtime=runtime,
        voice=_voice(options),
        speed=options.speed,
        with_audio=options.output is not None,
    )


def _drain(generator):
    """The result of a generator whose progress nobody watches."""
    while True:
        try:
            next(generator)
        except StopIteration as stop:
            return stop.value


def _voice(options: argparse.Namespace) -> VoicePrompt | None:
    if options.voice_prompt is not None and options.voice_codes is not None:
        raise InputError("Give --voice-prompt or --voice-codes, not both.")
    if options.voice_codes is not None:
        codes = _read_codes(options.voice_codes)
        return VoicePrompt(codes=codes, transcript=options.voice_transcript)
    if options.voice_prompt is not None:
        return VoicePrompt(audio=options.voice_prompt, transcript=options.voice_transcript)
    if options.voice_transcript:
        raise InputError("--voice-transcript needs --voice-prompt or --voice-codes beside it.")
    return None


def _read_codes(path: Path) -> np.ndarray:
    try:
        codes = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise InputError(f"{path} cannot be read as a .npy array: {error}.") from error
    if not isinstance(codes, np.ndarray):
        raise InputError(f"{path} holds several arrays: give one .npy of [frames, channels].")
    return codes


def _write_codes(path: Path, codes: np.ndarray) -> None:
    try:
        with open(path, "wb") as file:
            np.save(file, codes)
    except OSError as error:
        raise RunError(f"{path} could not be written: {error.strerror}.") from error


def _run(synthesis: Synthesis, request: Request) -> Result:
    """Drain the request's events, telling a person at a terminal how it goes."""
    show = _Status()
    cancel = threading.Event()
    with _stop_on_interrupt(cancel):
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


class _Status:
    """One line on a terminal, rewritten in place; silent anywhere else."""

    def __init__(self) -> None:
        self._width = 0

    def __call__(self, text: str) -> None:
        if sys.stderr.isatty():
            end = "" if text else "\r"
            print(f"\r{text:<{self._width}}", end=end, file=sys.stderr, flush=True)
            self._width = len(text)


@contextmanager
def _stop_on_interrupt(cancel: threading.Event) -> Iterator[None]:
    """The first Ctrl-C stops the take and keeps it; the second ends the program."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(*_: object) -> None:
        cancel.set()
        signal.signal(signal.SIGINT, before)

    before = signal.signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


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
    report = examine(_runtime(options, Settings.from_env()))
    print(json.dumps(asdict(report)) if options.json else report.as_text())
    return 0 if report.ready else 1
