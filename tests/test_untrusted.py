"""JSON as typed values. What untrusted files do otherwise is tested with checkpoints and voices."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from dia_demo.untrusted import parse_as


@dataclass(frozen=True)
class Point:
    """A dataclass as files of ours store them."""

    x: int
    y: tuple[float, ...] = ()


def test_json_is_read_as_a_dataclass():
    assert parse_as(Point, {"x": 1, "y": [2, 0.5], "later": None}) == Point(1, (2.0, 0.5))
    assert parse_as(dict[str, Point], {"a": {"x": 1}}) == {"a": Point(1)}


@pytest.mark.parametrize("raw", [None, [], {}, {"x": "1"}, {"x": True}, {"x": 1, "y": 2}])
def test_json_of_another_shape_is_refused(raw):
    with pytest.raises(ValueError):
        parse_as(Point, raw)
