"""A script of any length as chunks, each short enough for one take.

Chunks begin where turns do, as far as possible. A pause that the script asks for (pauses.py) is
between two chunks, so that it is exactly as long as it should be.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from dia_demo.errors import InputError
from dia_demo.text.dialogue.breaks import Break, split_text
from dia_demo.text.dialogue.pauses import find_pauses, remove_pauses
from dia_demo.text.script import TURN_PAUSE_SECONDS, has_words, parse_turns

# Of a chunk, in seconds of speech: shorter ones sound unnatural, longer ones are rushed.
SHORTEST_SECONDS, USUAL_SECONDS, LONGEST_SECONDS = 8.0, 13.0, 18.0
# What it costs to split before a part, and a chunk for every second below the shortest.
_BREAK_COSTS = {Break.TURN: 0.0, Break.SENTENCE: 4.0, Break.CLAUSE: 12.0, Break.WORD: 25.0}
_TAG_BYTES = 3  # A tag, with a space on either side.
# In "Well (pause), yes" the comma is that of "Well".
_MARKS = re.compile(r"[.,;:!?…]+[\"')”’]*(?=\s|$)")
_COST_TOO_SHORT, _COST_UNUSUAL = 2.0, 0.15


@dataclass(frozen=True)
class Size:
    """How long a part of a script is: seconds of speech and bytes for the model."""

    seconds: float
    num_bytes: int


@dataclass(frozen=True)
class TurnPart:
    """Words of one turn. turn: its number, from 0. before: what stands before the part, TURN where
    the turn begins with it."""

    speaker: int
    text: str
    turn: int
    before: Break


@dataclass(frozen=True)
class Chunk:
    """Some parts of a script, for one take. pause: the silence before it in seconds, where the
    script asks for one."""

    index: int
    parts: tuple[TurnPart, ...]
    seconds: float
    pause: float | None = None

    @property
    def script(self) -> str:
        """Its turns, beginning with the tag of its own speaker."""
        words, speaker = [], 0
        for part in self.parts:
            words += [part.text] if part.speaker == speaker else [f"[S{part.speaker}] {part.text}"]
            speaker = part.speaker
        return " ".join(words)

    @property
    def closed_script(self) -> str:
        """The script with the tag of the other speaker at its end, which keeps the last word whole:
        after it Dia expects no more words of the turn."""
        return f"{self.script} [S{3 - self.parts[-1].speaker}]"

    @property
    def speakers(self) -> frozenset[int]:
        """Who speaks in it."""
        return frozenset(part.speaker for part in self.parts)

    @property
    def before(self) -> Break:
        """What stands before it in the script."""
        return self.parts[0].before


@dataclass(frozen=True)
class ChunkedScript:
    """The chunks of a script, and the pause at its end in seconds, 0 without one."""

    chunks: tuple[Chunk, ...]
    pause: float = 0.0

    @property
    def seconds(self) -> float:
        """An estimate of its whole length, without what stands between chunks."""
        return sum(chunk.seconds + (chunk.pause or 0.0) for chunk in self.chunks) + self.pause


def split_script(
    script: str,
    measure: Callable[[str], Size],
    longest: float = LONGEST_SECONDS,
    most_bytes: int = 1000,
) -> ChunkedScript:
    """Split a script of turns with [S1] and [S2]; words before any tag are those of speaker 1.

    measure: the size of a text without tags as the model reads it. longest: seconds of speech that
    a chunk has at most, where its words can be split. most_bytes: the same for its bytes. Raises
    InputError for a script without words, and for a pause that is too long.
    """
    if not has_words(remove_pauses(script)):
        raise InputError("The script has no words: write what should be said after [S1].")
    chunks: list[Chunk] = []
    pause: float | None = None
    for spoken in _split_at_pauses(script):
        if isinstance(spoken, float):
            pause = (pause or 0.0) + spoken
            continue
        parts = _split_long_parts(spoken, measure, longest, most_bytes)
        sizes = [measure(part.text) for part in parts]
        for start, end in _pack_parts(parts, sizes, longest, most_bytes):
            seconds = _total_size(sizes[start:end]).seconds
            chunks.append(Chunk(len(chunks), tuple(parts[start:end]), seconds, pause))
            pause = None
    return ChunkedScript(tuple(chunks), pause or 0.0)


def _split_at_pauses(script: str) -> Iterator[list[TurnPart] | float]:
    """The words between pauses, as parts of turns, and the seconds of each pause, in order."""
    spoken: list[TurnPart] = []
    number = 0
    for turn in parse_turns(script):
        done, before = 0, Break.TURN
        for pause in [*find_pauses(turn.text), None]:
            words = turn.text[done : pause.start if pause else None].strip()
            if pause is not None:
                marks = _MARKS.match(turn.text, pause.end)
                words += marks[0] if marks else ""
                done = marks.end() if marks else pause.end
            if has_words(words):
                spoken.append(TurnPart(turn.speaker or 1, words, number, before))
                before = Break.CLAUSE
            if pause is not None:
                if spoken:
                    yield spoken
                    spoken = []
                yield pause.seconds
        number += before is not Break.TURN
    if spoken:
        yield spoken


def _split_long_parts(
    spoken: Sequence[TurnPart], measure: Callable[[str], Size], longest: float, most_bytes: int
) -> list[TurnPart]:
    """The parts, with those split that are too long for a chunk."""

    def fits(text: str) -> bool:
        size = measure(text)
        return size.seconds <= longest and size.num_bytes + _TAG_BYTES <= most_bytes

    return [
        replace(part, text=text, before=here if number else part.before)
        for part in spoken
        for number, (here, text) in enumerate(split_text(part.text, fits))
        if has_words(text)
    ]


def _pack_parts(
    parts: Sequence[TurnPart], sizes: Sequence[Size], longest: float, most_bytes: int
) -> list[tuple[int, int]]:
    """Which parts make a chunk together, as ranges: neither too short nor too long, split at the
    best places. By dynamic programming over the number of parts."""
    best = [0.0]
    starts = [0]
    for end in range(1, len(parts) + 1):
        costs = {}
        for start in range(end - 1, -1, -1):
            size = _total_size(sizes[start:end])
            is_too_long = size.seconds > longest or size.num_bytes > most_bytes
            if is_too_long and start < end - 1:
                break
            split = _BREAK_COSTS[parts[start].before] if start else 0.0
            costs[start] = best[start] + split + _cost(size.seconds, min(USUAL_SECONDS, longest))
        start = min(costs, key=lambda start: costs[start])
        best.append(costs[start])
        starts.append(start)
    ranges, end = [], len(parts)
    while end:
        ranges.append((starts[end], end))
        end = starts[end]
    return ranges[::-1]


def _cost(seconds: float, usual: float) -> float:
    """How bad the length of a chunk is."""
    too_short = max(0.0, min(SHORTEST_SECONDS, usual) - seconds)
    return _COST_TOO_SHORT * too_short + _COST_UNUSUAL * abs(seconds - usual)


def _total_size(sizes: Sequence[Size]) -> Size:
    """The size of parts one after another, with the pauses between them and their tags."""
    pauses = TURN_PAUSE_SECONDS * (len(sizes) - 1)
    return Size(
        sum(size.seconds for size in sizes) + pauses,
        sum(size.num_bytes for size in sizes) + _TAG_BYTES * (len(sizes) + 1),
    )
