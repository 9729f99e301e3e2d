"""Where a take was made, and whether it may come out differently here."""

import pytest

from dia_demo.machine import processor
from dia_demo.machine.processor import numerics_here, why_it_may_differ

VNNI = {*processor.CLASSES["avx512-vnni"].required}


@pytest.mark.parametrize(
    ("features", "expected"),
    [
        ({*processor.CLASSES["avx2"].required}, "avx2"),
        ({*processor.CLASSES["avx-vnni"].required}, "avx-vnni"),
        ({*processor.CLASSES["avx512"].required}, "avx512"),
        (VNNI, "avx512-vnni"),
        (VNNI | {"avx512bf16", "avx512vbmi"}, "avx512-bf16"),
        ({"sse4.2"}, "riscv64"),
    ],
)
def test_the_class_of_a_processor(monkeypatch, features, expected):
    monkeypatch.setattr(processor, "features", lambda: frozenset(features))
    monkeypatch.setattr(processor.platform, "machine", lambda: "riscv64")
    assert processor.class_name() == expected


def test_what_was_made_here_does_not_differ():
    assert why_it_may_differ(numerics_here() | {"kernel": "another"}) is None


@pytest.mark.parametrize("name", ["processor", "torch", "numba"])
def test_another_class_or_version_is_named(name):
    remark = why_it_may_differ(numerics_here() | {name: "0.0"})
    assert "0.0" in remark and numerics_here()[name] in remark and "may give a different" in remark


def test_other_int4_weights_are_named_where_those_here_are_known():
    there, here = (f"calibrated as {k}" for k in (1, 2))
    saved = numerics_here() | {"weights": there}
    assert why_it_may_differ(saved) is why_it_may_differ(saved, there) is None
    remark = why_it_may_differ(saved, here)
    assert f"int4 weights {there}" in remark and f"int4 weights {here}" in remark


@pytest.mark.parametrize("saved", [None, 5, [], {}, {"processor": 7}, {"torch": "x" * 999}])
def test_what_a_file_does_not_say_is_no_difference(saved):
    assert why_it_may_differ(saved) is None
