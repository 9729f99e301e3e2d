"""The benchmark: figures that follow from each other, parts that fail alone, a stop at once."""

from __future__ import annotations

import json
import threading
import time

import numpy as np
import pytest
import torch
from checkpoints import SMALL, load, write_small

from dia_demo import machine
from dia_demo.cli import main
from dia_demo.config import PRECISIONS
from dia_demo.engine.memory import decoder_weights
from dia_demo.errors import InputError, RunError
from dia_demo.services.bench import bench, child, codec, hardware, quality, steps, words
from dia_demo.services.bench.child import Stopped, run_child
from dia_demo.services.bench.plan import MEASURED, Plan
from dia_demo.services.bench.report import RUN_KEYS, Report, finish_run, meaning, pair_ratios
from dia_demo.services.bench.subject import make_rows, step_bytes

TINY = Plan(random="tiny", precisions=("float32",), steps=4, text_bytes=9, threads=1)
HARDWARE = {
    "read_gb_s": 50.0,
    "gflops": {"float32": 100.0, "bfloat16": 400.0, "float32_one_core": 50.0},
    "serial_proxy": hardware.serial_proxy(50.0, samples=2),
}
CODEC = {"realtime_whole": 4.0, "realtime_streamed": 3.8, "precision": "float32", "form": "plain"}
RAW = {
    "precision": "float32",
    "rows": 2,
    "ms_per_step": 100.0,
    "ms_per_step_fast_quartile": 90.0,
    "step_bytes": 4_000_000_000,
    "frames_per_second": 50.0,
    "realtime_codec": 4.0,
    "first_audio_seconds": 2.0,
    "load_seconds": 5.0,
    "peak_rss_bytes": 7_000_000_000,
    "kernels": "plain",
    "max_delay": 15,
    "read_gb_s_then": 48.0,
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_small(tmp_path_factory.mktemp("bench") / "small", codec=True)


def fake_child(**answers):
    """Children that answer at once: by kind a result, or an error to raise."""

    def start(job, cancel):
        yield "working", 0.5
        answer = answers[job["kind"]]
        if isinstance(answer, Exception):
            raise answer
        return answer | {k: job[k] for k in ("precision", "rows") if k in job}

    return start


def drain(generator) -> tuple[list, Report]:
    events = []
    while True:
        try:
            events.append(next(generator))
        except StopIteration as stop:
            return events, stop.value


# The plan


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
        ({"quality": True}, "Random weights have no quality"),
        ({"random": None, "model": "nobody/nothing"}, "fetches nothing"),
        ({"threads": 1000}, "threads must be from 1 to"),
    ],
)
def test_an_impossible_plan_is_refused_before_anything_runs(changes, words_said, monkeypatch):
    plan = Plan(**({"random": "tiny", "precisions": ("float32",)} | changes))
    with pytest.raises(InputError, match=words_said):
        next(bench.measure(plan, threading.Event(), fake_child()))


def test_too_little_memory_is_said_before_anything_runs(monkeypatch):
    monkeypatch.setattr(machine, "memory_bytes", lambda: 10**9)
    with pytest.raises(InputError, match=r"needs about \d\.\d GB, and this machine grants 1\.0 GB"):
        next(bench.measure(Plan(random="dia-1.6b"), threading.Event(), fake_child()))


def test_what_does_not_fit_is_reported_and_the_rest_is_measured(monkeypatch):
    monkeypatch.setattr(machine, "memory_bytes", lambda: 6 * 10**9)
    answers = fake_child(hardware=HARDWARE, codec=CODEC, run=RAW)
    _, report = drain(bench.measure(Plan(random="dia-1.6b"), threading.Event(), answers))
    runs = report.to_dict()["runs"]
    assert [run["precision"] for run in runs] == list(MEASURED)
    assert "Not enough memory" in runs[0]["error"] and runs[0]["ms_per_step"] is None
    assert all(run["achieved"] > 0 for run in runs[1:])


# The figures


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
    report = Report(TINY, 1, hardware=HARDWARE, runs=(RAW, faster))
    assert report.read_gb_s == 80.0
    assert [run["limit_ms"] for run in report.finished_runs()] == [50.0, 50.0]


