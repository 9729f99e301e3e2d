"""One attempt at a chunk of a dialogue."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dia_demo.engine.events import Figures, Result


@dataclass(frozen=True)
class ChunkTake:
    """One attempt at a chunk. text: the bytes that the model read, of which the first `said` are
    the transcript of a voice prompt; places: see `Result.places`."""

    chunk: int
    attempt: int
    samples: np.ndarray
    codes: np.ndarray
    places: np.ndarray | None
    text: bytes
    said: int
    figures: Figures
    voices: tuple[str | None, str | None] | None = None

    @classmethod
    def of_result(
        cls, chunk: int, attempt: int, text: bytes, said: int, result: Result
    ) -> ChunkTake:
        """The take of a row's result, made with audio."""
        assert result.samples is not None, "a dialogue is made with audio"
        heard = result.samples, result.codes, result.places
        return cls(chunk, attempt, *heard, text, said, result.figures, result.voices)

    @property
    def sample_rate(self) -> int:
        """Of the samples, in Hz."""
        return self.figures.sample_rate
