"""The benchmark's figures: they follow from each other and from what was measured."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from dia_demo.services.bench.report import BenchReport, FailedRun, finish_run, pair_ratios, summary
from dia_demo.services.measurements.types import CodecResult, PrecisionQuality, QualityResult
from dia_demo.untrusted import parse_as
from tests.helpers.stand_ins.bench_stubs import CODEC, TINY, hardware_result, run_result


def test_figures_follow_from_what_was_measured():
    run = finish_run(run_result(), 50.0)
    assert run.gb_per_step == 4.0 and run.limit_ms == pytest.approx(80.0)
    assert run.achieved == pytest.approx(run.limit_ms / run.ms_per_step)
    # Two utterances of a fiftieth of a second each in a tenth of a second.
    assert run.realtime_tokens == pytest.approx(0.4)
    assert run.realtime_whole == pytest.approx(1 / (1 / 0.4 + 1 / 4))
    assert run.take_seconds == pytest.approx(515 * 0.1 + 2 * 10 / 4)
    assert finish_run(run_result(), None).achieved is None


def test_the_limit_is_of_the_best_bandwidth_seen():
    """A neighbour of the machine may slow one measurement: no limit may flatter the program."""
    runs = run_result(), run_result(read_gb_s_then=80.0)
    report = BenchReport(TINY, 1, hardware=hardware_result(), runs=runs)
    assert report.read_gb_s == 80.0
    assert [run.limit_ms for run in report.finished_runs()] == [50.0, 50.0]


def test_ratios_are_of_one_precision():
    one, two = run_result(rows=1), run_result(ms_per_step=120.0)
    other = run_result(precision="int8")
    assert pair_ratios([one, two, other]) == {"float32": {"2": pytest.approx(1.2)}}


def test_the_meaning_begins_with_what_auto_takes():
    slow = run_result(rows=1)
    fast = run_result(rows=1, precision="bfloat16", ms_per_step=50.0)
    said = summary(BenchReport(TINY, 1, "float32", hardware=hardware_result(), runs=(slow, fast)))
    assert "about 54 s with float32, which auto chooses; 28 s with bfloat16." in said
    assert "first audio is ready after 2.0 s" in said and "faster than playback" not in said
    said = summary(BenchReport(TINY, 1, "int8", hardware=hardware_result(), runs=(slow, fast)))
    assert "about 28 s with bfloat16; 54 s with float32." in said
    assert "the time of a take is unknown" in summary(BenchReport(TINY, 1))


TOP = (
    "read_gb_s gflops serial_proxy codec runs pair_ratio quality model random_weights steps "
    "text_bytes threads automatic machine failures"
)
PROXY = "samples_per_second of_16khz gb_s of_80_gb_s gflops peak_gflops efficiency how"
CODEC_KEYS = (
    "load_seconds precision form reason source prepare_seconds audio_seconds realtime_whole "
    "realtime_streamed streamed_over_whole peak_rss_bytes realtime_float32"
)
RUN = (
    "precision rows ms_per_step gb_per_step limit_ms achieved realtime_tokens realtime_codec "
    "realtime_whole first_audio_seconds load_seconds peak_rss_bytes kernels frames_per_second "
    "threads reason max_delay frames_per_step start_seconds load_codec_seconds "
    "load_peak_rss_bytes warm_up_seconds "
    "ms_per_step_fast_quartile step_bytes read_gb_s_then achieved_gb_s take_seconds "
    "realtime_limit achieved_then"
)
FAILED = (
    "precision rows ms_per_step gb_per_step limit_ms achieved realtime_tokens realtime_codec "
    "realtime_whole first_audio_seconds load_seconds peak_rss_bytes kernels start_seconds error"
)
MACHINE = "cpu cores simd fast_bfloat16 memory_bytes free_bytes system"


def test_the_json_has_the_keys_it_always_had():
    """`bench --json` is read by other programs: the names, and their order, are a contract."""
    precisions = {"float32": {"kl": [0.0], "kl_mean": 0.0, "top1": [1.0], "top1_mean": 1.0}}
    precisions |= {"int8": {"error": "too slow"}}
    quality = {"reference": "float32", "takes": 2, "steps": 9, "precisions": precisions}
    codec = CODEC | {name: 1.0 for name in CODEC_KEYS.split() if name not in CODEC}
    report = BenchReport(
        TINY,
        1,
        hardware=hardware_result(),
        codec=CodecResult(**codec),
        runs=(run_result(), FailedRun("int8", 1, "killed", {"start_seconds": 2.0})),
        quality=parse_as(QualityResult, quality),
    )
    found = json.loads(json.dumps(report.to_json()))
    assert " ".join(found) == TOP
    assert " ".join(found["serial_proxy"]) == PROXY
    assert " ".join(found["codec"]) == CODEC_KEYS
    assert [" ".join(run) for run in found["runs"]] == [RUN, FAILED]
    assert found["runs"][1]["ms_per_step"] is None and found["runs"][1]["start_seconds"] == 2.0
    assert found["quality"] == quality | {"word_error_note": None}
    assert " ".join(found["machine"]) == MACHINE


def test_what_is_not_measured_yet_is_not_in_the_json():
    """Of a codec that failed halfway; None stands for float32 that was measured already."""
    begun = CodecResult(1.0, "float32", "plain", "fastest", "nano", realtime_whole=4.0)
    assert begun.to_json().keys() == set(CODEC_KEYS.split()[:5]) | {"realtime_whole"}
    finished = replace(begun, complete=True)
    assert finished.to_json()["realtime_float32"] is None
    empty = BenchReport(TINY, 1).to_json()
    assert [empty[name] for name in ("read_gb_s", "gflops", "codec", "quality")] == [None] * 4


@pytest.mark.parametrize(("note", "keys"), [(None, 4), ("not installed", 5)])
def test_a_word_error_that_could_not_be_measured_is_null(note, keys):
    quality = QualityResult("float32", 1, 1, {"int8": PrecisionQuality((0.0,), 0.0)}, note)
    assert len(quality.to_json()["precisions"]["int8"]) == keys
