"""The last benchmark, kept for the page: whole, of this machine, or none."""

from __future__ import annotations

import json
import threading
from dataclasses import replace
from datetime import date
from functools import partial

import pytest

from dia_demo.services.bench import runner
from dia_demo.services.bench.last_report import keep_report, last_report
from dia_demo.services.bench.report import BenchReport, FailedRun
from dia_demo.services.measurements.types import CodecResult, PrecisionQuality, QualityResult
from dia_demo.services.settings import Settings
from dia_demo.services.synthesis import Synthesis
from dia_demo.task import result_of
from tests.helpers.models.known import DIA_NAME
from tests.helpers.stand_ins.bench_stubs import (
    CODEC,
    HARDWARE,
    RAW,
    TINY,
    fake_child,
    hardware_result,
    run_result,
)

REPORT = BenchReport(
    TINY,
    1,
    "float32",
    hardware=hardware_result(),
    codec=CodecResult(**CODEC),
    runs=(run_result(rows=1), FailedRun("int8", 1, "killed", {"load_seconds": 2.0})),
    quality=QualityResult("float32", 2, 9, {"int8": PrecisionQuality((0.5,), 0.5)}),
    failures={"The codec": "no"},
)


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("DIA_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_a_report_comes_back_as_it_was():
    keep_report(REPORT)
    report, day = last_report()
    assert report == REPORT and day == date.today()


def test_the_last_report_counts():
    keep_report(REPORT)
    keep_report(replace(REPORT, threads=2))
    assert last_report()[0].threads == 2


def test_there_is_none_at_first():
    assert last_report() is None


def test_a_report_that_cannot_be_right_counts_for_nothing(cache):
    keep_report(REPORT)
    file = cache / "benchmark.json"
    text = file.read_text()
    raw = json.loads(text)
    run = raw["report"]["runs"][0]
    faults = [
        "",
        "[]",
        text[: len(text) // 2],
        json.dumps(raw | {"version": 0}),
        json.dumps(raw | {"day": "yesterday"}),
        json.dumps(raw | {"machine": raw["machine"] | {"cpu": "another"}}),
        json.dumps(raw | {"report": raw["report"] | {"runs": [run | {"ms_per_step": "fast"}]}}),
        json.dumps(raw | {"report": raw["report"] | {"runs": [run | {"realtime_codec": 0}]}}),
        json.dumps(raw | {"report": {}}),
    ]
    for fault in faults:
        file.write_text(fault)
        assert last_report() is None, fault


def test_a_folder_that_cannot_be_made_keeps_none(cache):
    cache.write_text("a file in the folder's place")
    keep_report(REPORT)
    assert last_report() is None


def test_a_benchmark_is_kept_and_learnt_from(monkeypatch):
    plan = replace(TINY, random="dia-1.6b", precisions=("int8",), threads=1)
    child = fake_child(hardware=HARDWARE, codec=CODEC, run=RAW | {"rows": 1})
    monkeypatch.setattr(runner, "measure", partial(runner.measure, worker=child))
    synthesis = Synthesis(Settings())
    result_of(runner.bench(synthesis, plan, threading.Event()))
    assert last_report()[0].plan == plan
    pace = synthesis.speed.pace(synthesis.models[DIA_NAME], plan.runtime("int8"), 10.0)
    assert pace.measured and pace.per_frame == 0.1
