"""`say - --stream`: speaks standard input while it arrives."""

from __future__ import annotations

import argparse
import codecs
import json
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from dia_demo import audio
from dia_demo.cli.common import StatusLine, stop_on_interrupt
from dia_demo.disclosure.tags import append_xmp, write_tags
from dia_demo.engine.events import AudioChunk
from dia_demo.errors import InputError, RunError
from dia_demo.services.speech.incoming import SentenceBegun, TextStopped, speak_incoming
from dia_demo.services.synthesis import Synthesis
from dia_demo.services.take import Request

_PIECE_BYTES = 4096


def check_stream(options: argparse.Namespace) -> None:
    """Raise InputError for options that do not go with --stream."""
    if options.script != "-" or options.file is not None:
        raise InputError("--stream speaks standard input: give - as the script.")
    if options.output is None:
        raise InputError(f"--stream needs a file to write to: -o FILE{audio.STORED_SUFFIX}.")
    if options.codes or options.subtitles or options.words:
        raise InputError("--codes, --subtitles and --words do not go with --stream.")


def say_stream(synthesis: Synthesis, request: Request, options: argparse.Namespace) -> int:
    """Write the file while its text arrives: what has been spoken can be played at any time."""
    began, first, seconds, count = time.monotonic(), None, 0.0, 0
    show, cancel, model = StatusLine(), threading.Event(), request.model
    with (
        stop_on_interrupt(cancel),
        _open(options.output, request) as file,
        closing(speak_incoming(synthesis, request, _stdin_pieces(), cancel)) as events,
    ):
        for event in events:
            match event:
                case SentenceBegun(sentence=sentence):
                    count += 1
                    show(f"S{sentence.speaker}: {sentence.text}"[:100])
                case TextStopped(message=message):
                    show("")
                    print(f"warning: {message}", file=sys.stderr)
                case AudioChunk():
                    first = time.monotonic() - began if first is None else first
                    seconds += len(event.samples) / event.sample_rate
                    file.write(audio.to_int16(event.samples))
                    file.flush()
    show("")
    if not seconds:
        options.output.unlink(missing_ok=True)
        raise InputError("There were no words on standard input, so no file was written.")
    with open(options.output, "r+b") as whole:
        append_xmp(whole, model.name)
    figures = {
        "audio_seconds": seconds,
        "wall_seconds": time.monotonic() - began,
        "first_audio_seconds": first,
        "sentences": count,
        "seed": request.params.seed,
        "model": model.name,
        "sample_rate": model.sample_rate,
    }
    if options.json:
        print(json.dumps(figures))
    else:
        print(f"{options.output}: {seconds:.1f} s of audio in {count} sentence(s)")
    return 0


def _open(path: Path, request: Request) -> Any:
    """The file, which has its settings inside before its first sound."""
    import soundfile

    kind, rate = audio.format_of(path), request.model.sample_rate
    if kind.rates and rate not in kind.rates:
        raise InputError(
            f"--stream cannot write {path.suffix} at {rate} Hz: use {audio.STORED_SUFFIX}."
        )
    try:
        file = soundfile.SoundFile(str(path), "w", rate, 1, kind.encoding, format=kind.container)
    except (OSError, soundfile.LibsndfileError) as error:
        raise RunError(f"{path.name} could not be written: {error}.") from error
    about = request.metadata(request.params.seed)
    write_tags(file, "Dia speech", request.model.name, audio.comment_of(about, kind, ()))
    return file


def _stdin_pieces() -> Iterator[str]:
    """Standard input as it arrives, without waiting for the end of a line."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        while piece := os.read(sys.stdin.fileno(), _PIECE_BYTES):
            yield decoder.decode(piece)
        yield decoder.decode(b"", final=True)
    except UnicodeDecodeError as error:
        raise InputError("stdin is not text in UTF-8.") from error
