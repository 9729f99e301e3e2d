"""What turns a job into sound: the engine of this process, or of a cluster.

A speaker streams the events of one job. The samples of its AudioChunk events, in order, are the
speech; the same job has the same samples whatever runs beside it, so that a stream which was cut
can be continued by another one.
"""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from dia_demo.config import RuntimeConfig
from dia_demo.engine.events import (
    AudioChunk,
    Cancelled,
    Event,
    Failed,
    Figures,
    Finished,
    FinishReason,
    Started,
)
from dia_demo.engine.family import ModelInfo
from dia_demo.engine.loading.placement import place_on_cpu
from dia_demo.engine.time_left import TimeLeft
from dia_demo.errors import RunError
from dia_demo.machine.processor import numerics_here
from dia_demo.services.dialogue.events import (
    DialogueEvent,
    DialogueFailed,
    DialogueFinished,
    DialogueStopped,
)
from dia_demo.services.dialogue.output import whole_figures, words_in_file
from dia_demo.services.dialogue.plan import DialoguePlan, make_plan, needs_chunks
from dia_demo.services.dialogue.run import DialogueRun, time_to_make
from dia_demo.services.dialogue.single_take import with_words
from dia_demo.services.dialogue.store import DialogueStore
from dia_demo.services.scratch import work_folder
from dia_demo.services.speech.incoming import IncomingEvent, can_continue, speak_incoming
from dia_demo.services.speech.job import SpeechJob
from dia_demo.services.synthesis import Synthesis
from dia_demo.services.take import Request, TimedWord
from dia_demo.text.script import has_words

# For a text without words.
SILENT_SECONDS = 0.2


@dataclass(frozen=True)
class Promise:
    """What is known of a job before it begins.

    left: the time until all of it is made, None if that is unknown. audio_seconds: an estimate.
    sample_rate: of its sound, in Hz. fingerprint: of the model and this machine's numerics; where
    it is the same, a job has the same samples.
    """

    left: TimeLeft | None
    audio_seconds: float
    sample_rate: int
    fingerprint: str


@dataclass(frozen=True)
class SpeechFinished:
    """The last event of a job. words: with their times in the sound; remarks: problems with it, one
    sentence each."""

    figures: Figures
    words: tuple[TimedWord, ...]
    voices: tuple[str | None, str | None] | None
    remarks: tuple[str, ...]


SpeechEvent = Event | DialogueEvent | SpeechFinished


class Speaker(Protocol):
    """Where jobs are made. Its methods may be called from any thread."""

    def promise(self, job: SpeechJob) -> Promise:
        """Check a job, and say what to expect. Raises InputError if it cannot be made."""

    def stream(self, job: SpeechJob, cancel: threading.Event) -> Generator[SpeechEvent, None, None]:
        """The events of a job; the last one is SpeechFinished, unless it is stopped.

        Setting `cancel`, or closing the generator, stops it within a step. Raises InputError if it
        cannot be made, RunError if it fails.
        """

    def can_continue(self, model: str) -> bool:
        """Whether a take of this model may begin before its text is complete."""

    def stream_incoming(
        self, job: SpeechJob, pieces: Iterable[str], cancel: threading.Event
    ) -> Generator[IncomingEvent, None, None]:
        """A job whose text comes in pieces; that of the job only says who speaks. See
        `speak_incoming`."""


