"""The Machine tab without a browser: what is planned, what is drawn, what is said."""

from __future__ import annotations

import re
from dataclasses import replace
from types import SimpleNamespace

import pytest

from dia_demo.config import ONE_PART, RuntimeConfig
from dia_demo.engine.events import Waiting
from dia_demo.engine.loading.placement import place_on_cpu
from dia_demo.families import resolve
from dia_demo.families.dia2.profiles import DIA2_1B
from dia_demo.machine import system
from dia_demo.services.bench import runner
from dia_demo.services.bench.last_report import keep_report
from dia_demo.services.bench.plan import MEASURED, BenchPlan
from dia_demo.services.bench.report import BenchReport, FailedRun
from dia_demo.services.measurements.types import CodecResult, FrameSplit, JobKind, RunResult
from dia_demo.services.settings import Settings
from dia_demo.services.synthesis import Synthesis
from dia_demo.services.worker.messages import JobProgress
from dia_demo.ui.machine import html as machine_html
from dia_demo.ui.machine.benchmark import (
    CHOSEN,
    FULL_SIZES,
    MachineHandlers,
    MachinePanel,
    bench_status,
    full_size_info,
)
from tests.helpers.models.known import DIA_NAME
from tests.helpers.stand_ins.bench_stubs import (
    CODEC,
    HARDWARE,
    QUICK,
    RAW,
    fake_child,
    hardware_result,
    run_result,
)

DIA = BenchPlan(random="dia-1.6b", threads=1)
REQUEST = SimpleNamespace(session_hash="one")


@pytest.fixture
def handlers(tmp_path, monkeypatch):
    monkeypatch.setenv("DIA_CACHE", str(tmp_path))
    panel = MachinePanel(*("what", "measure", "stop", "status", "report"))
    return MachineHandlers(Synthesis(Settings()), panel)


def report(*runs: RunResult | FailedRun) -> BenchReport:
    return BenchReport(DIA, 1, hardware=hardware_result(), codec=CodecResult(**CODEC), runs=runs)


def test_the_tab_begins_with_a_remark_on_torchs_build():
    assert "machine-remark" not in machine_html.intro("")
    assert "2.13.0 is a build for NVIDIA GPUs" in machine_html.intro(
        "2.13.0 is a build for NVIDIA GPUs"
    )


def test_what_is_chosen_is_planned(handlers):
    assert handlers.plan(CHOSEN, "nano") == BenchPlan(model="nano", threads=None)
    planned = [handlers.plan(size, "nano") for size in FULL_SIZES]
    assert [(plan.random, plan.steps) for plan in planned] == [("dia-1.6b", 24), ("dia2-1b", 60)]
    assert handlers.plan(CHOSEN, "nano").precisions == MEASURED


def test_a_model_that_was_never_fetched_is_measured_with_random_weights(handlers, monkeypatch):
    monkeypatch.setattr(resolve, "cached_config", lambda name: None)
    assert handlers.plan(CHOSEN, DIA_NAME).random == "dia-1.6b"
    assert handlers.plan(CHOSEN, DIA2_1B).random == "dia2-1b"
    assert handlers.plan(CHOSEN, "somebody/else").random is None


def test_bars_are_on_one_scale_with_the_limit_behind():
    runs = run_result(rows=1), run_result(precision="int8")
    html = machine_html.report_html(report(*runs), finished=True)
    # 515 steps of a tenth of a second and 2.5 s of decoding for 10 s of sound; at the limit of
    # 50 GB/s 0.08 s a step. 1x is the scale.
    assert 'aria-label="float32: 54 s, 0.19x realtime"' in html
    assert f'class="reached" style="width: {100 * 10 / 54:.2f}%"' in html
    assert f'class="possible" style="width: {100 * 10 / 43.7:.2f}%"' in html
    assert 'aria-label="int8, 2 takes at once: 56 s, 0.35x realtime"' in html


def test_a_model_in_the_cache_has_no_limit_drawn():
    html = machine_html.report_html(report(run_result(step_bytes=10**6)), finished=False)
    assert 'class="possible"' not in html and "possible with this memory" not in html


def test_the_longest_bar_is_the_shortest_time_of_the_sentence():
    """A step of int4 is the fastest here, but its codec is so slow that a take is not."""
    runs = (
        run_result(rows=1, precision="float32", ms_per_step=20.0, realtime_codec=40.0),
        run_result(rows=1, precision="int4", ms_per_step=10.0, realtime_codec=0.5),
    )
    html = machine_html.report_html(report(*runs), finished=True)
    assert "takes about 11 s with float32; 25 s with int4" in html
    float32, int4 = map(float, re.findall(r'class="reached" style="width: ([\d.]+)%', html))
    assert float32 > int4


def test_the_sentence_about_dia_comes_first():
    html = machine_html.report_html(report(run_result(rows=1)), True, "Dia-1.6B takes a while.")
    assert html.index("Dia-1.6B takes a while.") < html.index("a 10-second take of")


def test_curiosities_are_folded():
    html = machine_html.report_html(report(run_result()), finished=True)
    shown, folded = html.split("<details")
    assert "<details open" not in html
    for text in ("GB/s", "GFLOP/s", "100.0 ms", "Threads", "80% of the memory’s limit"):
        assert text in folded and text not in shown


