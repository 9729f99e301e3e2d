"""The benchmark: plans refused before anything runs, parts that fail alone, a stop at once."""

from __future__ import annotations

import threading

import pytest

from dia_demo.config import ONE_PART, ModelConfig, RuntimeConfig
from dia_demo.engine.loading.placement import place_on_cpu
from dia_demo.errors import InputError, RunError
from dia_demo.machine import system
from dia_demo.machine.processor import multiplies_bfloat16
from dia_demo.model import autotune
from dia_demo.services.bench import runner
from dia_demo.services.bench.plan import BenchPlan
from dia_demo.services.bench.report import BenchReport
from dia_demo.services.measurements.types import HardwareResult, Job, JobKind
from dia_demo.services.worker.messages import JobProgress
from dia_demo.task import Task
from tests.helpers.models.known import info_of
from tests.helpers.stand_ins.bench_stubs import CODEC, HARDWARE, RAW, TINY, fake_child

pytestmark = pytest.mark.processor


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    """What is measured here must not decide for this machine's owner."""
    monkeypatch.setattr(autotune, "cache_folder", lambda: tmp_path)


def drain(generator) -> tuple[list, BenchReport]:
    task = Task(generator)
    return list(task), task.result


@pytest.mark.parametrize(
    ("changes", "words_said"),
    [
        ({"precisions": ("int2",)}, "float32"),
        ({"precisions": ()}, "at least one"),
        ({"rows": (0,)}, "from 1 to 16"),
        ({"steps": 0}, "steps"),
        ({"steps": 600}, "steps must be a whole number from 1 to"),
        ({"text_bytes": 2000}, "text-bytes"),
        ({"random": "huge"}, "dia-1.6b"),
        ({"quality": True}, "quality of random weights"),
        ({"random": None, "model": "nobody/nothing"}, "generate a take with the model first.$"),
        ({"random": None, "model": "nari-labs/Dia2-1B"}, "Or use --random-weights dia2-1b"),
        ({"threads": 1000}, "threads must be from 1 to"),
    ],
)
def test_an_impossible_plan_is_refused_before_anything_runs(changes, words_said):
    plan = BenchPlan(**({"random": "tiny", "precisions": ("float32",)} | changes))
    with pytest.raises(InputError, match=words_said):
        next(runner.measure(plan, threading.Event(), fake_child()))


def test_too_little_memory_is_said_before_anything_runs(monkeypatch):
    monkeypatch.setattr(system, "memory_bytes", lambda: 10**9)
    with pytest.raises(InputError, match=r"needs about \d\.\d GB, and this machine has 1\.0 GB"):
        next(runner.measure(BenchPlan(random="dia-1.6b"), threading.Event(), fake_child()))


def test_auto_chooses_by_a_finished_benchmark(monkeypatch):
    """Of the runs of one utterance; the report says so at once."""
    monkeypatch.setattr(system, "memory_bytes", lambda: 64 * 10**9)
    milliseconds = {"float32": 240.0, "bfloat16": 48.0, "int8": 51.0, "int4": 30.0}

    def child(job, cancel):
        yield from ()
        if job.kind != JobKind.RUN:
            return HARDWARE if job.kind == JobKind.HARDWARE else CODEC
        own = {"precision": job.precision, "rows": job.rows}
        return RAW | own | {"ms_per_step": milliseconds[job.precision] / job.rows}

    plan = BenchPlan(random="dia-1.6b", rows=(1, 8), threads=1)
    _, report = drain(runner.measure(plan, threading.Event(), child))
    assert report.automatic == "bfloat16"
    placed = place_on_cpu(RuntimeConfig(threads=1), info_of(ModelConfig()))
    assert placed.precision == "bfloat16" and "48 ms" in placed.reason


def test_a_precision_that_does_not_fit_does_not_stop_the_others(monkeypatch):
    monkeypatch.setattr(system, "memory_bytes", lambda: 6 * 10**9)
    answers = fake_child(hardware=HARDWARE, codec=CODEC, run=RAW)
    _, report = drain(runner.measure(BenchPlan(random="dia-1.6b"), threading.Event(), answers))
    runs = report.to_json()["runs"]
    assert [run["precision"] for run in runs] == list(ONE_PART)
    assert "Not enough memory" in runs[0]["error"] and runs[0]["ms_per_step"] is None
    assert all(run["achieved"] > 0 for run in runs[1:])


def test_a_part_that_fails_leaves_the_others():
    gone = RunError("its process was killed, most likely because memory ran out")
    answers = fake_child(hardware=HARDWARE, codec=gone, run=RAW)
    events, report = drain(runner.measure(TINY, threading.Event(), answers))
    assert report.failures == {"The codec": str(gone)}
    assert report.to_json()["codec"] is None and report.to_json()["runs"][0]["achieved"] > 0
    fractions = [event.fraction for event in events]
    assert fractions == sorted(fractions) and 0 <= fractions[0] and fractions[-1] <= 1
    answers = fake_child(hardware=HARDWARE, codec=CODEC, run=gone)
    _, report = drain(runner.measure(TINY, threading.Event(), answers))
    (run,) = report.to_json()["runs"]
    assert run["error"] == str(gone) and run["rows"] == 1 and run["ms_per_step"] is None


def test_a_part_that_fails_keeps_the_figures_it_had():
    gone = RunError("it reported nothing for 300 s and was stopped")
    partial = {"read_gb_s": 50.0, "read_by": "numba", "gflops": {"float32": 100.0}}
    answers = fake_child(hardware=[partial, gone], codec=CODEC, run=[{"load_seconds": 4.0}, gone])
    events, report = drain(runner.measure(TINY, threading.Event(), answers))
    found = report.to_json()
    assert (found["read_gb_s"], found["gflops"]) == (50.0, {"float32": 100.0})
    assert report.failures == {"The machine": str(gone)}
    (run,) = found["runs"]
    assert (run["load_seconds"], run["error"]) == (4.0, str(gone))
    known = HardwareResult(**partial)
    assert any(e.report.hardware == known and not e.report.failures for e in events)


@pytest.mark.long
def test_a_measurement_runs_in_a_process_of_its_own():
    job = Job(JobKind.HARDWARE, threads=1, available_bytes=2**28)
    told, found = drain(runner.run_measurement(job, threading.Event()))
    fractions = [step.fraction for step in told]
    assert told and fractions == sorted(fractions)
    assert 0 < found["read_gb_s"] < 10_000
    gflops = found["gflops"]
    assert gflops.keys() == {"float32", "bfloat16", "float32_one_core"} and gflops["float32"] > 0
    assert (gflops["bfloat16"] is not None) == multiplies_bfloat16()
    # Each figure is reported as soon as it is known.
    known = [set().union(*(step.results for step in told[: n + 1])) for n in range(len(told))]
    assert known[0] == set() and {"read_gb_s", "gflops"} <= known[-1]


def test_a_long_activity_is_measured_in_seconds():
    def child(job, cancel):
        yield JobProgress("Starting", 0.0)
        yield JobProgress("Starting", 0.0, seconds=3)
        answers = {"hardware": HARDWARE, "codec": CODEC, "run": RAW}
        return answers[job.kind]

    events, _ = drain(runner.measure(TINY, threading.Event(), child))
    doing = [event.doing for event in events]
    assert doing[:3] == ["The machine", "The machine: Starting", "The machine: Starting, 3 s"]
