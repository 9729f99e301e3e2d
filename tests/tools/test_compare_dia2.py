"""The comparison with nari-labs/dia2: both of our models against what upstream would have made.

Upstream's code is not here, so that one of our models takes its place.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import ClassVar

import pytest

from dia_demo.model.dia2.torch_model import TorchDia2
from tools.compare_dia2 import __main__ as tool
from tools.compare_dia2 import ours
from tools.compare_dia2.cases import comparisons
from tools.compare_dia2.make_random_dia2 import SMALL, write_checkpoint

pytestmark = pytest.mark.kernels

FEW = ("short, greedy", "short, drawn", "prompt of 2, drawn, no guidance")


def few_comparisons(config):
    return (each for each in comparisons(config) if each.name in FEW)


class TorchAsUpstream:
    """Answers with the takes of torch's modules; `change` alters each."""

    change = staticmethod(lambda made: made)
    # By the name of a comparison: every run writes the same checkpoint.
    made: ClassVar[dict] = {}

    def __init__(self, checkout, folder) -> None:
        self._ours = ours.Ours(folder)
        self.encode = self._ours.tokenizer.encode

    def make(self, comparison, uniforms):
        if comparison.name not in self.made:
            (self.made[comparison.name],) = self._ours.make([comparison])[ours.TORCH]
        return self.change(self.made[comparison.name])


@pytest.fixture
def lines(monkeypatch, capsys):
    """A function that runs the tool on one small checkpoint: its exit code and lines."""
    monkeypatch.setattr(tool, "CONFIGS", {"small": SMALL})
    monkeypatch.setattr(tool, "comparisons", few_comparisons)
    monkeypatch.setattr(tool, "Upstream", TorchAsUpstream)
    monkeypatch.setattr(sys, "argv", ["compare_dia2", "no checkout"])

    def run() -> tuple[int, list[str]]:
        return tool.main(), capsys.readouterr().out.splitlines()

    return run


def test_the_model_that_users_run_is_compared_beside_torchs(lines):
    pytest.importorskip("numba")
    code, printed = lines()
    assert code == 0 and len(printed) == len(FEW) + 3
    assert all(line.endswith("torch: equal; compiled: equal") for line in printed[: len(FEW)])
    assert printed[len(FEW) :] == [
        "tokenizer: 4 of 4 equal",
        "torch: 3 of 3 equal",
        "compiled: 3 of 3 equal",
    ]


def test_a_model_of_each_kind_is_made(tmp_path):
    pytest.importorskip("numba")
    from dia_demo.model.dia2.compiled_frames.model import CompiledDia2

    folder = write_checkpoint(tmp_path / "small")
    models = ours.load_models(folder, ours.Ours(folder).config)
    kinds = {name: type(model) for name, model in models.items()}
    assert kinds == {"torch": TorchDia2, "compiled": CompiledDia2}


def other_code(made):
    codes = made.codes.copy()
    codes[4, 1] ^= 1
    return replace(made, codes=codes)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (other_code, "codes from frame 4"),
        (lambda made: replace(made, codes=made.codes[1:]), "cut or end"),
        (lambda made: replace(made, words=made.words[1:]), "words or their times"),
        (lambda made: replace(made, actions=made.actions[:-1]), "actions and text from the end"),
    ],
    ids=["codes", "cut", "words", "actions"],
)
def test_a_difference_is_named_and_counted(lines, monkeypatch, change, said):
    monkeypatch.setattr(TorchAsUpstream, "change", staticmethod(change))
    monkeypatch.setattr(ours, "can_compile", lambda: False)
    code, printed = lines()
    assert code == 1 and all(f"torch: {said}" in line for line in printed[: len(FEW)])
    assert "torch: 0 of 3 equal" in printed


def test_without_numba_torchs_model_alone_is_compared_and_the_tool_says_so(lines, monkeypatch):
    monkeypatch.setattr(ours, "can_compile", lambda: False)
    code, printed = lines()
    assert code == 0 and printed[-1].startswith("compiled: not compared, because numba")
    assert "torch: 3 of 3 equal" in printed


def test_one_model_that_differs_is_enough_to_fail(lines, monkeypatch):
    pytest.importorskip("numba")
    made = ours.Ours.make

    def wrong_where_compiled(self, todo):
        found = made(self, todo)
        return found | {ours.COMPILED: [other_code(each) for each in found[ours.COMPILED]]}

    monkeypatch.setattr(ours.Ours, "make", wrong_where_compiled)
    code, printed = lines()
    assert code == 1 and "torch: 3 of 3 equal" in printed
    assert "compiled: 0 of 3 equal" in printed
    assert "torch: equal; compiled: codes from frame 4" in printed[0]
