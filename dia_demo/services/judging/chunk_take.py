"""One attempt at a chunk of a dialogue."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from dia_demo.engine.events import Figures, Result, SpokenWord
from dia_demo.prompt.voice_traits import TraitsOfBoth


@dataclass(frozen=True)
class ChunkTake:
    """One attempt at a chunk. text: the bytes that the model read, of which the first `said` are
    the transcript of a voice prompt; places, expected_voices, words: see `Result`."""

    chunk: int
    attempt: int
    samples: np.ndarray
    codes: np.ndarray
    places: np.ndarray | None
    text: bytes
    said: int
    figures: Figures
    voices: tuple[str | None, str | None] | None = None
    expected_voices: TraitsOfBoth = (None, None)
    words: tuple[SpokenWord, ...] | None = None

    @classmethod
    def from_result(
        cls, chunk: int, attempt: int, text: bytes, said: int, result: Result
    ) -> ChunkTake:
        """The take of a row's result, made with audio."""
        assert result.samples is not None, "a dialogue is made with audio"
        heard = result.samples, result.codes, result.places
        about = result.figures, result.voices, result.expected_voices
        return cls(chunk, attempt, *heard, text, said, *about, words=result.words)

    @property
    def sample_rate(self) -> int:
        """Of the samples, in Hz."""
        return self.figures.sample_rate


def words_in_codes(
    takes: Sequence[ChunkTake], frames_per_second: float, speed: float
) -> tuple[SpokenWord, ...]:
    """The words of takes, if the model knows them, at their times in the joined codes; speed: of
    the takes' sound."""
    words, before = [], 0.0
    for take in takes:
        for word in take.words or ():
            words.append(replace(word, seconds=before + word.seconds * speed))
        before += len(take.codes) / frames_per_second
    return tuple(words)
