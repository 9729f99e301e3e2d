"""What is compiled beside the start of the program is what a take calls."""

from __future__ import annotations

import pytest
import torch
from numba import typeof

from dia_demo.codec import snake
from dia_demo.engine import sampling
from dia_demo.kernels import precompile
from dia_demo.kernels.llvm_simd import dot_lanes
from dia_demo.kernels.packing import INT8
from dia_demo.kernels.precompile import Precompilation
from dia_demo.model.compiled_step import product
from dia_demo.model.packed_linear import PackedLinear


def test_a_take_compiles_nothing_that_was_not_precompiled():
    wanted = precompile.kernels("int8")
    for kernel, arguments in wanted:
        kernel.compile(tuple(map(typeof, arguments)))
    linear = PackedLinear.from_weight(torch.ones(64, 64), "int8")
    product(linear, torch.ones(2, 64), 1, bool(dot_lanes(INT8)))
    sampling.check_sampler()
    assert snake.snake_kind() == "compiled"
    assert [len(kernel.signatures) for kernel, _ in wanted] == [1] * len(wanted)


@pytest.fixture
def process(monkeypatch):
    """Stands in for the process: what was started, and what it prints."""
    started = []

    class Process:
        def __init__(self, command, **options):
            started.append(command)
            self.stdout = iter(["0 4\n", "1 4\n", "2 4\n", "3 4\n", "4 4\n"])

    monkeypatch.setattr(precompile.subprocess, "Popen", Process)
    return started


def test_the_start_waits_for_what_a_take_needs(process, tmp_path, monkeypatch):
    monkeypatch.setenv("DIA_CACHE", str(tmp_path))
    assert list(Precompilation("auto").progress()) == [(0, 4), (1, 4), (2, 4), (3, 4)]
    assert process[0][-1] in precompile.FORMATS


def test_a_later_start_compiles_nothing(process, tmp_path, monkeypatch):
    monkeypatch.setenv("DIA_CACHE", str(tmp_path))
    first = Precompilation("int8")
    precompile._marker("int8").touch()
    later = Precompilation("int8")
    assert len(process) == 1 and first._process is not None
    assert list(later.progress()) == []
    later.close()
