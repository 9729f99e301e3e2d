"""What is compiled beside the start of the program is what a take calls."""

from __future__ import annotations

import subprocess
import sys

import psutil
import pytest
import torch

from dia_demo.codec import snake
from dia_demo.engine import sampling
from dia_demo.kernels import jit, precompile
from dia_demo.kernels.attention import attend_function
from dia_demo.kernels.llvm_simd import dot_lanes
from dia_demo.kernels.matmul.linear import block_function
from dia_demo.kernels.packing import INT8
from dia_demo.kernels.precompile import Precompilation
from dia_demo.model.compiled_step import ManyRows
from dia_demo.model.packed_linear import PackedLinear


def test_a_take_compiles_nothing_that_was_not_precompiled():
    for function in (attend_function, block_function):  # Other tests may have compiled more.
        function.cache_clear()
    wanted = precompile.kernels("int8")
    for compile_kernel in wanted:
        compile_kernel()
    called_by_address = len(jit._callbacks)
    linear = PackedLinear.from_weight(torch.ones(64, 64), "int8")
    ManyRows(1, bool(dot_lanes(INT8)))(linear, torch.ones(2, 64))
    attend_function(True)
    sampling.check_sampler()
    assert snake.snake_kind() == "compiled"
    assert len(jit._callbacks) == called_by_address
    kernels = [step.args[0] for step in wanted if step.func is precompile._compile]
    assert [len(kernel.signatures) for kernel in kernels] == [1] * 8


@pytest.fixture
def process(monkeypatch):
    """Stands in for the process: what was started, and what it prints."""
    started = []

    class Process:
        def __init__(self, command, **options):
            started.append(command)
            self.stdout = iter(["4\n", *4 * ["done\n"]])

    monkeypatch.setattr(precompile.subprocess, "Popen", Process)
    return started


def test_the_start_waits_for_what_a_take_needs(process, tmp_path, monkeypatch):
    monkeypatch.setenv("DIA_CACHE", str(tmp_path))
    assert list(Precompilation("auto").progress()) == [(0, 4), (1, 4), (2, 4), (3, 4)]
    assert process[0][-1] in precompile.FORMATS


def test_the_start_goes_on_where_the_process_ends_early(process, tmp_path, monkeypatch):
    monkeypatch.setenv("DIA_CACHE", str(tmp_path))
    for lines, progress in ((["4\n", "done\n"], [(0, 4), (1, 4)]), ([], [])):
        precompilation = Precompilation("int8")
        precompilation._process.stdout = iter(lines)
        assert list(precompilation.progress()) == progress


def test_a_later_start_compiles_nothing(process, tmp_path, monkeypatch):
    monkeypatch.setenv("DIA_CACHE", str(tmp_path))
    first = Precompilation("int8")
    precompile._marker("int8").touch()
    later = Precompilation("int8")
    assert len(process) == 1 and first._process is not None
    assert list(later.progress()) == []
    later.close()


def test_the_end_does_not_wait_for_the_second_process(tmp_path, monkeypatch):
    monkeypatch.setenv("DIA_CACHE", str(tmp_path))
    waiting = [sys.executable, "-c", "import time; time.sleep(100)"]
    start = f"import subprocess, time; p = subprocess.Popen({waiting}); print(p.pid, flush=True)"
    both = [sys.executable, "-c", f"{start}; time.sleep(100)"]
    start_process = subprocess.Popen
    monkeypatch.setattr(subprocess, "Popen", lambda _, **options: start_process(both, **options))
    precompilation = Precompilation("int8")
    second = psutil.Process(int(precompilation._process.stdout.readline()))
    precompilation.close()
    assert precompilation._process.returncode != 0 and second.is_running()
    second.kill()