def test_the_parts_of_a_frame_are_among_the_details():
    split = FrameSplit(30.0, 20.0, 1.0, 2.0, 10**9, 10**8, 10**8, 10.0**7)
    html = machine_html.report_html(report(run_result(rows=1, split=split)), finished=True)
    folded = html.split("<details")[1]
    assert "Parts, float32" in folded and "temporal 30.0 ms" in folded
    assert "Parts," not in machine_html.report_html(report(run_result(rows=1)), finished=True)


def test_the_reason_for_a_failed_run_is_escaped():
    evil = '<img src=x onerror="alert(1)">'
    html = machine_html.report_html(report(run_result(), FailedRun("int8", 1, evil)), finished=True)
    assert "Not measured" in html and "<img" not in html
    assert machine_html.NOTHING_YET in machine_html.report_html(BenchReport(DIA, 1), False)


def test_the_full_size_says_why_not(monkeypatch):
    assert "several minutes" in full_size_info() and "not possible" not in full_size_info()
    monkeypatch.setattr(system, "memory_bytes", lambda: 10**9)
    for title in ("Dia-1.6B", "Dia2-1B"):
        assert f"{title} is not possible on this machine: it needs" in full_size_info()
    assert "this machine has 1.0 GB" in full_size_info()


def test_a_place_in_the_queue_is_told():
    assert "Place 1 in the queue" in bench_status(Waiting(1)).detail


def measured(handlers, monkeypatch, child) -> list[dict]:
    def run(synthesis, plan, cancel):
        return runner.measure(plan, cancel, child)

    monkeypatch.setattr("dia_demo.ui.machine.benchmark.bench", run)
    return list(handlers.measure(REQUEST, CHOSEN, "nano"))


def test_a_measurement_ends_with_what_it_means(handlers, monkeypatch):
    updates = measured(
        handlers, monkeypatch, fake_child(hardware=HARDWARE, codec=CODEC, run=RAW | {"rows": 1})
    )
    assert updates[0]["measure"]["interactive"] is False
    pictures = [update["report"] for update in updates if "report" in update]
    assert pictures[-1].count("run-bar") == len(ONE_PART)
    assert "takes about" in pictures[-1] and "takes about" not in pictures[-2]
    assert 'data-state="done"' in updates[-1]["status"]
    assert handlers.run.idle()["measure"]["interactive"] is True


def test_the_last_report_is_there_after_a_restart(handlers, monkeypatch):
    def bench(synthesis, plan, cancel):
        yield from ()
        keep_report(replace(report(run_result(rows=1)), plan=plan))
        return replace(report(run_result(rows=1)), plan=plan)

    assert machine_html.NOTHING_YET in handlers.last_report()
    monkeypatch.setattr("dia_demo.ui.machine.benchmark.bench", bench)
    *_, done = handlers.measure(REQUEST, CHOSEN, "nano")
    again = MachineHandlers(Synthesis(Settings()), handlers.panel).last_report()
    assert "a 10-second take of nano takes about 54 s" in again and "nano, measured on " in again
    assert "run-bar" in again and "run-bar" in done["report"]


def test_dia_is_spoken_of_before_any_benchmark(handlers):
    handlers.synthesis.speed.learn_quick(QUICK)
    html = handlers.last_report()
    assert re.search(r"Dia-1\.6B takes about \d+ s for 10 seconds of speech", html)
    assert "(estimated)" in html and machine_html.NOTHING_YET in html


def test_dia2_is_spoken_of_beside_dia_once_it_was_measured(handlers):
    handlers.synthesis.speed.learn_quick(QUICK)
    assert "Dia2-1B" not in handlers.last_report()
    placed = place_on_cpu(RuntimeConfig(DIA2_1B), resolve.assumed_info(DIA2_1B))
    run = run_result(precision=placed.precision, threads=placed.threads, rows=1)
    handlers.synthesis.speed.learn_run(DIA2_1B, run)
    html = handlers.last_report()
    assert re.search(r"Dia-1\.6B takes .*\(estimated\)\. Dia2-1B takes .*\(measured\)\.", html)
    keep_report(replace(report(run), plan=BenchPlan(random="dia2-1b", threads=1)))
    assert "(measured)" not in handlers.last_report(), "the report itself is about it"


def test_a_benchmark_of_dia_speaks_of_dia_once(handlers):
    handlers.synthesis.speed.learn_quick(QUICK)
    keep_report(report(run_result(rows=1)))
    assert handlers.last_report().count("machine-meaning") == 1


def test_what_cannot_be_measured_is_explained(handlers, monkeypatch):
    monkeypatch.setattr(system, "memory_bytes", lambda: 10**6)
    updates = measured(handlers, monkeypatch, fake_child())
    assert 'data-state="failed"' in updates[-1]["status"]
    assert "Not enough memory" in updates[-1]["status"]


def test_a_stop_keeps_what_was_measured(handlers, monkeypatch):
    def child(job, cancel):
        yield JobProgress("working", 0.5)
        if job.kind != JobKind.HARDWARE:
            handlers.run.stop(REQUEST)
        if cancel.is_set():
            raise runner.JobStopped
        return HARDWARE

    handlers.synthesis.speed.learn_quick(QUICK)
    updates = measured(handlers, monkeypatch, child)
    assert 'data-state="stopped"' in updates[-1]["status"]
    *_, last = (update["report"] for update in updates if "report" in update)
    assert "GB/s" in last and "Dia-1.6B takes" in last, "and the sentence about Dia stays"
    assert handlers.run.idle()["stop"]["interactive"] is False