def test_ratios_are_of_one_precision():
    one, two, other = RAW | {"rows": 1}, RAW | {"ms_per_step": 120.0}, RAW | {"precision": "int8"}
    assert pair_ratios([one, two, other]) == {"float32": {"2": pytest.approx(1.2)}}


def test_the_meaning_begins_with_what_auto_takes():
    slow = RAW | {"rows": 1}
    fast = slow | {"precision": "bfloat16", "ms_per_step": 50.0}
    said = meaning(Report(TINY, 1, "float32", hardware=HARDWARE, runs=(slow, fast)))
    assert "about 54 s with float32, which auto chooses; 28 s with bfloat16." in said
    assert "first sound comes after 2.0 s" in said and "faster than it plays" not in said
    said = meaning(Report(TINY, 1, "int8", hardware=HARDWARE, runs=(slow, fast)))
    assert "about 28 s with bfloat16; 54 s with float32." in said
    assert "nothing can be said" in meaning(Report(TINY, 1))


# Running


def test_a_part_that_fails_leaves_the_others(monkeypatch):
    gone = RunError("its process was killed, most likely because the memory ran out")
    answers = fake_child(hardware=HARDWARE, codec=gone, run=RAW)
    events, report = drain(bench.measure(TINY, threading.Event(), answers))
    assert report.failures == {"The codec": str(gone)}
    assert report.to_dict()["codec"] is None and report.to_dict()["runs"][0]["achieved"] > 0
    fractions = [event.fraction for event in events]
    assert fractions == sorted(fractions) and 0 <= fractions[0] and fractions[-1] <= 1
    answers = fake_child(hardware=HARDWARE, codec=CODEC, run=gone)
    _, report = drain(bench.measure(TINY, threading.Event(), answers))
    (run,) = report.to_dict()["runs"]
    assert run["error"] == str(gone) and run["rows"] == 1 and run["ms_per_step"] is None


def test_a_child_measures_in_a_process_of_its_own():
    job = {"kind": "hardware", "threads": 1, "available": 2**28}
    told, found = drain(run_child(job, threading.Event()))
    assert [fraction for _, fraction in told] == sorted(fraction for _, fraction in told)
    assert told and 0 < found["read_gb_s"] < 10_000
    assert found["gflops"].keys() == {"float32", "bfloat16", "float32_one_core"}
    with pytest.raises(RunError, match="KeyError"):
        drain(run_child({"kind": "nonsense"}, threading.Event()))


def test_how_a_child_died_is_said(monkeypatch, tmp_path):
    for code, said in (("os.kill(os.getpid(), 9)", "memory ran out"), ("sys.exit('no')", "no")):
        (tmp_path / "dying.py").write_text(f"import os, sys\nsys.stdin.readline()\n{code}\n")
        monkeypatch.setenv("PYTHONPATH", str(tmp_path))
        monkeypatch.setattr(child, "__name__", "dying")
        with pytest.raises(RunError, match=said):
            drain(run_child({}, threading.Event()))


