"""Is a chunk what its script says? Faults that are measured, not heard.

Where the model follows its text (alignment.py), lines that were skipped or said twice and a last
word that was cut are found by the places that were read. Of other models only the length, the
level and the ending can be judged. Thresholds: docs/dialogues.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from dia_demo import audio
from dia_demo.engine.events import FinishReason
from dia_demo.services.judging.alignment import Alignment, align
from dia_demo.services.judging.chunk_take import ChunkTake
from dia_demo.services.judging.sound import STEADY_DB, Sound
from dia_demo.services.judging.speakers import has_another_voice, speaker_spans

# The length of the sound over the expected one, of models with places and of others.
FASTEST, FASTEST_UNALIGNED = 0.72, 0.6
SLOWEST, SLOWEST_UNALIGNED = 1.45, 1.9
# A short text may be off by so many seconds.
SLACK_SECONDS = 0.5
# Bytes of words in a row that were not read.
SKIPPED_BYTES = 8
# Bytes by which what is read goes back, and for how long it is read before and after.
REPEATED_BYTES, REPEATED_SECONDS = 6, 0.29
# The last word sounds for so long at most, by its bytes.
WORD_SECONDS, BYTE_SECONDS = 0.35, 0.09
# Speech fades before it ends: what breaks off is louder than this below the loudest pieces.
ABRUPT_DB = 18.0
# Noise after the end: steady sound for so long after a silence of so long.
NOISE_SECONDS, SILENCE_SECONDS = 0.4, 0.15
CLIPPED = 0.001


class Fault(StrEnum):
    """What is wrong with a chunk."""

    TOO_FAST = "too fast"
    TOO_SLOW = "too slow"
    CUT = "last word cut"
    NOISE = "sound after the end"
    SKIPPED = "words skipped"
    REPEATED = "words repeated"
    CLIPPED = "clipped"
    SILENT = "silent"
    VOICE = "another voice"
    LIMIT = "cut off at max tokens"


# Of several attempts with faults the best one is kept.
_WEIGHTS = {fault: 1.0 for fault in Fault} | {
    Fault.SILENT: 8.0, Fault.SKIPPED: 4.0, Fault.LIMIT: 4.0, Fault.REPEATED: 3.0, Fault.CUT: 2.0,
    Fault.VOICE: 2.0,
}  # fmt: skip


@dataclass(frozen=True)
class Verdict:
    """The faults of a chunk. is_aligned: whether its words could be followed. words_per_second:
    while it sounds."""

    faults: tuple[Fault, ...]
    is_aligned: bool
    words_per_second: float

    @property
    def is_good(self) -> bool:
        """Whether nothing is wrong, as far as can be measured."""
        return not self.faults

    @property
    def text(self) -> str:
        """For people and programs: "good", or the faults."""
        return ", ".join(self.faults) or "good"

    @property
    def badness(self) -> float:
        """The smaller, the better."""
        return sum(_WEIGHTS[fault] for fault in self.faults)


def judge(take: ChunkTake, expected_seconds: float, frames_per_second: float) -> Verdict:
    """Judge one take of a chunk. expected_seconds: how long its words usually take to say;
    frames_per_second: of its codes; both at the speed of the take."""
    sound = Sound(take.samples, take.sample_rate)
    alignment = alignment_of(take)
    faults = set(_faults_of_sound(take, sound, expected_seconds, alignment is not None))
    if alignment is not None and not sound.is_silent:
        faults |= set(_faults_of_alignment(alignment, sound, frames_per_second))
    elif _has_noise_after_end(sound):
        faults.add(Fault.NOISE)
    spans = speaker_spans(take, sound, alignment, frames_per_second)
    if has_another_voice(take, spans, alignment is not None):
        faults.add(Fault.VOICE)
    words = len(take.text[take.said :].replace(b"\x01", b"").replace(b"\x02", b"").split())
    rate = words / sound.seconds if sound.seconds else 0.0
    return Verdict(tuple(f for f in Fault if f in faults), alignment is not None, round(rate, 2))


def alignment_of(take: ChunkTake) -> Alignment | None:
    """When its words are said; None if the model does not follow its text."""
    return None if take.places is None else align(take.text, take.said, take.places)


def _faults_of_sound(take: ChunkTake, sound: Sound, expected: float, is_aligned: bool):
    if sound.is_silent:
        yield Fault.SILENT
        return
    first, last = sound.bounds
    seconds = (last - first) / take.sample_rate
    fastest, slowest = (FASTEST, SLOWEST) if is_aligned else (FASTEST_UNALIGNED, SLOWEST_UNALIGNED)
    if seconds < fastest * expected - (0.0 if expected > 3 else SLACK_SECONDS / 2):
        yield Fault.TOO_FAST
    if seconds > slowest * expected + SLACK_SECONDS:
        yield Fault.TOO_SLOW
    if audio.health(take.samples, take.sample_rate).clipped_fraction > CLIPPED:
        yield Fault.CLIPPED
    if take.figures.finish_reason == FinishReason.MAX_TOKENS:
        yield Fault.LIMIT
    surplus = take.figures.surplus_turns or 0
    if surplus:
        yield Fault.REPEATED if surplus > 0 else Fault.SKIPPED
    if take.figures.finish_reason == FinishReason.END and _breaks_off(sound):
        yield Fault.CUT


def _breaks_off(sound: Sound) -> bool:
    """Whether the sound ends while it is loud."""
    last = int(np.flatnonzero(sound.is_sound)[-1])
    return float(np.percentile(sound.levels, 90) - sound.levels[last]) < ABRUPT_DB


def _faults_of_alignment(alignment: Alignment, sound: Sound, fps: float):
    words, places = alignment.words, alignment.places
    if not words:
        return
    if _longest_unread(alignment) >= SKIPPED_BYTES:
        yield Fault.SKIPPED
    if _goes_back(places, round(REPEATED_SECONDS * fps)) >= REPEATED_BYTES:
        yield Fault.REPEATED
    last = words[-1]
    if places.max() < last.end - 1 or last.first == last.last:
        yield Fault.CUT
    longest = WORD_SECONDS + BYTE_SECONDS * (last.end - last.start)
    if sound.bounds[1] / sound.sample_rate - last.first / fps > longest:
        yield Fault.NOISE


def _longest_unread(alignment: Alignment) -> int:
    """The most bytes of words in a row that no frame was read from, before the last one that was.
    Places are some bytes apart where somebody speaks fast."""
    read = np.zeros(alignment.words[-1].end + 2, bool)
    for around in (-1, 0, 1):
        read[np.clip(alignment.places + around, 0, len(read) - 1)] = True
    longest = run = 0
    for word in alignment.words:
        if word.start > alignment.places.max():
            break
        for byte in range(word.start, word.end):
            run = 0 if read[byte] else run + 1
            longest = max(longest, run)
    return longest


def _goes_back(places: np.ndarray, frames: int) -> int:
    """The most bytes by which the places go back, from where they were for this many frames in a
    row to where they stay as long."""
    if len(places) < 2 * frames:
        return 0
    windows = sliding_window_view(places, frames)
    reached = np.maximum.accumulate(windows.min(axis=1))
    return int((reached[:-frames] - windows.max(axis=1)[frames:]).max(initial=0))


def _has_noise_after_end(sound: Sound) -> bool:
    """Whether the last sound after a silence is steady, as no speech is."""
    if sound.is_silent:
        return False
    ends = np.flatnonzero(sound.is_sound)
    gaps = np.flatnonzero(np.diff(ends) * sound.piece >= SILENCE_SECONDS * sound.sample_rate)
    if not len(gaps):
        return False
    tail = sound.levels[ends[gaps[-1] + 1] : ends[-1] + 1]
    long_enough = len(tail) * sound.piece >= NOISE_SECONDS * sound.sample_rate
    return bool(long_enough and tail[2:-2].std() < STEADY_DB)
