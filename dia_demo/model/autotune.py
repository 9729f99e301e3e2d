"""Which implementation of an operation is right on this processor, and how fast one is.

Implementations round differently, so none is chosen by its speed: a stopwatch would decide which
take a seed gives. They are tried in a fixed order, and the first whose results are right is used.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from math import inf, isnan
from pathlib import Path
from time import perf_counter

import torch
from torch import Tensor

from dia_demo.files import Stamp, cache_folder, file_stamp, write_atomic
from dia_demo.kernels.jit import digest

# A call longer than this (seconds) is timed once, others at least LEAST_REPEATS times.
SLOW_CALL, LEAST_REPEATS = 0.5, 3
# What an implementation raises where it does not support the processor.
UNSUPPORTED = (RuntimeError, AttributeError, NotImplementedError, ImportError)

# The key of the wrong results in the file, and below it the kernels' digest.
_WRONG = "wrong results"

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Case:
    """One call of an implementation.

    run: computes the result. expected: float64, the result's first rows. largest_error: allowed
    relative L2 error, None for the reference itself.
    """

    run: Callable[[], Tensor]
    expected: Tensor
    largest_error: float | None

    def error(self) -> float:
        """Relative L2 error of the result."""
        result = self.run()[: len(self.expected)].double()
        return float((result - self.expected).norm() / self.expected.norm())

    def allows(self, error: float) -> bool:
        return self.largest_error is None or error <= self.largest_error


@torch.inference_mode()
def choose_correct(
    operation: str, implementations: Mapping[str, Callable[[], Sequence[Case]]]
) -> str | None:
    """The first implementation that runs here and passes all of its cases; None if none does.

    The values of `implementations` build one and return its cases. Those whose results are wrong
    are named in `wrong_results` under `operation`.
    """
    wrong: dict[str, str] = {}
    found = next(
        (name for name, build in implementations.items() if _passes(name, build, wrong)), None
    )
    _note_wrong_results(operation, wrong)
    return found


def _passes(name: str, build: Callable[[], Sequence[Case]], wrong: dict[str, str]) -> bool:
    """Whether an implementation runs here and is right; `wrong` gets its error if it is not."""
    try:
        cases = build()
        errors = [case.error() for case in cases]
    except UNSUPPORTED as reason:
        log.info("%s does not run here: %s", name, reason)
        return False
    if all(case.allows(error) for case, error in zip(cases, errors, strict=True)):
        return True
    log.warning("%s has an error of %s here and is not used", name, errors)
    largest = max(errors, key=lambda error: (isnan(error), error))
    wrong[name] = f"{largest:.1e}"
    return False


def milliseconds_of(run: Callable[[], object], seconds: float, repeats: int) -> float:
    """Milliseconds of one call, the best of a few: up to `seconds` and up to `repeats` calls."""
    best, spent = inf, 0.0
    for count in range(1, repeats + 1):
        began = perf_counter()
        run()
        taken = perf_counter() - began
        best, spent = min(best, taken), spent + taken
        if taken > SLOW_CALL or (spent >= seconds and count >= LEAST_REPEATS):
            break
    return 1000 * best


# Results on disk


def recall(key: str) -> dict | None:
    """The result that an earlier process stored under `key`."""
    result = _read_results().get(key)
    return result if isinstance(result, dict) else None


def remember(key: str, result: dict) -> None:
    """Store a result under `key`. If the folder cannot be written, it is lost."""
    text = json.dumps(_read_results() | {key: result}, indent=1)
    with suppress(OSError):
        _results_file().parent.mkdir(parents=True, exist_ok=True)
        with write_atomic(_results_file()) as part:
            part.write_text(text, encoding="utf-8")


def wrong_results() -> dict[str, dict[str, str]]:
    """What earlier checks dropped on this processor because its results were wrong: by operation,
    the relative error of each implementation."""
    results = _read_results().get(_WRONG)
    kept = results.get(digest()) if isinstance(results, dict) else None
    return kept if isinstance(kept, dict) else {}


def _note_wrong_results(operation: str, wrong: dict[str, str]) -> None:
    """Store what a check dropped, in place of what an earlier check of the operation did."""
    before = wrong_results()
    after = {name: errors for name, errors in before.items() if name != operation}
    after |= {operation: wrong} if wrong else {}
    if after != before:
        remember(_WRONG, {digest(): after})


def _results_file() -> Path:
    return cache_folder() / "kernels.json"


def _read_results() -> dict:
    file = _results_file()
    return _parse_results(file, file_stamp(file))


@lru_cache(maxsize=1)
def _parse_results(file: Path, _stamp: Stamp | None) -> dict:
    try:
        results = json.loads(file.read_text(encoding="utf-8"))
        return results if isinstance(results, dict) else {}
    except (OSError, ValueError):
        return {}
