"""What became of the requests, as a table."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from statistics import median

from tools.soak.app import Usage

MOST_GROWTH = 0.05
SHOWN_PROBLEMS = 10


@dataclass
class Tally:
    """Of requests: answered, left in the middle, and of these continued later; refused because of a
    full queue and asked again. Of those that stayed connected: lost, with an answer of another
    request (mixed), with their answer twice, or with other bytes than alone (wrong).

    memory: samples of (seconds, bytes). problems: in words.
    """

    counts: Counter[str] = field(default_factory=Counter)
    routes: Counter[str] = field(default_factory=Counter)
    memory: list[tuple[float, int]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def note_answer(self, name: str, answer: bytes, expected: dict[str, bytes]) -> None:
        """The answer of a request that stayed connected. expected: of all jobs by name."""
        self.counts["answered"] += 1
        if answer == expected[name]:
            return
        if answer.count(expected[name]) > 1:
            kind = "twice"
        else:
            kind = "mixed" if answer in expected.values() else "wrong"
        self.note_problem(kind, f"{name}: {_difference(answer, expected[name])}")

    def note_problem(self, kind: str, message: str) -> None:
        """Something that must not happen."""
        self.counts[kind] += 1
        self.problems.append(f"{kind}: {message}")

    def growth(self, begin: float, end: float) -> float:
        """How much the memory has grown between two moments, in seconds, as a share: the medians of
        the tenth of the time after the one and before the other."""
        tenth = (end - begin) / 10
        first = [size for at, size in self.memory if begin <= at <= begin + tenth]
        last = [size for at, size in self.memory if end - tenth <= at <= end]
        return median(last) / median(first) - 1 if first and last else 0.0


def _difference(answer: bytes, expected: bytes) -> str:
    pairs = enumerate(zip(answer, expected, strict=False))
    differing = [place for place, (found, wanted) in pairs if found != wanted]
    first = f", {len(differing):,} others from byte {differing[0]:,} on" if differing else ""
    return f"{len(answer):,} bytes of {len(expected):,}{first}"


def bars(tally: Tally, growth: float, before: Usage, after: Usage, left: int) -> dict[str, bool]:
    """What has to hold, and whether it does. left: files after the end of the app."""
    lines = {
        f"{tally.counts[kind]} {words}": not tally.counts[kind]
        for kind, words in (
            ("lost", "requests that stayed connected were lost"),
            ("mixed", "got the answer of another"),
            ("twice", "were answered twice"),
            ("wrong", "got other bytes than alone"),
        )
    }
    lines[f"memory {growth:+.1%}, at most {MOST_GROWTH:+.0%}"] = growth <= MOST_GROWTH
    for name, first, last in (
        ("threads", before.threads, after.threads),
        ("connections", before.sockets, after.sockets),
        ("open files", before.files, after.files),
    ):
        lines[f"{name}: {first} before, {last} after"] = last <= first
    lines[f"{after.temporary} folders of runs left"] = not after.temporary
    lines[f"{left} temporary files left after the end"] = not left
    return lines


def table(tally: Tally, seconds: float, found: dict[str, bool], after: Usage) -> str:
    """For people."""
    counts = tally.counts
    rows = [
        f"{sum(tally.routes.values()):,} requests in {seconds:.0f} s: {counts['answered']:,} "
        f"answered, {counts['left']:,} left in the middle, {counts['continued']:,} of these "
        f"continued, {counts['refused']:,} refused and sent again",
        ", ".join(f"{route} {count:,}" for route, count in sorted(tally.routes.items())),
        f"memory at the end {after.memory / 1e6:,.0f} MB, {after.answers} answers still kept",
        *(f"{'held  ' if held else 'MISSED'} {line}" for line, held in found.items()),
        *tally.problems[:SHOWN_PROBLEMS],
    ]
    return "\n".join(rows)
