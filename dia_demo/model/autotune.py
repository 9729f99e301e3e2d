"""Which implementation of an operation is fastest on this processor: a short timed trial.

Implementations that do not run here, or whose error is too large, are left out. The others are
timed in turns, so that a busy moment slows all of them down, and the best time of each counts, so
that one stalled call does not decide.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import inf, isnan
from pathlib import Path
from time import perf_counter
from typing import TypeVar

import torch
from torch import Tensor

from dia_demo.files import cache_folder, write_atomic
from dia_demo.kernels.jit import digest

# Times are noisy, and two implementations round differently: unless it is clearly slower, the first
# one is chosen, so that a seed gives the same take after every start.
SLOWER_BY = 1.3
# A call longer than this (seconds) is timed once, others at least LEAST_REPEATS times.
SLOW_CALL, LEAST_REPEATS = 0.5, 3
# What an implementation raises where it does not support the processor.
UNSUPPORTED = (RuntimeError, AttributeError, NotImplementedError, ImportError)

# The key of the wrong results in the file, and below it the kernels' digest.
_WRONG = "wrong results"

# A name, or the parts of one.
Name = TypeVar("Name", str, tuple[str, str])

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Case:
    """One call of an implementation.

    run: computes it as often as its argument says and returns the result. expected: float64, the
    result's first rows. largest_error: allowed relative L2 error, None for the reference itself.
    """

    run: Callable[[int], Tensor]
    expected: Tensor
    largest_error: float | None

    def error(self) -> float:
        """Relative L2 error of the result."""
        result = self.run(1)[: len(self.expected)].double()
        return float((result - self.expected).norm() / self.expected.norm())

    def allows(self, error: float) -> bool:
        return self.largest_error is None or error <= self.largest_error


@dataclass(frozen=True)
class Budget:
    """How long a case is timed: up to `seconds` and up to `repeats` times. `calls` of a fast case
    are timed together."""

    seconds: float
    repeats: int
    calls: int = 1


@torch.inference_mode()
def run_trial(
    operation: str, implementations: Mapping[Name, Callable[[], Sequence[Case]]], budget: Budget
) -> dict[Name, list[float]]:
    """Milliseconds of every case, for each implementation that passes all of its cases.

    The values of `implementations` build one and return its cases. Those whose results are wrong
    are named in `wrong_results` under `operation`.
    """
    passed: dict[Name, Sequence[Case]] = {}
    wrong: dict[str, str] = {}
    for name, build in implementations.items():
        try:
            cases = build()
            errors = [case.error() for case in cases]
        except UNSUPPORTED as reason:
            log.info("%s does not run here: %s", name, reason)
            continue
        if all(case.allows(error) for case, error in zip(cases, errors, strict=True)):
            passed[name] = cases
        else:
            log.warning("%s has an error of %s here and is not used", name, errors)
            largest = max(errors, key=lambda error: (isnan(error), error))
            wrong[name if isinstance(name, str) else " ".join(name)] = f"{largest:.1e}"
    _note_wrong_results(operation, wrong)
    return time_in_turns(
        {name: [case.run for case in cases] for name, cases in passed.items()}, budget
    )


def time_in_turns(
    runs: Mapping[Name, Sequence[Callable[[int], object]]], budget: Budget
) -> dict[Name, list[float]]:
    """Milliseconds of one call of each run, the best of a few."""
    timers = {name: [Timer(run, budget) for run in each] for name, each in runs.items()}
    unfinished = [timer for each in timers.values() for timer in each]
    while unfinished:
        for timer in unfinished:
            timer.measure()
        unfinished = [timer for timer in unfinished if not timer.is_done]
    return {name: [timer.milliseconds for timer in each] for name, each in timers.items()}


class Timer:
    """Times one run until its budget is used up; `milliseconds` is the best time of a call."""

    def __init__(self, run: Callable[[int], object], budget: Budget) -> None:
        self._run, self._budget = run, budget
        self._calls, self._repeats, self._seconds = 1, 0, 0.0
        self._least_repeats = LEAST_REPEATS
        self.milliseconds = inf

    def measure(self) -> None:
        began = perf_counter()
        self._run(self._calls)
        seconds = perf_counter() - began
        self.milliseconds = min(self.milliseconds, 1000 * seconds / self._calls)
        if self._repeats == 0:
            if seconds * self._budget.calls < self._budget.seconds:
                self._calls = self._budget.calls
            if seconds > SLOW_CALL:
                self._least_repeats = 1
        self._repeats += 1
        self._seconds += seconds

    @property
    def is_done(self) -> bool:
        if self._repeats < self._least_repeats:
            return False
        return self._repeats >= self._budget.repeats or self._seconds >= self._budget.seconds


def first_near_fastest(
    milliseconds: Mapping[Name, Sequence[float]], slower_by: float = SLOWER_BY
) -> Name:
    """The first that is in no case clearly slower than the fastest; else the one least so."""
    fastest = [min(column) for column in zip(*milliseconds.values(), strict=True)]
    ratios = {
        name: max(ms / least for ms, least in zip(each, fastest, strict=True))
        for name, each in milliseconds.items()
    }
    near = (name for name, ratio in ratios.items() if ratio <= slower_by)
    return next(near, min(ratios, key=lambda name: ratios[name]))


# Results on disk


def remembered(key: str) -> dict | None:
    """The result that an earlier process stored under `key`."""
    result = _read_results().get(key)
    return result if isinstance(result, dict) else None


def remember(key: str, result: dict) -> None:
    """Store a trial's result. If the folder cannot be written, every start repeats the trial."""
    text = json.dumps(_read_results() | {key: result}, indent=1)
    with suppress(OSError):
        _results_file().parent.mkdir(parents=True, exist_ok=True)
        with write_atomic(_results_file()) as part:
            part.write_text(text, encoding="utf-8")


def wrong_results() -> dict[str, dict[str, str]]:
    """What earlier trials dropped on this processor because its results were wrong: by operation,
    the relative error of each implementation."""
    results = _read_results().get(_WRONG)
    kept = results.get(digest()) if isinstance(results, dict) else None
    return kept if isinstance(kept, dict) else {}


def _note_wrong_results(operation: str, wrong: dict[str, str]) -> None:
    """Store what a trial dropped, in place of what an earlier trial of the operation did."""
    before = wrong_results()
    after = {name: errors for name, errors in before.items() if name != operation}
    after |= {operation: wrong} if wrong else {}
    if after != before:
        remember(_WRONG, {digest(): after})


def _results_file() -> Path:
    return cache_folder() / "kernels.json"


def _read_results() -> dict:
    try:
        results = json.loads(_results_file().read_text(encoding="utf-8"))
        return results if isinstance(results, dict) else {}
    except (OSError, ValueError):
        return {}
