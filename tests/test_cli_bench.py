"""The command `bench`: JSON or tables, and bad input in one line."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest
from bench_stubs import CODEC, HARDWARE, RAW, fake_child

from dia_demo import cli_bench
from dia_demo.cli import main
from dia_demo.config import PRECISIONS
from dia_demo.services.bench import bench
from dia_demo.services.bench.child import Stopped
from dia_demo.services.bench.plan import MEASURED
from dia_demo.services.bench.report import RUN_KEYS


def test_the_command_gives_json_and_a_table(capsys, monkeypatch):
    """With the real processes; they read as little memory as where hardly any is free."""
    monkeypatch.setattr(bench, "available_bytes", lambda: 2**28)
    tiny = "bench --random-weights tiny --precision float32 --rows 1,2 --steps 4".split()
    assert main([*tiny, "--threads", "1", "--text-bytes", "9", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert {"read_gb_s", "gflops", "serial_proxy", "codec", "runs"} <= found.keys()
    assert [(run["precision"], run["rows"]) for run in found["runs"]] == [
        ("float32", 1),
        ("float32", 2),
    ]
    for run in found["runs"]:
        assert set(RUN_KEYS) <= run.keys() and 0 < run["limit_ms"]
        limit = 1000 * run["gb_per_step"] / found["read_gb_s"]
        assert run["limit_ms"] == pytest.approx(limit)


def test_the_command_prints_what_it_means(capsys, monkeypatch):
    answers = fake_child(hardware=HARDWARE, codec=CODEC, run=RAW, quality=None)
    monkeypatch.setattr(
        cli_bench, "measure", lambda plan, cancel: bench.measure(plan, cancel, answers)
    )
    assert main(["bench", "--random-weights", "tiny", "--precision", "float32"]) == 0
    out = capsys.readouterr().out
    assert "ms/step" in out and "100.0" in out and "GB/s" in out and "takes about" in out


@pytest.mark.parametrize(
    "arguments",
    [
        ["--rows", "two"],
        ["--precision", "int2"],
        ["--model", "nano", "--random-weights", "tiny"],
        ["--random-weights", "tiny", "--quality"],
        ["--model", "no such model"],
    ],
)
def test_bad_input_is_one_line(arguments, capsys):
    assert main(["bench", *arguments]) == 2
    said = capsys.readouterr().err
    assert said.startswith("error: ") and said.count("\n") == 1


def test_a_stopped_benchmark_reports_nothing_and_says_so(capsys, monkeypatch):
    def stopped(plan, cancel):
        yield SimpleNamespace(fraction=0.5, doing="working")
        raise Stopped

    monkeypatch.setattr(cli_bench, "measure", stopped)
    assert main(["bench", "--random-weights", "tiny"]) == 1
    told = capsys.readouterr()
    assert told.out == "" and "stopped: nothing is reported" in told.err


def test_every_precision_is_measured_unless_one_is_asked_for():
    assert ("auto", *MEASURED) == PRECISIONS
