"""Which cases of a test are long: `pytest` alone leaves them out."""

from __future__ import annotations

from collections.abc import Iterable

import pytest


def long_after(count: int, cases: Iterable) -> list:
    """The cases of a parametrization, those after the first `count` as long tests."""
    return [
        case if number < count else pytest.param(*_values(case), marks=pytest.mark.long)
        for number, case in enumerate(cases)
    ]


def _values(case) -> tuple:
    return case if isinstance(case, tuple) else (case,)
