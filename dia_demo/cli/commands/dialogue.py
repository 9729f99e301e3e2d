"""`say` with a script of any length, in chunks; subtitles and times of words."""

from __future__ import annotations

import argparse
import json
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np

from dia_demo.cli.common import StatusLine, stop_on_interrupt
from dia_demo.engine.events import AudioChunk, Figures, Loading
from dia_demo.engine.family import ModelInfo
from dia_demo.errors import InputError, RunError
from dia_demo.files import write_atomic
from dia_demo.services.dialogue.events import (
    ChunkFinished,
    ChunkProgress,
    ChunkReport,
    DialogueFailed,
    DialogueFinished,
    DialoguePlanned,
    DialogueStopped,
)
from dia_demo.services.dialogue.output import whole_figures, words_in_file, write_dialogue
from dia_demo.services.dialogue.plan import DEFAULT_RETRIES, DialoguePlan, Join
from dia_demo.services.dialogue.run import DialogueRun
from dia_demo.services.dialogue.store import DialogueStore
from dia_demo.services.dialogue.subtitles import check_name, write_subtitles
from dia_demo.services.synthesis import Synthesis
from dia_demo.services.take import TimedWord
from dia_demo.services.wording import duration, plural, time_left

Voices = tuple[str | None, str | None] | None


def add_dialogue(parser: argparse.ArgumentParser) -> None:
    """The options of a long script, and of times."""
    add = parser.add_argument
    chunks = "auto: a script that is too long for one take, or has pauses, is made in parts"
    add("--chunks", choices=("auto", "off"), default="auto", help=chunks)
    join = "steady: all parts have the voices of the first; flowing: of the previous part"
    add("--join", choices=[str(join) for join in Join], default=str(Join.STEADY), help=join)
    again = f"how many times a faulty part is made again (default {DEFAULT_RETRIES})"
    add("--retries", type=int, default=DEFAULT_RETRIES, metavar="N", help=again)
    add("--subtitles", type=Path, metavar="FILE", help="write subtitles: .srt or .vtt")
    add("--words", type=Path, metavar="FILE.json", help="write when each word is said")


def check_times(options: argparse.Namespace) -> None:
    """Raise InputError where subtitles or times cannot be written."""
    if options.subtitles is not None:
        check_name(options.subtitles)
    if options.output is None and (options.subtitles or options.words):
        raise InputError("--subtitles and --words need the audio: give -o as well.")


def write_times(options: argparse.Namespace, words: Sequence[TimedWord], aligned: bool) -> None:
    """Write what the options ask for. aligned: whether the words could be followed."""
    if not (options.subtitles or options.words):
        return
    if not aligned:
        print(
            "warning: this model does not report which word it is speaking, so the times are those "
            "of whole turns, estimated from the length of their text",
            file=sys.stderr,
        )
    try:
        if options.subtitles:
            write_subtitles(options.subtitles, words)
        if options.words:
            with write_atomic(options.words) as part:
                text = json.dumps([asdict(word) for word in words], ensure_ascii=False, indent=1)
                part.write_text(text, encoding="utf-8")
    except OSError as error:
        raise RunError(f"The times could not be written: {error.strerror or error}.") from error


def knows_words(info: ModelInfo) -> bool:
    """Whether the takes of a model say when each word is said."""
    return info.config.voices is not None or info.family.has_word_times


def say_dialogue(
    synthesis: Synthesis, plan: DialoguePlan, options: argparse.Namespace
) -> tuple[Figures, Voices, np.ndarray, tuple[ChunkReport, ...]]:
    """Make a dialogue and write its file, subtitles and words. Returns its figures, the voices of
    S1 and S2, the codes of all chunks, and what became of each."""
    store = DialogueStore.for_output(options.output, plan)
    run, began = DialogueRun(synthesis, plan, store), time.monotonic()
    first_audio = _make(run, began)
    figures = whole_figures(run, time.monotonic() - began, first_audio)
    write_dialogue(options.output, run, figures)
    reports = run.reports()
    if options.subtitles or options.words:
        write_times(options, words_in_file(run), knows_words(plan.info))
    voices, codes = run.take(plan.chunks[0]).voices, np.zeros((0, 0), np.int16)
    if options.codes is not None:
        codes = np.concatenate([run.take(chunk).codes for chunk in plan.chunks])
    store.remove()
    return figures, voices, codes, reports


def _make(run: DialogueRun, began: float) -> float | None:
    """Make what is missing, with progress on the status line; the seconds until the first sound."""
    show, cancel = StatusLine(), threading.Event()
    count, first_audio = len(run.plan.chunks), None
    with stop_on_interrupt(cancel):
        for event in run.stream(cancel):
            match event:
                case Loading():
                    show(event.text)
                case DialoguePlanned() if event.found:
                    print(
                        f"note: {event.found} of {plural(count, 'part')} were made before",
                        file=sys.stderr,
                    )
                case ChunkProgress():
                    left = "" if event.left is None else f", {time_left(event.left)} left"
                    done, total = duration(event.done_seconds), duration(event.total_seconds)
                    show(f"{run.made} of {plural(count, 'part')}, {done} of about {total}{left}")
                case ChunkFinished() if event.is_remade:
                    show("")
                    print(
                        f"note: part {event.chunk + 1}: {event.verdict.text}; made again",
                        file=sys.stderr,
                    )
                case AudioChunk() if first_audio is None:
                    first_audio = time.monotonic() - began
                case DialogueFailed():
                    raise RunError(f"{event.message} {_describe_kept(run, event.made)}")
                case DialogueStopped():
                    if not event.made:
                        run.store.remove()  # Nothing to go on with.
                    raise RunError(f"Stopped. {_describe_kept(run, event.made)}")
                case DialogueFinished():
                    show("")
    return first_audio


def _describe_kept(run: DialogueRun, made: int) -> str:
    count = plural(len(run.plan.chunks), "part")
    if not made:
        return f"None of {count} was complete."
    where = run.store.folder
    return f"{made} of {count} are kept in {where}: the same command makes the others."
