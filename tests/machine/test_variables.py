"""Environment variables as the fields of a dataclass."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import pytest

from dia_demo.errors import InputError
from dia_demo.machine.variables import read_choice, read_text, read_variables, read_whole
from dia_demo.untrusted import ParseBy


def refuse(text: str) -> str:
    raise InputError(f"WORDS has {text!r}.")


@dataclass(frozen=True)
class Sample:
    size: Annotated[int, read_whole("SIZE", 1, 7, unit=10)] = 2
    switch: Annotated[bool, read_choice("SWITCH", ("on", "off"))] = True
    words: Annotated[
        tuple[Annotated[str, ParseBy(refuse)], ...], read_text("WORDS", str.split)
    ] = ()
    inner: int = 5


@dataclass(frozen=True)
class Other:
    text: Annotated[str, read_text("TEXT")] = ""


def read(**env: str) -> Sample:
    (sample,) = read_variables(env, Sample)
    return sample


def test_variables_that_are_not_set_have_their_defaults():
    assert read(TEXT="x") == Sample()
    assert read_variables({}, Other, Sample) == (Other(), Sample())


def test_texts_become_the_types_of_the_fields():
    assert read(SIZE="7", SWITCH="off") == Sample(70, False)
    assert read_variables({"TEXT": "\udcff", "SIZE": "007"}, Other, Sample)[0].text == "\udcff"


def test_a_field_without_a_variable_is_not_read():
    assert read(inner="6", size="3") == Sample()


@pytest.mark.parametrize(
    "text", ["0", "8", "-1", "1.0", " 1", "+1", "1_0", "²", "٣", "9" * 19, "9" * 20, "9" * 5000]
)
def test_other_texts_than_digits_in_the_range_are_refused(text):
    with pytest.raises(InputError) as caught:
        read(SIZE=text)
    assert str(caught.value) == f"SIZE must be a whole number from 1 to 7, not {text!r}."


def test_every_mistake_of_every_kind_has_a_line():
    with pytest.raises(InputError) as caught:
        read_variables({"WORDS": "{a} b", "SWITCH": "true", "SIZE": ""}, Other, Sample)
    assert str(caught.value).splitlines() == [
        "SIZE is empty: give it a number, or remove it.",
        "SWITCH must be one of on, off, not 'true'.",
        "WORDS has '{a}'.",
        "WORDS has 'b'.",
    ]
