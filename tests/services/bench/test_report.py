"""The benchmark's figures: they follow from each other and from what was measured."""

from __future__ import annotations

import pytest

from dia_demo.services.bench.report import RUN_KEYS, BenchReport, finish_run, meaning, pair_ratios
from tests.helpers.bench_stubs import HARDWARE, RAW, TINY


def test_figures_follow_from_what_was_measured():
    run = finish_run(RAW, 50.0)
    assert set(RUN_KEYS) <= set(run)
    assert run["gb_per_step"] == 4.0 and run["limit_ms"] == pytest.approx(80.0)
    assert run["achieved"] == pytest.approx(run["limit_ms"] / run["ms_per_step"])
    # Two utterances of a fiftieth of a second each in a tenth of a second.
    assert run["realtime_tokens"] == pytest.approx(0.4)
    assert run["realtime_whole"] == pytest.approx(1 / (1 / 0.4 + 1 / 4))
    assert run["take_seconds"] == pytest.approx(515 * 0.1 + 2 * 10 / 4)
    assert finish_run(RAW, None)["achieved"] is None


def test_the_limit_is_of_the_best_bandwidth_seen():
    """A neighbour of the machine may slow one measurement: no limit may flatter the program."""
    faster = RAW | {"read_gb_s_then": 80.0}
    report = BenchReport(TINY, 1, hardware=HARDWARE, runs=(RAW, faster))
    assert report.read_gb_s == 80.0
    assert [run["limit_ms"] for run in report.finished_runs()] == [50.0, 50.0]


def test_ratios_are_of_one_precision():
    one, two, other = RAW | {"rows": 1}, RAW | {"ms_per_step": 120.0}, RAW | {"precision": "int8"}
    assert pair_ratios([one, two, other]) == {"float32": {"2": pytest.approx(1.2)}}


def test_the_meaning_begins_with_what_auto_takes():
    slow = RAW | {"rows": 1}
    fast = slow | {"precision": "bfloat16", "ms_per_step": 50.0}
    said = meaning(BenchReport(TINY, 1, "float32", hardware=HARDWARE, runs=(slow, fast)))
    assert "about 54 s with float32, which auto chooses; 28 s with bfloat16." in said
    assert "first sound comes after 2.0 s" in said and "faster than it plays" not in said
    said = meaning(BenchReport(TINY, 1, "int8", hardware=HARDWARE, runs=(slow, fast)))
    assert "about 28 s with bfloat16; 54 s with float32." in said
    assert "nothing can be said" in meaning(BenchReport(TINY, 1))
