"""The events of a dialogue: one stream of frozen dataclasses.

A stream is `Waiting* Loading* DialoguePlanned (ChunkProgress | ChunkFinished | AudioChunk)*`, ended
by one of DialogueFinished, DialogueStopped and DialogueFailed; waiting and loading may come again
between chunks, since other people's takes have their turn. AudioChunk is the joined sound, in
order. `left` is the time until the whole dialogue is complete, None while it is not known.
"""

from __future__ import annotations

from dataclasses import dataclass

from dia_demo.engine.events import AudioChunk, Loading, Waiting
from dia_demo.engine.time_left import TimeLeft
from dia_demo.services.judging.judge import Verdict
from dia_demo.text.dialogue.chunks import Chunk


@dataclass(frozen=True)
class DialoguePlanned:
    """The script is split. found: chunks that an earlier run made."""

    chunks: tuple[Chunk, ...]
    found: int
    left: TimeLeft | None = None


@dataclass(frozen=True)
class ChunkProgress:
    """A chunk is being made. attempt: 0, or how often it was made before. audio_seconds: of this
    chunk; done_seconds: of all chunks so far, of total_seconds, which is an estimate."""

    chunk: int
    attempt: int
    audio_seconds: float
    expected_seconds: float
    done_seconds: float
    total_seconds: float
    left: TimeLeft | None = None


@dataclass(frozen=True)
class ChunkFinished:
    """An attempt at a chunk is complete and judged. is_remade: it is made again."""

    chunk: int
    attempt: int
    seed: int
    seconds: float
    verdict: Verdict
    is_remade: bool
    left: TimeLeft | None = None


@dataclass(frozen=True)
class ChunkReport:
    """What became of a chunk. words_per_second: while it sounds. remade: how often."""

    index: int
    script: str
    seed: int
    seconds: float
    words_per_second: float
    verdict: str
    remade: int

    @property
    def remark(self) -> str | None:
        """A sentence about the fault that is left after all attempts; None if it is good."""
        if self.verdict == "good":
            return None
        return f"Part {self.index + 1} ({self.verdict}): “{self.script[:60]}”."


@dataclass(frozen=True)
class DialogueFinished:
    """All chunks are made."""

    chunks: tuple[ChunkReport, ...]


@dataclass(frozen=True)
class DialogueStopped:
    """Stopped; the next run goes on with what is missing. made: chunks that are complete."""

    made: int
    count: int


@dataclass(frozen=True)
class DialogueFailed:
    """A chunk could not be made. The chunks that are complete stay."""

    message: str
    made: int
    count: int


DialogueEvent = (
    Waiting
    | Loading
    | DialoguePlanned
    | ChunkProgress
    | ChunkFinished
    | AudioChunk
    | DialogueFinished
    | DialogueStopped
    | DialogueFailed
)
