"""JSON as typed values. What untrusted files do otherwise is tested with checkpoints and voices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import pytest

from dia_demo.config import Range
from dia_demo.errors import InputError
from dia_demo.untrusted import parse_as, parse_config


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


Rate = Annotated[int, Range(1, 9, whole=True)]


@dataclass(frozen=True)
class Sizes:
    """A dataclass with ranges, as configs are read."""

    width: Rate = 4
    depth: Rate | None = None
    eps: Annotated[float, Range(1e-9, 1)] = 1e-5
    rates: tuple[Rate, ...] = (1, 2)


def test_a_config_is_read_with_defaults_and_without_unknown_keys():
    assert parse_config(Sizes, {}, "c.json") == Sizes()
    sizes = parse_config(Sizes, {"width": 8.0, "depth": None, "eps": 1, "run": "rm"}, "c.json")
    assert sizes == Sizes(8, eps=1.0) and type(sizes.width) is int and type(sizes.eps) is float


NO_NUMBERS = (None, True, "8", [], {}, float("nan"), float("inf"), 0, -1, 10**30, "\u202e{x} %s")


@pytest.mark.parametrize("value", [*NO_NUMBERS, 1.5], ids=repr)
def test_a_number_of_a_config_is_refused_with_file_key_and_range(value):
    with pytest.raises(InputError) as refused:
        parse_config(Sizes, {"width": value}, "c.json")
    sentence = f"c.json: width must be a whole number from 1 to 9, not {value!r}."
    assert refused.value.args == (sentence,)
    with pytest.raises(InputError, match=r"^c\.json: each of rates must be a whole number"):
        parse_config(Sizes, {"rates": [1, value]}, "c.json")


@pytest.mark.parametrize("value", NO_NUMBERS, ids=repr)
def test_a_real_number_of_a_config_is_refused_in_the_same_words(value):
    with pytest.raises(InputError, match=r"^c\.json: eps must be a number from 1e-09 to 1, not "):
        parse_config(Sizes, {"eps": value}, "c.json")


def test_the_first_wrong_field_is_named():
    with pytest.raises(InputError, match="width"):
        parse_config(Sizes, {"rates": [0], "eps": 0, "width": 0}, "c.json")


def test_what_no_field_reads_may_be_nested_deeply():
    nested: list = []
    for _ in range(900):
        nested = [nested]
    assert parse_config(Sizes, {"width": 2, "more": nested}, "c.json") == Sizes(2)
