"""A bar: what is tried, how often, and the lines of the table that come of it."""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tools.voice_bars.studio import Studio

Trial = dict[str, Any]


@dataclass(frozen=True)
class Line:
    """A line of the table. count: what was judged."""

    measure: str
    goal: str
    count: int
    result: str
    is_met: bool


@dataclass(frozen=True)
class Bar:
    """trial: the figures of the trial of this number, as JSON; lines: of all trials. quick: trials
    of a quick look, 0 for none. modules, programs: what it needs beyond requirements-dev.txt.
    on_request: it is only measured by its name, since it needs an idle machine."""

    name: str
    trials: int
    quick: int
    trial: Callable[[Studio, int], Trial]
    lines: Callable[[Sequence[Trial]], list[Line]]
    modules: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()
    on_request: bool = False

    def missing_requirements(self) -> list[str]:
        """What it needs and this machine does not have."""
        return [name for name in self.modules if importlib.util.find_spec(name) is None] + [
            name for name in self.programs if shutil.which(name) is None
        ]


def share_line(measure: str, goal: float, successes: Sequence[bool], note: str = "") -> Line:
    """A line for the share of successes, at least `goal`."""
    share = sum(successes) / len(successes)
    result = f"{share:.1%}{f' ({note})' if note else ''}"
    return Line(measure, f"≥ {goal:.0%}", len(successes), result, share >= goal)