class LocalSpeaker:
    """Makes jobs with the engine of this process."""

    def __init__(self, synthesis: Synthesis) -> None:
        self._synthesis = synthesis

    def promise(self, job: SpeechJob) -> Promise:
        """See `Speaker`."""
        request = self._request(job)
        info = request.model
        if not has_words(job.text):
            made_by = fingerprint(info, request.runtime)
            return Promise(None, SILENT_SECONDS, info.sample_rate, made_by)
        if needs_chunks(request):
            plan = make_plan(request)
            audio = plan.script.seconds / request.speed
            left = time_to_make(self._synthesis, request, plan.script.seconds, plan.join)
        else:
            self._synthesis.validate(request)
            text = request.reading(request.script).text
            audio = info.expected_seconds(text) / request.speed
            left = self._synthesis.speed.expect_take(request).left
        before = self._synthesis.time_to_begin(info, request.runtime)
        left = None if left is None or before is None else before + left
        return Promise(left, audio, info.sample_rate, fingerprint(info, request.runtime))

    def stream(self, job: SpeechJob, cancel: threading.Event) -> Generator[SpeechEvent, None, None]:
        """See `Speaker`."""
        request = self._request(job)
        if not has_words(job.text):
            yield from _silence(request)
            return
        is_long = needs_chunks(request)
        work = self._parts(make_plan(request), cancel) if is_long else self._take(request, cancel)
        yield from self._synthesis.notice.prepend_to(work)

    def can_continue(self, model: str) -> bool:
        """See `Speaker`."""
        return can_continue(self._synthesis, self._synthesis.models[model])

    def stream_incoming(
        self, job: SpeechJob, pieces: Iterable[str], cancel: threading.Event
    ) -> Generator[IncomingEvent, None, None]:
        """See `Speaker`."""
        yield from speak_incoming(self._synthesis, self._request(job), pieces, cancel)

    def _request(self, job: SpeechJob) -> Request:
        synthesis = self._synthesis
        request = job.request(synthesis.models[job.model], synthesis.settings)
        synthesis.check_length(request.script)
        return request

    def _take(
        self, request: Request, cancel: threading.Event
    ) -> Generator[SpeechEvent, None, None]:
        notes: tuple[str, ...] = ()
        with closing(self._synthesis.stream(request, cancel, in_int8_meanwhile=True)) as events:
            for event in events:
                match event:
                    case Failed(message=message):
                        raise RunError(message)
                    case Started():
                        notes = event.notes
                        yield event
                    case Finished(result=result):
                        take = with_words(self._synthesis.take(request, result), result)
                        remarks = tuple(dict.fromkeys((*notes, *take.remarks)))
                        yield SpeechFinished(take.figures, take.words, take.voices, remarks)
                    case Cancelled():
                        return
                    case _:
                        yield event

    def _parts(
        self, plan: DialoguePlan, cancel: threading.Event
    ) -> Generator[SpeechEvent, None, None]:
        began, first = time.monotonic(), None
        folder = self._synthesis.settings.takes_folder
        with work_folder(folder, "speech-") as parts:
            run = DialogueRun(self._synthesis, plan, DialogueStore(parts, is_kept=False))
            with closing(run.stream(cancel)) as events:
                for event in events:
                    match event:
                        case DialogueFailed(message=message):
                            raise RunError(message)
                        case DialogueStopped():
                            return
                        case DialogueFinished():
                            yield self._finish(run, time.monotonic() - began, first)
                        case _:
                            if isinstance(event, AudioChunk) and first is None:
                                first = time.monotonic() - began
                            yield event

    def _finish(self, run: DialogueRun, seconds: float, first: float | None) -> SpeechFinished:
        figures = whole_figures(run, seconds, first)
        remarks = tuple(filter(None, (report.remark for report in run.reports())))
        voices = run.take(run.plan.chunks[0]).voices
        return SpeechFinished(figures, tuple(words_in_file(run)), voices, remarks)


def _silence(request: Request) -> Iterator[SpeechEvent]:
    """The answer to a text without words, such as "." or "…".

    Clients that cut a text into sentences send such rests, and Home Assistant checks a token so. An
    error would end what they are saying.
    """
    info, count = request.model, round(SILENT_SECONDS * request.model.sample_rate)
    yield AudioChunk(np.zeros(count, np.float32), info.sample_rate, 0.0)
    figures = Figures(
        audio_seconds=SILENT_SECONDS,
        wall_seconds=0.0,
        realtime_factor=0.0,
        token_seconds=0.0,
        codec_seconds=0.0,
        first_audio_seconds=None,
        steps=0,
        finish_reason=FinishReason.END,
        seed=request.params.seed,
        model=info.name,
        precision=request.runtime.precision,
        device=request.runtime.device,
        sample_rate=info.sample_rate,
        peak_rss_bytes=0,
    )
    yield SpeechFinished(figures, (), None, ("There were no words to say.",))


def fingerprint(info: ModelInfo, runtime: RuntimeConfig) -> str:
    """A hash of what decides the samples of a job on this machine besides the job itself. Raises
    InputError if the model cannot run here."""
    precision = runtime.precision
    if runtime.device == "cpu":
        precision = place_on_cpu(runtime, info).precision
    known = numerics_here() | {
        "model": info.name,
        "device": runtime.device,
        "precision": precision,
        "weights": info.stored_weights(precision) or "",
    }
    return hashlib.sha256(json.dumps(known, sort_keys=True).encode()).hexdigest()[:16]
