"""A voice prompt ("prefix" in nari-labs/dia2): known frames, and the words that they say.

The steps of a prompt run with forced actions: a new word where one begins. `from_recordings` is
upstream's (runtime/voice_clone.py): one recording of each speaker. `from_take` continues a take of
Dia2 itself, whose words and their steps are known exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dia_demo.engine.events import SpokenWord
from dia_demo.errors import InputError
from dia_demo.families.dia2.script import Entry, parse_script
from dia_demo.families.dia2.tokenizer import Tokenizer
from dia_demo.model.dia2.config import FRAMES_PER_SECOND

# By which upstream shifts the words of the first recording, but not those of the second.
FIRST_SHIFT = 3


@dataclass(frozen=True)
class HeardWord:
    """A word of a recording, and its times in seconds."""

    text: str
    start: float
    end: float


@dataclass(frozen=True)
class Recording:
    """The codes [frames, C] of one speaker's recording, and its words."""

    codes: np.ndarray
    words: Sequence[HeardWord]


@dataclass(frozen=True)
class VoicePrefix:
    """codes [frames, C]; entries: the words that they say, and the steps at which these begin."""

    codes: np.ndarray
    entries: tuple[Entry, ...]
    steps: tuple[int, ...]


def from_recordings(recordings: Sequence[Recording], tokenizer: Tokenizer) -> VoicePrefix:
    """One recording, of S1, or two, of S1 and S2. Raises InputError for another number."""
    if not 1 <= len(recordings) <= 2:
        raise InputError(f"A voice prompt has one recording or two, not {len(recordings)}.")
    entries: list[Entry] = []
    steps: list[int] = []
    shift = FIRST_SHIFT
    for speaker, recording in enumerate(recordings, start=1):
        its_entries, its_steps = _entries_of(recording.words, speaker, tokenizer)
        entries += its_entries
        steps += [step + shift for step in its_steps]
        shift = len(recording.codes)
    codes = np.concatenate([recording.codes for recording in recordings])
    return VoicePrefix(codes, tuple(entries), tuple(steps))


def from_take(codes: np.ndarray, words: Sequence[SpokenWord], tokenizer: Tokenizer) -> VoicePrefix:
    """A take's codes [frames, C] and its words: the steps are those that generated it."""
    entries: list[Entry] = []
    speaker = 0
    for word in words:
        mark = f"[S{word.speaker}] " if word.speaker != speaker else ""
        speaker = word.speaker
        tokens = tokenizer.encode(mark + word.word)
        entries.append(Entry(tuple(tokens), word.word, len(tokens), speaker))
    steps = (round(word.seconds * FRAMES_PER_SECOND) for word in words)
    return VoicePrefix(codes, tuple(entries), tuple(steps))


def spread_words(transcript: str, frames: int, tokenizer: Tokenizer) -> list[SpokenWord]:
    """The words of a transcript, spread over a recording by the lengths of their texts: where
    nothing better is known."""
    entries = [e for e in parse_script(transcript, tokenizer, FRAMES_PER_SECOND) if e.tokens]
    total = sum(len(entry.text) + 1 for entry in entries)
    words, before = [], 0
    for entry in entries:
        seconds = before / total * frames / FRAMES_PER_SECOND
        words.append(SpokenWord(entry.text, seconds, entry.speaker))
        before += len(entry.text) + 1
    return words


def _entries_of(
    words: Sequence[HeardWord], speaker: int, tokenizer: Tokenizer
) -> tuple[list[Entry], list[int]]:
    """The words of one recording as entries, and the steps at which they begin."""
    entries: list[Entry] = []
    steps: list[int] = []
    position, mark = 0, f"[S{speaker}] "
    for index, word in enumerate(words):
        tokens = tokenizer.encode(mark + word.text)
        mark = ""
        start = max(position + 1, round(word.start * FRAMES_PER_SECOND))
        steps.append(start - 1)
        position = start + len(tokens)
        after = words[index + 1].start if index + 1 < len(words) else word.end
        following = max(position + 1, round(after * FRAMES_PER_SECOND))
        padding = max(0, following - start - 1)
        entries.append(Entry(tuple(tokens), word.text, padding, speaker))
    return entries, steps
