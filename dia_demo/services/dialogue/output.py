"""The files of a dialogue, written chunk by chunk: the memory does not grow with the script."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from itertools import pairwise
from pathlib import Path

import numpy as np

from dia_demo.audio import (
    FORMATS,
    STORED_SUFFIX,
    AudioFormat,
    format_of,
    to_int16,
    write_audio,
)
from dia_demo.engine.events import Figures, FinishReason
from dia_demo.errors import InputError, RunError
from dia_demo.files import write_atomic
from dia_demo.services.dialogue.run import DialogueRun, JoinedSound
from dia_demo.services.dialogue.timeline import TimedWord

_BYTES_PER_SAMPLE = 2
_KEPT_FIGURES = (
    "audio_seconds", "seed", "model", "precision", "device", "sample_rate", "finish_reason",
    "numerics",
)  # fmt: skip


def write_dialogue(path: Path, run: DialogueRun, figures: Figures) -> None:
    """Write the joined sound in the format of the suffix, with settings, parts and words inside.

    The file is written completely or not at all. Raises RunError if that fails; the parts stay.
    """
    import soundfile

    kind = format_of(path)
    comment = _comment(run, figures, words_of_run(run), kind)
    rate = figures.sample_rate
    if kind.rates and rate not in kind.rates:
        rate = min((one for one in kind.rates if one > rate), default=max(kind.rates))
    try:
        _check_space(path, run, figures)
        with write_atomic(path, sync=True) as part:
            with soundfile.SoundFile(
                str(part), "w", rate, 1, kind.encoding, format=kind.container
            ) as file:
                # Set before the samples are written: otherwise a WAV has them at its end.
                file.title, file.software, file.comment = "Dia dialogue", "dia_demo", comment
                for samples in _resampled(run, figures.sample_rate, rate):
                    file.write(samples)
    # libsndfile reports a full disk as its own error, or writes less than it was given.
    except (OSError, soundfile.LibsndfileError, AssertionError) as error:
        raise RunError(
            f"{path.name} could not be written: {error}. Free some space, or choose another "
            f"folder, and run it again: its parts are kept in {run.store.folder}."
        ) from error


def words_of_run(run: DialogueRun) -> list[TimedWord]:
    """The words of the whole with their times."""
    return [word for piece in JoinedSound(run).ready() for word in piece.words]


def joined_samples(run: DialogueRun) -> np.ndarray:
    """The whole in memory, float32 [n]."""
    pieces = [piece.samples for piece in JoinedSound(run).ready()]
    return np.concatenate([np.zeros(0, np.float32), *pieces])


def write_speakers(folder: Path, run: DialogueRun, suffix: str) -> Iterator[Path]:
    """Write a track for each speaker, all as long as the whole, in the format of the suffix.

    Raises InputError where it is not known who speaks when.
    """
    speakers = frozenset().union(*(chunk.speakers for chunk in run.plan.chunks))
    is_known = run.plan.info.config.voices is not None
    if not is_known and any(len(chunk.speakers) > 1 for chunk in run.plan.chunks):
        raise InputError(
            f"The words of {run.plan.info.title} cannot be followed, so it is not known who speaks "
            "when: download each part instead."
        )
    samples = joined_samples(run)
    rate = run.take(run.plan.chunks[0]).sample_rate
    spans = list(speaking_spans(words_of_run(run), len(samples) / rate))
    for speaker in sorted(speakers):
        track = np.zeros_like(samples)
        for who, start, end in spans:
            if who == f"S{speaker}":
                first, last = round(start * rate), round(end * rate)
                track[first:last] = samples[first:last]
        about = {"script": run.plan.text, "speaker": speaker}
        yield write_audio(folder / f"speaker-{speaker}{suffix}", track, rate, about)


def speaking_spans(words: list[TimedWord], seconds: float) -> Iterator[tuple[str, float, float]]:
    """Who speaks from when to when: changes are midway between the words of two speakers."""
    start = 0.0
    for word, after in pairwise(words):
        if word.speaker != after.speaker:
            end = (word.end + after.start) / 2
            yield word.speaker, start, end
            start = end
    if words:
        yield words[-1].speaker, start, seconds


def whole_figures(run: DialogueRun, wall_seconds: float, first_audio: float | None) -> Figures:
    """The figures of a dialogue like those of a take: sums over its chunks, the ones that were not
    kept included. wall_seconds: of this run."""
    attempts = [
        attempt.figures for chunk in run.plan.chunks for attempt in run.attempts[chunk.index]
    ]
    audio = sum(len(piece.samples) for piece in JoinedSound(run).ready()) / attempts[0].sample_rate
    return replace(
        attempts[0],
        audio_seconds=audio,
        wall_seconds=wall_seconds,
        realtime_factor=audio / wall_seconds,
        token_seconds=sum(figures.token_seconds for figures in attempts),
        codec_seconds=sum(figures.codec_seconds for figures in attempts),
        first_audio_seconds=first_audio,
        steps=sum(figures.steps for figures in attempts),
        finish_reason=FinishReason.END,
        seed=run.plan.request.params.seed,
        peak_rss_bytes=max(figures.peak_rss_bytes for figures in attempts),
        expected_seconds=run.plan.script.seconds / run.plan.request.speed,
        surplus_turns=None,
        shared_with=0,  # The chunks ran beside each other.
    )


def _resampled(run: DialogueRun, rate: int, wanted: int) -> Iterator[np.ndarray]:
    """The whole as int16 at the wanted rate, piece by piece."""
    import soxr

    stream = soxr.ResampleStream(rate, wanted, 1, dtype="int16") if rate != wanted else None
    for piece in JoinedSound(run).ready():
        samples = to_int16(piece.samples)
        yield samples if stream is None else stream.resample_chunk(samples)
    if stream is not None:
        yield stream.resample_chunk(np.zeros(0, np.int16), last=True)


def _comment(
    run: DialogueRun, figures: Figures, words: Sequence[TimedWord], kind: AudioFormat
) -> str:
    """The metadata as JSON: all of it, or as much as the format has room for."""
    request = run.plan.request
    metadata = {
        "script": run.plan.text,
        "settings": asdict(request.params),
        "speed": request.speed,
        "normalise": request.normalise,
        "pronunciations": request.pronunciations.text,
        "voice_transcript": request.voice.transcript if request.voice else None,
        # Nothing that is timed: an interrupted run gives the same file.
        "figures": {name: getattr(figures, name) for name in _KEPT_FIGURES},
        "join": run.plan.join,
        "chunks": [asdict(report) for report in run.reports()],
        "words": [asdict(word) for word in words],
    }
    for left_out in ("", "words", "chunks", "figures"):
        metadata.pop(left_out, None)
        comment = json.dumps(metadata, default=str)
        if len(comment) <= kind.longest_comment:
            return comment
    raise RunError(
        f"{kind.label} has no room for a script as long as this: choose "
        f"{FORMATS[STORED_SUFFIX].label}."
    )


def _check_space(path: Path, run: DialogueRun, figures: Figures) -> None:
    """Raise RunError where the disk has no room for the file."""
    needed = _BYTES_PER_SAMPLE * figures.sample_rate * figures.audio_seconds
    free = shutil.disk_usage(path.absolute().parent).free
    if free < needed:
        raise RunError(
            f"{path.name} needs {needed / 1e6:.0f} MB and {free / 1e6:.0f} MB are free. Free some "
            f"space and run it again: its parts are kept in {run.store.folder}."
        )
