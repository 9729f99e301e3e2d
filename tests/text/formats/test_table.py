"""Every recogniser of the table reads its own examples, and leaves alone what only looks alike."""

import pytest

from dia_demo.text.formats.table import FORMATS, in_turns, recognise

EXAMPLES = [
    pytest.param(row.name, written, turns, id=f"{row.name} {number}")
    for row in FORMATS
    for number, (written, turns) in enumerate(row.examples)
]
LEFT_ALONE = [
    pytest.param(script, id=f"{row.name} {number}")
    for row in FORMATS
    for number, script in enumerate(row.left_alone)
]


@pytest.mark.parametrize(("name", "written", "turns"), EXAMPLES)
def test_a_recogniser_reads_its_examples(name, written, turns):
    found = recognise(written)
    assert found is not None and found.is_sure
    assert found.script == turns
    assert found.format == name
    assert recognise(turns) is None


@pytest.mark.parametrize("script", LEFT_ALONE)
def test_what_looks_alike_is_read_as_written(script):
    assert in_turns(script) == script
