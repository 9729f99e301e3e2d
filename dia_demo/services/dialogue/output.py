"""The files of a dialogue, written chunk by chunk: the memory does not grow with the script."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from itertools import chain, pairwise
from pathlib import Path

import numpy as np

from dia_demo.audio import AudioFormat, comment_of, format_of, to_int16, write_audio
from dia_demo.disclosure.notice import about_notice
from dia_demo.disclosure.tags import append_xmp, write_tags
from dia_demo.engine.events import Figures, FinishReason
from dia_demo.errors import InputError, RunError
from dia_demo.files import write_atomic
from dia_demo.services.dialogue.run import DialogueRun, JoinedSound
from dia_demo.services.take import NO_KEPT, TimedWord

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
    notice = notice_of(run, figures.sample_rate)
    comment = _comment(run, figures, words_in_file(run), kind)
    rate = figures.sample_rate
    if kind.rates and rate not in kind.rates:
        rate = min((one for one in kind.rates if one > rate), default=max(kind.rates))
    try:
        _check_space(path, run, figures)
        with write_atomic(path, sync=True) as part:
            with soundfile.SoundFile(
                str(part), "w", rate, 1, kind.encoding, format=kind.container
            ) as file:
                write_tags(file, "Dia dialogue", figures.model, comment)
                for samples in _resample(run, notice, figures.sample_rate, rate):
                    file.write(samples)
            with open(part, "r+b") as whole:
                append_xmp(whole, figures.model)
    # libsndfile reports a full disk as its own error, or writes less than it was given.
    except (OSError, soundfile.LibsndfileError, AssertionError) as error:
        raise RunError(
            f"{path.name} could not be written: {error}. Free some space, or choose another "
            f"folder, and run it again: its parts are kept in {run.store.folder}."
        ) from error


def notice_of(run: DialogueRun, sample_rate: int) -> np.ndarray:
    """The notice at the start of a dialogue's files, float32 [n]."""
    return run.synthesis.notice.samples(sample_rate)


def words_in_file(run: DialogueRun) -> list[TimedWord]:
    """The words with their times in the file of the whole, which may begin with a notice."""
    seconds = run.synthesis.notice.seconds
    return [word.shift(seconds) for word in run.timeline().words]


def joined_samples(run: DialogueRun) -> np.ndarray:
    """The whole in memory, float32 [n]."""
    pieces = [piece.samples for piece in JoinedSound(run).ready_pieces()]
    return np.concatenate([np.zeros(0, np.float32), *pieces])


def write_speakers(folder: Path, run: DialogueRun, suffix: str) -> Iterator[Path]:
    """Write a track for each speaker, all as long as the whole, in the format of the suffix.

    Raises InputError where it is not known who speaks when.
    """
    speakers = frozenset().union(*(chunk.speakers for chunk in run.plan.chunks))
    info = run.plan.info
    is_known = info.config.voices is not None or info.family.has_word_times
    if not is_known and any(len(chunk.speakers) > 1 for chunk in run.plan.chunks):
        raise InputError(
            f"{info.title} does not report which word it is speaking, so it is not known "
            "who speaks when: download each part instead."
        )
    samples = joined_samples(run)
    rate = run.take(run.plan.chunks[0]).sample_rate
    spans = list(speaking_spans(run.timeline().words, len(samples) / rate))
    for speaker in sorted(speakers):
        track = np.zeros_like(samples)
        for who, start, end in spans:
            if who == f"S{speaker}":
                first, last = round(start * rate), round(end * rate)
                track[first:last] = samples[first:last]
        about = {"script": run.plan.text, "speaker": speaker, "model": run.plan.info.name}
        path = folder / f"speaker-{speaker}{suffix}"
        yield write_with_notice(path, run, track, rate, about)


def write_with_notice(
    path: Path, run: DialogueRun, samples: np.ndarray, rate: int, about: dict
) -> Path:
    """Write a part of a dialogue, or a track, as a file of its own; see `write_audio`."""
    notice = notice_of(run, rate)
    about = about | about_notice(len(notice) / rate)
    return write_audio(path, np.concatenate([notice, samples]), rate, about)


def speaking_spans(
    words: Sequence[TimedWord], seconds: float
) -> Iterator[tuple[str, float, float]]:
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
    audio = run.timeline().samples / attempts[0].sample_rate
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


def _resample(run: DialogueRun, notice: np.ndarray, rate: int, wanted: int) -> Iterator[np.ndarray]:
    """The notice and the whole as int16 at the wanted rate, piece by piece."""
    import soxr

    stream = soxr.ResampleStream(rate, wanted, 1, dtype="int16") if rate != wanted else None
    for sound in chain([notice], (piece.samples for piece in JoinedSound(run).ready_pieces())):
        samples = to_int16(sound)
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
        "chosen_voices": request.voices,
        "kept_voices": request.voice.kept if request.voice else NO_KEPT,
        # Nothing that is timed: an interrupted run gives the same file.
        "figures": {name: getattr(figures, name) for name in _KEPT_FIGURES},
        "join": run.plan.join,
        "chunks": [asdict(report) for report in run.reports()],
        "words": [asdict(word) for word in words],
        **about_notice(len(notice_of(run, figures.sample_rate)) / figures.sample_rate),
    }
    return comment_of(metadata, kind, ("words", "chunks", "figures"))


def _check_space(path: Path, run: DialogueRun, figures: Figures) -> None:
    """Raise RunError where the disk has no room for the file."""
    needed = _BYTES_PER_SAMPLE * figures.sample_rate * figures.audio_seconds
    free = shutil.disk_usage(path.absolute().parent).free
    if free < needed:
        raise RunError(
            f"{path.name} needs {needed / 1e6:.0f} MB and {free / 1e6:.0f} MB are free. Free some "
            f"space and run it again: its parts are kept in {run.store.folder}."
        )
