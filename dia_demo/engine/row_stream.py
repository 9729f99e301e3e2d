"""What the engine knows of one row beside its tokens: times, sound so far, what was said of it."""

from __future__ import annotations

from collections.abc import Iterator
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np

from dia_demo.codec.codec import Codec
from dia_demo.engine import events
from dia_demo.engine.events import (
    AudioChunk,
    Cancelled,
    Event,
    Failed,
    Figures,
    Finished,
    Progress,
    Result,
    Started,
)
from dia_demo.engine.row import Row
from dia_demo.engine.take_audio import TakeAudio
from dia_demo.model.threads import torch_threads
from dia_demo.system import peak_rss_bytes

if TYPE_CHECKING:
    from dia_demo.engine.engine import Engine


class Track:
    """One row of a stream. expected: an estimate of its audio in seconds; codec None: codes alone.
    Its times begin with `started`."""

    def __init__(
        self, engine: Engine, index: int, row: Row, expected: float, codec: Codec | None
    ) -> None:
        self.engine, self.index, self.row = engine, index, row
        room = row.config.frames_within(row.params.max_tokens, row.prompt_frames)
        self.longest = room / engine.format.frames_per_second
        self.expected = min(expected, self.longest)
        self.decoding = codec.stream() if codec else None
        self.audio = TakeAudio(engine.format.sample_rate)
        self.chunks: list[np.ndarray] = []
        self.frames_decoded = 0
        self.token_seconds = self.codec_seconds = 0.0
        self.first_audio: float | None = None
        self.ended = False
        self.began = self.reported = 0.0

    @property
    def audio_seconds(self) -> float:
        """Of the frames that its tokens make."""
        return self.row.known_frames / self.engine.format.frames_per_second

    def started(self) -> Started:
        """The row has a place among those that go forward: its time begins."""
        self.began = self.reported = perf_counter()
        placement = self.engine.placement
        return Started(
            seed=self.row.params.seed,
            model=self.engine.name,
            precision=placement.precision,
            device=placement.device,
            sample_rate=self.engine.format.sample_rate,
            expected_seconds=self.expected,
            row=self.index,
        )

    def after_step(self) -> Iterator[Event]:
        """What there is to say after a step: an end, or every REPORT_SECONDS where things are."""
        if self.row.failure is not None:
            self.ended = True
            yield Failed(self.row.failure, self.index)
            return
        ended = self.row.done or self.row.finish_reason == "cancelled"
        now = perf_counter()
        if not ended and now - self.reported < events.REPORT_SECONDS:
            return
        self.reported = now
        yield from self._decode(finish=ended)
        if not ended:
            yield self._progress()
            return
        self.ended = True
        if self.row.finish_reason == "cancelled":
            yield Cancelled(self._result() if self.row.known_frames else None, self.index)
        else:
            yield Finished(self._result(), self.index)

    def _decode(self, finish: bool) -> Iterator[AudioChunk]:
        """Hand the frames that are new to the codec, and on whatever sound that makes.

        What an accelerator made is handed on at the end, once all of it has been checked.
        """
        if self.decoding is None:
            return
        began = perf_counter()
        with torch_threads(self.engine.placement.threads):
            samples = self.decoding.push(self.row.codes(self.frames_decoded))
            self.frames_decoded = self.row.known_frames
            if finish:
                samples = np.concatenate([samples, self.decoding.finish()])
        samples = self.audio.push(samples)
        if finish:
            rest = self.audio.finish(ended_by_itself=self.row.finish_reason == "end")
            samples = np.concatenate([samples, rest])
        self.codec_seconds += perf_counter() - began
        rate = self.engine.format.sample_rate
        start = sum(len(chunk) for chunk in self.chunks) / rate
        self.chunks.append(samples)
        if self.engine.accelerator is not None:
            if not finish:
                return
            start, samples = 0.0, np.concatenate(self.chunks)
            self.engine.check_waveform(samples)
        if not len(samples):
            return
        if self.first_audio is None:
            self.first_audio = perf_counter() - self.began
        yield AudioChunk(samples, rate, start, self.index)

    def _progress(self) -> Progress:
        audio, wall = self.audio_seconds, perf_counter() - self.began
        factor = audio / wall
        # A row that outlasts its estimate is expected to go on a little, up to what it may.
        expected = min(max(self.expected, 1.05 * audio), self.longest)
        left = (expected - audio) / factor if factor else expected
        return Progress(self.row.steps, audio, wall, factor, expected, left, self.index)

    def _result(self) -> Result:
        samples, audio = None, self.audio_seconds
        if self.decoding is not None:
            samples = np.concatenate([np.zeros(0, np.float32), *self.chunks])
            audio = len(samples) / self.engine.format.sample_rate
        wall = perf_counter() - self.began
        placement = self.engine.placement
        figures = Figures(
            audio_seconds=audio,
            wall_seconds=wall,
            realtime_factor=audio / wall,
            token_seconds=self.token_seconds,
            codec_seconds=self.codec_seconds,
            first_audio_seconds=self.first_audio,
            steps=self.row.steps,
            finish_reason=self.row.finish_reason,
            seed=self.row.params.seed,
            model=self.engine.name,
            precision=placement.precision,
            device=placement.device,
            sample_rate=self.engine.format.sample_rate,
            peak_rss_bytes=peak_rss_bytes(),
        )
        return Result(self.row.codes(), samples, figures)
