"""RowStream: one row's events. It measures times, decodes new frames and reports progress."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import count
from math import inf
from time import perf_counter

import numpy as np

from dia_demo.codec.codec import Codec
from dia_demo.codec.config import CodecFormat
from dia_demo.engine import events
from dia_demo.engine.events import (
    AudioChunk,
    Cancelled,
    Event,
    Failed,
    Figures,
    Finished,
    FinishReason,
    Progress,
    Result,
    SpokenWord,
    Started,
)
from dia_demo.engine.loading.placement import Placement
from dia_demo.engine.rows.base_row import BaseRow
from dia_demo.engine.sound.take_audio import TakeAudio
from dia_demo.engine.sound.time_stretch import StretchedAudio
from dia_demo.engine.turns.loudness import TurnLoudness
from dia_demo.engine.turns.pauses import Pauses
from dia_demo.machine.system import peak_rss_bytes
from dia_demo.model.cpu_model import torch_threads

# Enough to start playing with: on a fast machine it is there long before the first report is due.
FIRST_AUDIO_SECONDS = 0.4
# A piece that is decoded ahead on a core that is free.
PIECE_SECONDS = 0.6
_SERIALS = count()


@dataclass(frozen=True)
class StreamSettings:
    """What the rows of one stream share.

    codec None: results contain codes only. numerics: see Figures. check_take(samples, sample_rate)
    raises DeviceFailed for a waveform that must not be returned; with it, audio is sent only once
    all of it is checked. is_heard: somebody listens while they are generated.
    """

    model: str
    placement: Placement
    format: CodecFormat
    codec: Codec | None
    numerics: dict[str, str]
    check_take: Callable[[np.ndarray, int], None] | None
    is_heard: bool = False


@dataclass(frozen=True)
class Part:
    """What a row has generated between two reports: codes [frames, C] as they are decoded, where
    turns start in their samples, and the progress then. is_last: nothing follows. is_report: it is
    time to report progress. words: those that began.
    """

    codes: np.ndarray
    starts: list[int]
    is_last: bool
    is_report: bool
    step: int
    audio_seconds: float
    others: int
    words: tuple[SpokenWord, ...] = ()


class RowStream:
    """One row of a stream. expected: an estimate of its audio in seconds, before any change of
    speed. speed: of its audio; all lengths of audio are those at that speed. Times count from
    `start`."""

    def __init__(
        self, index: int, row: BaseRow, expected: float, speed: float, settings: StreamSettings
    ) -> None:
        self.index, self.row, self.settings = index, row, settings
        rate = settings.format.sample_rate
        self.decoding = settings.codec.stream() if settings.codec else None
        self.audio = TakeAudio(rate)
        self.speed = speed if settings.codec else 1.0
        self.stretched = StretchedAudio(rate, self.speed) if self.speed != 1 else None
        frames = row.config.frames_within(row.params.max_tokens, row.prompt_frames)
        self.longest = self._seconds_of(frames)
        self.expected = expected / self.speed
        self.unchecked: list[np.ndarray] = []
        self.chunks: list[np.ndarray] = []
        self.frames_read = 0
        self.codes: list[np.ndarray] = []
        self.words: list[SpokenWord] = []
        turns, fps = row.turns, settings.format.frames_per_second
        self.pauses = Pauses(turns, row.params.seed, fps) if turns else None
        self.loudness = TurnLoudness(rate)
        self.token_seconds = self.codec_seconds = 0.0
        self.first_audio: float | None = None
        self.ended = False
        self.serial = next(_SERIALS)
        # Each is changed by one thread.
        self.parts_submitted = self.parts_done = 0
        self.is_heard = settings.codec is not None and settings.is_heard
        if self.is_heard:
            row.set_listener(self._sound_left)
        # Of other rows: in the last step, and the most in one.
        self.others = self.most_others = 0
        self.began = self.reported = self._deadline = 0.0

    @property
    def audio_seconds(self) -> float:
        """The length of the frames that are complete so far."""
        return self._seconds_of(self.row.known_frames + (self.pauses.added if self.pauses else 0))

    def _seconds_of(self, frames: int) -> float:
        return frames / self.settings.format.frames_per_second / self.speed

    def _sound_left(self, now: float) -> float:
        """The seconds that somebody who plays it from its first sound on has left to play; before
        that, less than none for as long as they have waited."""
        if self.first_audio is None:
            return self.began - now
        sent = sum(map(len, self.chunks)) / self.settings.format.sample_rate
        return sent - (now - self.began - self.first_audio)

    def next_deadline(self) -> float:
        """When the listener has no sound left, by perf_counter; infinite without one. Never earlier
        than that of the part before."""
        now = perf_counter()
        left = self.row.sound_left(now)
        self._deadline = inf if left is None else max(self._deadline, now + left)
        return self._deadline

    def start(self, others: int) -> Started:
        """The event of a row that has just got a place, beside so many others."""
        self._note_others(others)
        self.began = self.reported = perf_counter()
        placement = self.settings.placement
        return Started(
            seed=self.row.params.seed,
            model=self.settings.model,
            precision=placement.precision,
            device=placement.device,
            sample_rate=self.settings.format.sample_rate,
            expected_seconds=min(self.expected, self.longest),
            row=self.index,
            others=others,
        )

    def note_step(self, seconds: float, others: int) -> None:
        """The row has made a step that took so long, together with so many other rows."""
        self.token_seconds += seconds
        self._note_others(others)

    def _note_others(self, others: int) -> None:
        self.others, self.most_others = others, max(self.most_others, others)

    @property
    def is_over(self) -> bool:
        """Whether no step follows."""
        return self.row.done or self.row.finish_reason == FinishReason.CANCELLED

    @property
    def parts_left(self) -> int:
        """Parts that another thread decodes, now or later."""
        return self.parts_submitted - self.parts_done

    @property
    def is_due(self) -> bool:
        """Whether there is something to report after a step: the end, or audio and progress every
        REPORT_SECONDS, once as soon as there is a little audio, and where the row waits for
        text."""
        if self.is_over:
            return True
        if self.row.needs_text():
            return self.row.known_frames > self.frames_read
        is_first = self.reported == self.began and self.audio_seconds >= FIRST_AUDIO_SECONDS
        return is_first or perf_counter() - self.reported >= events.REPORT_SECONDS

    @property
    def has_piece(self) -> bool:
        """Whether there is enough new audio to be worth decoding while nobody waits for it."""
        new = self.row.known_frames - self.frames_read
        return new >= PIECE_SECONDS * self.settings.format.frames_per_second

    def next_parts(self) -> list[Part]:
        """What has been generated since the last part, in pieces that do not take long to decode.
        Called between two steps."""
        part = self._next_part()
        size = round(PIECE_SECONDS * self.settings.format.frames_per_second)
        *before, last = range(0, len(part.codes), size) or [0]
        pieces = [
            replace(
                part, codes=part.codes[at : at + size], is_last=False, is_report=False, words=()
            )
            for at in before
        ]
        return [*pieces, replace(part, codes=part.codes[last:])]

    def _next_part(self) -> Part:
        row, is_last, is_report = self.row, self.is_over, self.is_due
        if is_report:
            self.reported = perf_counter()
        progress = row.steps, self.audio_seconds, self.others, self._new_words()
        if row.failure is not None:
            return Part(row.codes(0, 0), [], True, True, *progress)
        codes, starts = row.codes(self.frames_read), []
        self.frames_read = row.known_frames
        if self.pauses is not None:
            codes = self.pauses.push(codes, is_last)
            hop = self.settings.format.sample_rate / self.settings.format.frames_per_second
            starts = [round(hop * start) for start in self.pauses.starts]
        return Part(codes, starts, is_last, is_report, *progress)

    def events_of(self, part: Part) -> Iterator[Event]:
        """The events of a part: its audio, and progress or the end. Parts come in order, in any
        thread."""
        row = self.row
        if row.failure is not None:
            self.ended = True
            yield Failed(row.failure, self.index)
            return
        yield from self._decode(part)
        if not part.is_last:
            if part.is_report:
                yield self._progress(part)
            return
        self.ended = True
        if row.finish_reason == FinishReason.CANCELLED:
            yield Cancelled(self._result() if row.known_frames else None, self.index)
        else:
            yield Finished(self._result(), self.index)

    def _decode(self, part: Part) -> Iterator[AudioChunk]:
        """Decode new frames; yields the samples that are final."""
        self.codes.append(part.codes)
        if self.decoding is None:
            return
        began = perf_counter()
        with torch_threads(self.settings.placement.threads):
            samples = self.decoding.push(part.codes)
            if part.is_last:
                samples = np.concatenate([samples, self.decoding.finish()])
        if self.pauses is not None:
            samples = self.loudness.push(samples, part.starts, part.is_last)
        samples = self._check(self._push(self.audio, samples, part.is_last), part.is_last)
        if self.stretched is not None:
            samples = self._push(self.stretched, samples, part.is_last)
        self.codec_seconds += perf_counter() - began
        rate = self.settings.format.sample_rate
        start = sum(len(chunk) for chunk in self.chunks) / rate
        self.chunks.append(samples)
        if not len(samples):
            return
        if self.first_audio is None:
            self.first_audio = perf_counter() - self.began
        yield AudioChunk(samples, rate, start, self.index)

    def _push(
        self, audio: TakeAudio | StretchedAudio, samples: np.ndarray, finish: bool
    ) -> np.ndarray:
        """The samples that `audio` gives for these."""
        samples = audio.push(samples)
        if not finish:
            return samples
        ended_by_itself = self.row.finish_reason == FinishReason.END
        return np.concatenate([samples, audio.finish(ended_by_itself)])

    def _check(self, samples: np.ndarray, finish: bool) -> np.ndarray:
        """The samples that may be returned: all at the end, where the whole has to be checked."""
        check_take = self.settings.check_take
        if check_take is None:
            return samples
        self.unchecked.append(samples)
        if not finish:
            return samples[:0]
        samples = np.concatenate(self.unchecked)
        check_take(samples, self.settings.format.sample_rate)
        return samples

    def _progress(self, part: Part) -> Progress:
        audio, wall = part.audio_seconds, perf_counter() - self.began
        factor = audio / wall
        # A row that is longer than its estimate is expected to continue a little, up to its limit.
        expected = min(max(self.expected, 1.05 * audio), self.longest)
        progress = Progress(part.step, audio, wall, factor, expected, self.index)
        return replace(progress, others=part.others, words=part.words)

    def _new_words(self) -> tuple[SpokenWord, ...]:
        """The words that began since the last call."""
        if self.row.words is None:
            return ()
        new = self.row.words[len(self.words) :]
        self.words += [replace(word, seconds=word.seconds / self.speed) for word in new]
        return tuple(self.words[len(self.words) - len(new) :])

    def _result(self) -> Result:
        assert self.row.finish_reason is not None, "the row has ended"
        samples, audio = None, self.audio_seconds
        if self.decoding is not None:
            samples = np.concatenate([np.zeros(0, np.float32), *self.chunks])
            audio = len(samples) / self.settings.format.sample_rate
        wall = perf_counter() - self.began
        placement = self.settings.placement
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
            model=self.settings.model,
            precision=placement.precision,
            device=placement.device,
            sample_rate=self.settings.format.sample_rate,
            peak_rss_bytes=peak_rss_bytes(),
            expected_seconds=self.expected,
            numerics=self.settings.numerics,
            surplus_turns=self.row.surplus_turns,
            shared_with=self.most_others,
        )
        codes = np.concatenate(self.codes)
        row = self.row
        words = None if row.words is None else tuple(self.words)
        places, expected = self._places(), row.expected_voices
        return Result(codes, samples, figures, row.voices, places, expected, words)

    def _places(self) -> np.ndarray | None:
        """See `Result.places`."""
        if self.pauses is None or self.row.turns is None:
            return None
        places = np.array([*self.row.turns.places, -1], np.int32)  # The last for -1.
        return places[np.array(self.pauses.sources, int)]