def test_a_stop_ends_the_child_at_once(monkeypatch, tmp_path):
    (tmp_path / "endless.py").write_text("import time\ntime.sleep(600)\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(child, "__name__", "endless")
    cancel = threading.Event()
    threading.Timer(0.5, cancel.set).start()
    began = time.monotonic()
    with pytest.raises(Stopped):
        drain(run_child({}, cancel))
    assert time.monotonic() - began < 60
    with pytest.raises(RunError, match="said nothing"):
        drain(run_child({}, threading.Event(), silence_limit=0.3))


# What is measured


def test_the_serial_products_are_the_same_by_both_routes():
    random = np.random.default_rng(0)
    shape = (hardware.LAYERS, hardware.CHANNELS, hardware.CHANNELS)
    matrices = (random.standard_normal(shape) / hardware.CHANNELS**0.5).astype(np.float32)
    x = random.standard_normal(hardware.CHANNELS).astype(np.float32)
    expected = x.astype(np.float64)
    for matrix in matrices:
        expected = expected @ matrix
    chain = hardware._numba_chain()
    if chain is None:
        pytest.skip("numba is not installed")
    found = x.copy()
    chain(matrices, found, 1)
    assert np.allclose(found, expected, rtol=1e-3, atol=1e-4 * np.abs(expected).max())


def test_less_memory_is_read_where_less_is_free():
    sizes = [hardware.buffer_bytes(free) for free in (None, 2**34, 3 * 2**30, 2**30)]
    assert sizes == [2**31, 2**31, 2**30, 2**28]


def test_a_step_reads_its_weights_its_codes_and_what_is_cached(folder):
    model = load(folder)
    d, positions, text, rows = SMALL.decoder, 20, 7, 3
    kept = (
        2
        * d.num_layers
        * (d.num_kv_heads * d.head_dim * positions + d.cross_num_kv_heads * d.cross_head_dim * text)
    )
    looked_up = d.num_channels * d.hidden_size
    norms = sum(p.numel() for name, p in model.decoder.named_parameters() if "norm" in name)
    expected = decoder_weights(SMALL) + norms + 2 * rows * (kept + looked_up)
    found = step_bytes(model, rows, text, positions)
    assert found == pytest.approx(4 * expected, rel=0.1), "scales and padding aside"


def test_rows_go_on_to_their_last_token():
    rows = make_rows(SMALL, 2, 11, 40)
    assert all(len(row.text) == 11 and row.guidance for row in rows)
    for row in rows:
        while not row.done:
            row.accept(np.full(SMALL.decoder.num_channels, SMALL.decoder.eos))
        assert row.finish_reason == "max_tokens" and row.steps > 30


@pytest.mark.parametrize("random", [None, "tiny"])
def test_a_run_measures_a_whole_take(folder, random):
    job = {"model": str(folder), "random": random, "threads": 1, "precision": "float32"}
    job |= {"rows": 2, "steps": 5, "text_bytes": 12, "codec_seconds": 0.5}
    fractions = []
    raw = steps.job(job, lambda what, fraction: fractions.append(fraction))
    torch.set_num_threads(1)
    run = finish_run(raw, 40.0)
    assert all(run[key] is not None for key in RUN_KEYS)
    assert all(run[key] > 0 for key in RUN_KEYS if key not in ("precision", "kernels"))
    assert run["kernels"] and min(fractions) >= 0 and max(fractions) <= 1
    assert json.loads(json.dumps(run)) == run


def test_the_codec_is_measured_whole_and_streamed(folder):
    found = codec.job({"folder": str(folder), "threads": 1, "seconds": 0.5}, lambda *_: None)
    assert found["realtime_whole"] > 0 and found["realtime_streamed"] > 0
    assert "small" in found["source"]


# Quality


def test_the_same_precision_differs_by_nothing_and_a_changed_one_by_something(folder):
    job = {"model": str(folder), "threads": 1, "precisions": ["float32", "bfloat16"]}
    found = quality.job(job, lambda *_: None)
    torch.set_num_threads(1)
    same, fewer = found["precisions"]["float32"], found["precisions"]["bfloat16"]
    assert same["kl"] == [0.0] * 3 and same["top1"] == [1.0] * 3
    assert 0 < fewer["kl_mean"] < 0.1 and 0.5 < fewer["top1_mean"] <= 1
    assert "word_error" not in same, "words are counted for the embedded voice alone"


def test_word_error_counts_what_is_wrong_missing_and_too_much():
    assert words.word_error(["[S1] One two, three."], ["one two three"]) == 0
    assert words.word_error(["[S1] One two three four."], ["one too three"]) == 0.5
    assert words.word_error(["[S2] One."], ["well one then"]) == 2


def test_the_recogniser_hears_nothing_in_silence():
    pytest.importorskip("pocketsphinx")
    heard = words.Recogniser().hear(np.zeros(words.SAMPLE_RATE, np.float32))
    assert words.word_error(["[S1] One two three."], [heard]) > 0.5


def test_without_the_recogniser_the_report_says_how_to_get_it(monkeypatch):
    def missing():
        raise ImportError

    monkeypatch.setattr(words, "Recogniser", missing)
    error, note = quality.heard_error(None, 1)
    assert error is None and "pip install -r requirements-dev.txt" in note


# The command


def test_the_command_gives_json_and_a_table(capsys):
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
    import dia_demo.cli_bench as cli_bench

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


def test_every_precision_is_measured_unless_one_is_asked_for():
    assert ("auto", *MEASURED) == PRECISIONS
