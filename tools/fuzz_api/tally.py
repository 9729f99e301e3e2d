"""What came back, route by route."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

TRACEBACK = "Traceback (most recent call last)"
_SHOWN = 10


@dataclass
class Route:
    """Answers of one route. classes: how many of each hundred of statuses."""

    requests: int = 0
    malformed: int = 0
    classes: Counter[int] = field(default_factory=Counter)
    tracebacks: int = 0
    hangs: int = 0


class Tally:
    """Counts answers. log: all that the server has written."""

    def __init__(self, log: Callable[[], str]) -> None:
        self._log = log
        self._logged = log().count(TRACEBACK)
        self.routes: dict[str, Route] = {}
        self.faults: list[str] = []

    def add(self, label: str, is_malformed: bool, status: int | None, text: str, how: str) -> None:
        """Count an answer. status: None for a hang. text: its beginning; how: the request."""
        route = self.routes.setdefault(label, Route())
        route.requests += 1
        route.malformed += is_malformed
        before, self._logged = self._logged, self._log().count(TRACEBACK)
        tracebacks = self._logged - before + (TRACEBACK in text)
        route.tracebacks += tracebacks
        if status is None:
            route.hangs += 1
        else:
            route.classes[status // 100] += 1
        if status is None or status >= 500 or tracebacks:
            self.faults.append(f"{label} {status} {text[:200]!r}\n  {how[:500]}")

    @property
    def malformed(self) -> int:
        return sum(route.malformed for route in self.routes.values())

    def lines(self) -> list[str]:
        """The table, and the first requests that should not have been answered so."""
        header = ("route", "requests", "malformed", "2xx", "4xx", "5xx", "tracebacks", "hangs")
        rows = [self._row(label, route) for label, route in self.routes.items()]
        numbers = [[int(row[column]) for row in rows] for column in range(1, len(header))]
        rows.append(["all", *(str(sum(column)) for column in numbers)])
        lines = ["| " + " | ".join(cells) + " |" for cells in (header, ["---"] * 8, *rows)]
        return [*lines, "", *self.faults[:_SHOWN]] if self.faults else lines

    @staticmethod
    def _row(label: str, route: Route) -> list[str]:
        classes = [route.classes[hundred] for hundred in (2, 4, 5)]
        counts = [route.requests, route.malformed, *classes, route.tracebacks, route.hangs]
        return [label, *map(str, counts)]
