"""The command `bench`: JSON or tables, and bad input in one line."""

from __future__ import annotations

import json

import pytest

from dia_demo.cli.commands import bench as cli_bench
from dia_demo.cli.main import main
from dia_demo.config import PRECISIONS
from dia_demo.model import autotune
from dia_demo.services.bench import runner
from dia_demo.services.bench.plan import MEASURED, BenchPlan
from dia_demo.services.bench.report import RUN_KEYS, BenchReport
from dia_demo.services.bench.runner import Measuring
from dia_demo.services.worker.worker import JobStopped
from dia_demo.ui.machine import html as machine_html
from tests.helpers.stand_ins.bench_stubs import CODEC, HARDWARE, RAW, fake_child, hardware_result

pytestmark = pytest.mark.processor


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    """What is measured here must not decide for this machine's owner."""
    monkeypatch.setattr(autotune, "cache_folder", lambda: tmp_path)


@pytest.mark.long
@pytest.mark.slow
def test_the_json_report_covers_every_run(capsys, monkeypatch):
    """With the real processes; they read as little memory as where hardly any is free."""
    monkeypatch.setattr(runner, "available_bytes", lambda: 2**28)
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
        cli_bench, "measure", lambda plan, cancel: runner.measure(plan, cancel, answers)
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


@pytest.mark.parametrize("as_json", [False, True])
def test_a_stopped_benchmark_reports_what_it_has(capsys, monkeypatch, as_json):
    def stopped(plan, cancel):
        yield Measuring("The codec", 0.5, BenchReport(plan, 1, hardware=hardware_result()))
        raise JobStopped

    monkeypatch.setattr(cli_bench, "measure", stopped)
    assert main(["bench", "--random-weights", "tiny", *(["--json"] if as_json else [])]) == 1
    told = capsys.readouterr()
    assert "stopped; what was measured until then is reported" in told.err
    if as_json:
        found = json.loads(told.out)
        assert (found["stopped"], found["read_gb_s"], found["runs"]) == (True, 50.0, [])
    else:
        assert "The machine reads 50.0 GB/s" in told.out


def test_a_benchmark_stopped_at_once_has_nothing_to_report(capsys, monkeypatch):
    def stopped(plan, cancel):
        raise JobStopped
        yield

    monkeypatch.setattr(cli_bench, "measure", stopped)
    assert main(["bench", "--random-weights", "tiny"]) == 1
    told = capsys.readouterr()
    assert told.out == "" and "stopped before anything was measured" in told.err


def test_results_are_printed_as_they_come(capsys, monkeypatch):
    """The machine's figures stand there while the first run is still measured, once."""
    seen = []

    def child(job, cancel):
        if job.kind == "run":
            seen.append(capsys.readouterr().out)
        yield from ()
        answers = {"hardware": HARDWARE, "codec": CODEC, "run": RAW}
        return answers[job.kind] | ({"rows": job.rows} if job.kind == "run" else {})

    monkeypatch.setattr(
        cli_bench, "measure", lambda plan, cancel: runner.measure(plan, cancel, child)
    )
    asked = ["bench", "--random-weights", "tiny", "--precision", "float32", "--rows", "1", "2"]
    assert main(asked) == 0
    assert "The machine reads 50.0 GB/s" in seen[0] and "The codec decodes at 4.00x" in seen[0]
    assert "float32, one utterance: 100.0 ms a step" in seen[1]
    assert "The machine reads" not in seen[1] + capsys.readouterr().out


def test_what_a_processor_has_no_instructions_for_is_not_measured(capsys, monkeypatch):
    rates = HARDWARE["gflops"] | {"bfloat16": None}
    answers = fake_child(hardware=HARDWARE | {"gflops": rates}, codec=CODEC, run=RAW)
    monkeypatch.setattr(
        cli_bench, "measure", lambda plan, cancel: runner.measure(plan, cancel, answers)
    )
    assert main(["bench", "--random-weights", "tiny", "--precision", "float32"]) == 0
    assert "with no bfloat16 instructions" in capsys.readouterr().out
    slow = hardware_result(gflops=rates)
    html = machine_html.report_html(BenchReport(BenchPlan(random="tiny"), 1, hardware=slow), False)
    assert "Matrix products, bfloat16" in html and machine_html.NO_INSTRUCTIONS in html


def test_every_precision_is_measured_unless_one_is_asked_for():
    assert ("auto", *MEASURED) == PRECISIONS
