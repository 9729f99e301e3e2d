"""Shared parts of the commands: options, a status line, Ctrl-C."""

from __future__ import annotations

import argparse
import signal
import sys
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from dia_demo.config import DEVICES, PRECISIONS, RuntimeConfig
from dia_demo.engine.family import ModelInfo
from dia_demo.errors import InputError
from dia_demo.services.models import fetch_description, find_model
from dia_demo.services.settings import Settings
from dia_demo.services.take import VoicePrompt
from dia_demo.task import Task, result_of
from dia_demo.text.pronunciations import NONE, Pronunciations
from dia_demo.untrusted import read_codes

Event = TypeVar("Event")
Result = TypeVar("Result")


def add_runtime(parser: argparse.ArgumentParser) -> None:
    """The options that say which model runs where and how."""
    parser.add_argument("--model", metavar="nano | OWNER/NAME | PATH")
    parser.add_argument("--precision", choices=PRECISIONS)
    parser.add_argument("--device", choices=DEVICES, default="cpu")
    parser.add_argument("--threads", type=int, metavar="N")
    insist = "run on a device that passed its self-check but is slower than the CPU"
    parser.add_argument("--insist", action="store_true", default=None, help=insist)


def runtime_of(options: argparse.Namespace, settings: Settings) -> RuntimeConfig:
    """The settings of the environment, overridden by the options."""
    names = ("model", "precision", "device", "threads", "insist")
    values = {name: getattr(options, name) for name in names}
    chosen = {name: value for name, value in values.items() if value is not None}
    return replace(settings.runtime, **chosen)


def model_of(name: str) -> ModelInfo:
    """The model of a name, with the config of a hub model fetched. Raises InputError if there is
    none."""
    return result_of(fetch_description(find_model(name)))


def add_voice(parser: argparse.ArgumentParser) -> None:
    """The options that give a voice prompt."""
    voice = parser.add_argument
    voice("--voice-prompt", type=Path, metavar="AUDIO", help="audio of a voice to continue")
    voice("--voice-transcript", default="", metavar="TEXT", help="the words of the prompt")
    voice("--voice-codes", type=Path, metavar="FILE.npy", help="a voice prompt as codes")


def add_normalise(parser: argparse.ArgumentParser) -> None:
    """The option to write a script out in words."""
    text = "write out numbers, abbreviations and signs as words (the nano voice always does)"
    parser.add_argument("--normalise", action="store_true", help=text)


def add_pronunciations(parser: argparse.ArgumentParser) -> None:
    """The option for a person's list of words."""
    text = "words and how to say them: lines “word = how to say it”, .csv or .json"
    parser.add_argument("--pronunciations", type=Path, metavar="FILE", help=text)


def pronunciations_of(options: argparse.Namespace) -> Pronunciations:
    """The list of the options, empty without one. Raises InputError if it is no such list."""
    return Pronunciations.read(options.pronunciations) if options.pronunciations else NONE


def voice_of(options: argparse.Namespace) -> VoicePrompt | None:
    """The voice prompt of the options, None without one. Raises InputError if one is missing."""
    if options.voice_prompt is not None and options.voice_codes is not None:
        raise InputError("Give --voice-prompt or --voice-codes, not both.")
    if options.voice_codes is not None:
        codes = read_codes(options.voice_codes)
        return VoicePrompt(codes=codes, transcript=options.voice_transcript)
    if options.voice_prompt is not None:
        return VoicePrompt.from_file(options.voice_prompt, options.voice_transcript)
    if options.voice_transcript:
        raise InputError("--voice-transcript needs --voice-prompt or --voice-codes.")
    return None


class StatusLine:
    """One line on a terminal, rewritten in place; silent anywhere else."""

    def __init__(self) -> None:
        self._width = 0

    def __call__(self, text: str) -> None:
        if sys.stderr.isatty():
            end = "" if text else "\r"
            print(f"\r{text:<{self._width}}", end=end, file=sys.stderr, flush=True)
            self._width = len(text)


@contextmanager
def stop_on_interrupt(cancel: threading.Event) -> Iterator[None]:
    """The first Ctrl-C stops the take, which is written; the second ends the program."""
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


def follow(
    work: Generator[Event, None, Result],
    cancel: threading.Event,
    words_of: Callable[[Event], str | None],
) -> Result:
    """The result of `work`. words_of: an event's text for the status line, None for no change."""
    show, task = StatusLine(), Task(work)
    with stop_on_interrupt(cancel):
        for event in task:
            if (words := words_of(event)) is not None:
                show(words)
        show("")
    return task.result
