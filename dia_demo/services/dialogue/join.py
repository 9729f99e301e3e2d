"""The chunks of a dialogue joined: trimmed, equally loud, with natural gaps or pauses asked for.

What is played while chunks are made and what is written at the end come from the same code, one
chunk at a time, so that the memory does not grow with the script.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dia_demo.audio import integrated_loudness
from dia_demo.engine.turns.loudness import limit_peaks
from dia_demo.engine.turns.passages import ELLIPSIS
from dia_demo.engine.turns.pauses import BETWEEN_TURNS, WITHIN_TURN
from dia_demo.services.judging.alignment import Alignment
from dia_demo.services.judging.chunk_take import ChunkTake
from dia_demo.services.judging.sound import Sound
from dia_demo.services.judging.speakers import Spans, samples_of, speaker_spans
from dia_demo.text.dialogue.breaks import Break
from dia_demo.text.dialogue.chunks import Chunk

# Kept of the silence before and after the sound of a chunk; it counts as a part of the gap.
HEAD_SECONDS, TAIL_SECONDS = 0.05, 0.08
FADE_SECONDS = 0.01
SHORTEST_GAP, LONGEST_GAP = 0.15, 0.6
# The last word may sound on so long after its last frame; what comes after a silence then is cut.
AFTER_LAST_WORD = 0.15
END_SECONDS = 0.18  # of silence after the last chunk
LARGEST_GAIN_DB = 6.0


@dataclass(frozen=True)
class Placed:
    """Where a chunk is: `samples` of its take from `first` to `last`, from `start` of the whole
    on."""

    chunk: int
    start: int
    first: int
    last: int


class Joiner:
    """One dialogue, chunk after chunk. position: the samples returned so far."""

    def __init__(self, frames_per_second: float, speed: float = 1.0) -> None:
        self._rate = 0
        self._fps, self._speed = frames_per_second / speed, speed
        self._levels: dict[int, float] = {}  # LUFS of each speaker; of key 0: of whole chunks
        self._before: Chunk | None = None
        self.position = 0

    def add(
        self, chunk: Chunk, take: ChunkTake, alignment: Alignment | None
    ) -> tuple[np.ndarray, Placed]:
        """The silence before a chunk and its sound, float32 [n], and where it is."""
        self._rate = take.sample_rate
        sound = Sound(take.samples, self._rate)
        first, last = self._bounds(sound, alignment)
        samples = take.samples * self._gains(take, sound, alignment)
        piece = _fade(limit_peaks(samples[first:last]), round(FADE_SECONDS * self._rate))
        gap = self._gap(chunk) - (HEAD_SECONDS if self._before is None else 0.0)
        gap -= 0.0 if self._before is None else HEAD_SECONDS + TAIL_SECONDS
        silence = np.zeros(max(0, round(gap * self._rate)), np.float32)
        placed = Placed(chunk.index, self.position + len(silence), first, last)
        joined = np.concatenate([silence, piece])
        self.position += len(joined)
        self._before = chunk
        return joined, placed

    def finish(self, pause: float) -> np.ndarray:
        """The silence after the last chunk. pause: what the script asks for there."""
        silence = np.zeros(round(max(pause, END_SECONDS) * self._rate), np.float32)
        self.position += len(silence)
        return silence

    def _gap(self, chunk: Chunk) -> float:
        """Seconds of silence before a chunk."""
        if chunk.pause is not None:
            return chunk.pause
        return 0.0 if self._before is None else natural_gap(self._before, chunk) / self._speed

    def _bounds(self, sound: Sound, alignment: Alignment | None) -> tuple[int, int]:
        """The samples of a chunk that are used: its sound with a little silence around it. Nothing
        after the last word, if there is a silence between."""
        first, last = sound.bounds
        if alignment is not None and alignment.words:
            spoken = alignment.words[-1].last / self._fps + AFTER_LAST_WORD
            last = sound.end_before_silence(spoken)
        head, tail = round(HEAD_SECONDS * self._rate), round(TAIL_SECONDS * self._rate)
        return max(0, first - head), min(len(sound.samples), last + tail)

    def _gains(self, take: ChunkTake, sound: Sound, alignment: Alignment | None) -> np.ndarray:
        """The factor of every sample, that changes in the silence between two speakers alone."""
        spans = speaker_spans(take, sound, alignment, self._fps)
        gains = np.empty(len(take.samples), np.float32)
        factors = {
            speaker: self._factor(take, spans, speaker) for speaker in {s for s, *_ in spans}
        }
        for speaker, start, end in spans:
            gains[start:end] = factors[speaker]
        width = round(FADE_SECONDS * self._rate)
        return (
            np.convolve(
                np.pad(gains, width, mode="edge"), np.ones(2 * width + 1) / (2 * width + 1), "valid"
            ).astype(np.float32)
            if len(gains)
            else gains
        )

    def _factor(self, take: ChunkTake, spans: Spans, speaker: int) -> float:
        """What brings a speaker to the level of the first chunk with that speaker."""
        level = integrated_loudness(samples_of(take, spans, speaker), self._rate)
        if level is None:  # Too short to be measured.
            return 1.0
        wanted = self._levels.setdefault(speaker, level)
        return float(10 ** (np.clip(wanted - level, -LARGEST_GAIN_DB, LARGEST_GAIN_DB) / 20))


def natural_gap(before: Chunk, chunk: Chunk) -> float:
    """Seconds of silence between two chunks, by what the first ends with."""
    if chunk.before is Break.WORD:
        return SHORTEST_GAP
    text = before.parts[-1].text.rstrip("\"')]”’»")
    mark = ELLIPSIS if text.endswith(("...", "…")) else text[-1:]
    seconds = BETWEEN_TURNS if chunk.before is Break.TURN else WITHIN_TURN
    default = "," if chunk.before is Break.CLAUSE else "."
    return min(max(seconds.get(mark, seconds[default]), SHORTEST_GAP), LONGEST_GAP)


def _fade(samples: np.ndarray, length: int) -> np.ndarray:
    """Faded in and out over this many samples, which are silent but for the noise of a room."""
    length = min(length, len(samples) // 2)
    ramp = (np.sin(0.5 * np.pi * np.arange(length) / max(1, length)) ** 2).astype(np.float32)
    samples[:length] *= ramp
    samples[len(samples) - length :] *= ramp[::-1]
    return samples
