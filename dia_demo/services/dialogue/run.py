"""Makes a dialogue: its chunks in batches, each judged and made again if need be, and joined.

Several chunks are the rows of one batch, which takes little longer than one. A wave has so many
that places in the batch are rarely empty, and so few that other people's takes need not wait long.
The sound of parts that were stopped stays for listening, until the next run makes them again.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import count

import numpy as np

from dia_demo.engine.events import (
    AudioChunk,
    Cancelled,
    Failed,
    Figures,
    Finished,
    Loading,
    Progress,
    Result,
    Waiting,
)
from dia_demo.engine.scheduler import PLACES
from dia_demo.engine.time_left import TimeLeft
from dia_demo.errors import RunError
from dia_demo.services.dialogue.events import (
    ChunkFinished,
    ChunkProgress,
    ChunkReport,
    DialogueEvent,
    DialogueFailed,
    DialogueFinished,
    DialoguePlanned,
    DialogueStopped,
)
from dia_demo.services.dialogue.join import Joiner, Placed
from dia_demo.services.dialogue.plan import DialoguePlan, Join
from dia_demo.services.dialogue.store import DialogueStore
from dia_demo.services.dialogue.timeline import Timeline, words_of_chunk
from dia_demo.services.judging.chunk_take import ChunkTake, words_in_codes
from dia_demo.services.judging.judge import Fault, Verdict, alignment_of, judge
from dia_demo.services.synthesis import Synthesis
from dia_demo.services.take import Request, TimedWord, VoicePrompt
from dia_demo.text.dialogue.chunks import LONGEST_SECONDS, Chunk

WAVE = 2 * PLACES
# Where a take beside others takes nearly as much longer, the first part is made alone: it can be
# heard in a fraction of the time, and the whole takes no longer.
ALONE_FROM_EXPONENT = 0.8
# A part whose best attempt is in another voice is made again so many times more: about half of the
# attempts at it are, and it is what a listener notices first.
MORE_FOR_VOICE = 3
# How far an estimate from the chunks made so far may be off, and one from nothing.
MEASURED_FACTOR, ASSUMED_FACTOR = 1.3, 2.0


@dataclass(frozen=True)
class Attempt:
    """An attempt at a chunk, without its samples."""

    number: int
    figures: Figures
    verdict: Verdict


class DialogueRun:
    """One dialogue while it is made. attempts: at each chunk, in order. stopped: the seconds that
    were made of chunks without an attempt, before they were stopped."""

    def __init__(self, synthesis: Synthesis, plan: DialoguePlan, store: DialogueStore) -> None:
        self.synthesis, self.plan, self.store = synthesis, plan, store
        self.attempts: dict[int, list[Attempt]] = {chunk.index: [] for chunk in plan.chunks}
        self.stopped: dict[int, float] = {}
        self._rate = 0.0  # seconds of audio made in a second
        self._prompts: dict[tuple[tuple[int, int], ...], VoicePrompt] = {}
        self._timelines: dict[tuple[int, ...], Timeline] = {}

    def is_done(self, chunk: Chunk) -> bool:
        """Whether a chunk is good, or was made as often as it may be."""
        attempts = self.attempts[chunk.index]
        if any(attempt.verdict.is_good for attempt in attempts):
            return True
        most = self.plan.retries + 1
        if attempts and self.plan.retries and Fault.VOICE in self.best(chunk).verdict.faults:
            most += MORE_FOR_VOICE
        return len(attempts) >= most

    def best(self, chunk: Chunk) -> Attempt:
        """The attempt that is kept: the first of those with the least faults."""
        return min(self.attempts[chunk.index], key=lambda attempt: attempt.verdict.badness)

    def reports(self) -> tuple[ChunkReport, ...]:
        """What became of each chunk."""
        found = []
        for chunk in self.plan.chunks:
            best, attempts = self.best(chunk), self.attempts[chunk.index]
            verdict = best.verdict
            found.append(
                ChunkReport(
                    chunk.index, chunk.script, best.figures.seed,
                    round(best.figures.audio_seconds, 3),
                    verdict.words_per_second, verdict.text, len(attempts) - 1,
                )
            )  # fmt: skip
        return tuple(found)

    def take(self, chunk: Chunk) -> ChunkTake:
        """The take of `best`, from the store. Raises RunError if it is gone."""
        take = self.store.read(chunk.index, self.best(chunk).number)
        if take is None:
            raise RunError(f"Part {chunk.index + 1} is no longer in {self.store.folder}.")
        return take

    def timeline(self) -> Timeline:
        """The words of the whole, as far as it is made. The takes are read and aligned once for the
        same attempts."""
        key = tuple(map(len, self.attempts.values()))
        if key not in self._timelines:
            words: list[TimedWord] = []
            samples = 0
            for piece in JoinedSound(self).ready_pieces():
                words += piece.words
                samples += len(piece.samples)
            self._timelines = {key: Timeline(tuple(words), samples)}
        return self._timelines[key]

    @property
    def made(self) -> int:
        """How many chunks are complete."""
        return sum(map(self.is_done, self.plan.chunks))

    def stream(self, cancel: threading.Event) -> Generator[DialogueEvent, None, None]:
        """Make what is missing; see events.py. Setting `cancel`, or closing the iterator, stops it
        within a step; what is complete stays in the store. After `cancel` the sound goes on with
        what was made of the next chunk. A dialogue that is complete by then has finished."""
        self.find_made()
        yield DialoguePlanned(self.plan.chunks, self.made, self._time_left_after(()))
        sound = JoinedSound(self)
        try:
            while True:
                yield from (piece.event for piece in sound.ready_pieces())
                if not (wave := self._next_wave()):
                    yield DialogueFinished(self.reports())
                    return
                if cancel.is_set():
                    yield from (piece.event for piece in sound.unfinished_piece())
                    yield DialogueStopped(self.made, len(self.plan.chunks))
                    return
                with closing(self._make(wave, cancel)) as events:
                    for event in events:
                        yield event
                        if isinstance(event, DialogueFailed):
                            return
                        if isinstance(event, ChunkFinished):
                            yield from (piece.event for piece in sound.ready_pieces())
        except RunError as error:
            yield DialogueFailed(str(error), self.made, len(self.plan.chunks))

    def find_made(self) -> None:
        """Judge the takes of an earlier run. An attempt counts only if those before it exist."""
        for chunk in self.plan.chunks:
            if (stopped := self.store.read_stopped(chunk.index)) is not None:
                self.stopped[chunk.index] = stopped.figures.audio_seconds
            for number in count(self.plan.first_attempt(chunk)):
                take = self.store.read(chunk.index, number)
                if take is None or self.is_done(chunk):
                    break
                self.attempts[chunk.index].append(self._judge(chunk, take))

    def _judge(self, chunk: Chunk, take: ChunkTake) -> Attempt:
        speed = self.plan.request.speed
        verdict = judge(take, chunk.seconds / speed, self.plan.info.frames_per_second / speed)
        return Attempt(take.attempt, take.figures, verdict)

    def _next_wave(self) -> list[Chunk]:
        """The chunks that are made next, in order; none if all are done."""
        missing = [chunk for chunk in self.plan.chunks if not self.is_done(chunk)]
        first = [c for c in missing if all(map(self.is_done, self.plan.sources(c)))]
        is_alone = self.plan.info.profile.batch_exponent >= ALONE_FROM_EXPONENT
        return first[: 1 if is_alone and not self.made else WAVE]

    def _request(self, chunk: Chunk) -> Request:
        return self.plan.chunk_request(chunk, self._next_attempt(chunk), self._prompt(chunk))

    def _next_attempt(self, chunk: Chunk) -> int:
        return self.plan.first_attempt(chunk) + len(self.attempts[chunk.index])

    def _prompt(self, chunk: Chunk) -> VoicePrompt | None:
        """The chunks that go before this one as its voice prompt, if any do."""
        sources = self.plan.sources(chunk)
        if not sources:
            return None
        key = tuple((source.index, self.best(source).number) for source in sources)
        if key not in self._prompts:
            takes = [self.take(source) for source in sources]
            codes = np.concatenate([take.codes for take in takes])
            transcript = " ".join(source.script for source in sources)
            request = self.plan.request
            words = words_in_codes(takes, request.model.frames_per_second, request.speed)
            self._prompts = {key: VoicePrompt(codes=codes, transcript=transcript, words=words)}
        return self._prompts[key]

    def _make(
        self, wave: Sequence[Chunk], cancel: threading.Event
    ) -> Generator[DialogueEvent, None, None]:
        """One attempt at each of these chunks, together."""
        requests = [self._request(chunk) for chunk in wave]
        progress: dict[int, Progress] = {}
        began = time.monotonic()
        made = 0.0
        with closing(self.synthesis.stream_together(requests, cancel)) as events:
            for event in events:
                chunk = wave[event.row]
                match event:
                    case Waiting() | Loading():
                        began = time.monotonic()
                        yield event
                    case Progress():
                        progress[event.row] = event
                        yield self._progress(chunk, event, wave, progress)
                    case Finished():
                        progress.pop(event.row, None)
                        made += event.result.figures.audio_seconds
                        yield self._finish_chunk(chunk, requests[event.row], event, wave)
                    case Cancelled(result=Result() as result) if not self.attempts[chunk.index]:
                        self.store.write_stopped(self._take_of(chunk, requests[event.row], result))
                        self.stopped[chunk.index] = result.figures.audio_seconds
                    case Failed():
                        message = f"Part {chunk.index + 1} could not be made: {event.message}"
                        yield DialogueFailed(message, self.made, len(self.plan.chunks))
                        return
        if made:
            self._rate = made / max(1e-3, time.monotonic() - began)

    def _finish_chunk(
        self, chunk: Chunk, request: Request, event: Finished, wave: Sequence[Chunk]
    ) -> ChunkFinished:
        take = self._take_of(chunk, request, event.result)
        self.store.write(take)
        self.stopped.pop(chunk.index, None)
        attempt = self._judge(chunk, take)
        self.attempts[chunk.index].append(attempt)
        return ChunkFinished(
            chunk.index, attempt.number, attempt.figures.seed, attempt.figures.audio_seconds,
            attempt.verdict,
            not self.is_done(chunk), self._time_left_after(wave),
        )  # fmt: skip

    def _take_of(self, chunk: Chunk, request: Request, result: Result) -> ChunkTake:
        text, said = request.encode(), request.transcript_bytes()
        return ChunkTake.from_result(chunk.index, self._next_attempt(chunk), text, said, result)

    def _progress(
        self, chunk: Chunk, event: Progress, wave: Sequence[Chunk], running: dict[int, Progress]
    ) -> ChunkProgress:
        complete = sum(c.seconds for c in self.plan.chunks if self.is_done(c))
        done = complete + sum(progress.audio_seconds for progress in running.values())
        attempt = self._next_attempt(chunk)
        left, after = event.left, self._time_left_after(wave)
        left = None if left is None or after is None else left + after
        total = max(self.plan.script.seconds, done)
        return ChunkProgress(
            chunk.index, attempt, event.audio_seconds, event.expected_seconds, done, total, left
        )

    def _time_left_after(self, wave: Sequence[Chunk]) -> TimeLeft | None:
        """The time for the chunks that are missing beside those of this wave; None if unknown."""
        rest = [c for c in self.plan.chunks if c not in wave and not self.is_done(c)]
        seconds = sum(chunk.seconds for chunk in rest) / self.plan.request.speed
        if not seconds:
            return TimeLeft(0.0, 0.0)
        if self._rate:
            return TimeLeft.from_estimate(seconds / self._rate, MEASURED_FACTOR)
        return time_to_make(self.synthesis, self.plan.request, seconds, self.plan.join)


def time_to_make(
    synthesis: Synthesis, request: Request, seconds: float, join: Join = Join.STEADY
) -> TimeLeft | None:
    """How long so many seconds of a dialogue take, before any was made; None if unknown."""
    each = synthesis.speed.seconds_per_second(request.model, request.runtime)
    if each is None or not seconds:
        return None
    rows = min(PLACES, math.ceil(seconds / LONGEST_SECONDS)) if join is Join.STEADY else 1
    together = rows**request.model.profile.batch_exponent / rows
    left = TimeLeft.from_estimate(together * each * seconds, ASSUMED_FACTOR)
    if request.voice is not None and request.voice.codes is not None:  # It is read once for all.
        read = synthesis.speed.prompt_seconds(request.model, len(request.voice.codes))
        left += TimeLeft.from_estimate(read or 0.0, ASSUMED_FACTOR)
    return left


@dataclass(frozen=True)
class JoinedPiece:
    """Samples that follow those before, from `start` seconds of the whole on, and their words.
    placed: where the chunk is, None for the silence at the end."""

    samples: np.ndarray
    sample_rate: int
    start: float
    words: tuple[TimedWord, ...] = ()
    placed: Placed | None = None

    @property
    def event(self) -> AudioChunk:
        """For those who listen while it is made."""
        return AudioChunk(self.samples, self.sample_rate, self.start)


class JoinedSound:
    """The chunks of a run joined in order, as far as they are complete. Every new one gives the
    same again."""

    def __init__(self, run: DialogueRun) -> None:
        self._run = run
        plan = run.plan
        self._joiner = Joiner(plan.info.frames_per_second, plan.request.speed)
        self._waiting = list(plan.chunks)

    def ready_pieces(self) -> Iterator[JoinedPiece]:
        """The pieces that were not returned before; at last the silence at the end."""
        plan = self._run.plan
        while self._waiting and self._run.is_done(self._waiting[0]):
            chunk = self._waiting.pop(0)
            take = self._run.take(chunk)
            alignment, rate = alignment_of(take), take.sample_rate
            start = self._joiner.position / rate
            samples, placed = self._joiner.add(chunk, take, alignment)
            words = words_of_chunk(plan, chunk, take, alignment, placed)
            yield JoinedPiece(samples, rate, start, tuple(words), placed)
            if not self._waiting:
                start = self._joiner.position / rate
                yield JoinedPiece(self._joiner.finish(plan.script.pause), rate, start)

    def unfinished_piece(self) -> Iterator[JoinedPiece]:
        """What was made of the next chunk before it was stopped, if anything."""
        if self._waiting and (take := self._run.store.read_stopped(self._waiting[0].index)):
            rate = take.sample_rate
            yield JoinedPiece(take.samples, rate, self._joiner.position / rate)
