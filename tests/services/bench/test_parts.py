"""What the benchmark measures: the machine, a run, the codec, the quality of a precision."""

from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from dia_demo.model.linear import decoder_weights
from dia_demo.services.bench.report import RUN_KEYS, finish_run
from dia_demo.services.measurements import codec, hardware, quality, steps, words
from dia_demo.services.measurements.fixtures import make_rows, step_bytes
from dia_demo.services.measurements.types import Job, JobKind
from tests.helpers.models.checkpoints import SMALL, load

pytestmark = pytest.mark.processor


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
    sizes = [hardware.buffer_bytes(free) for free in (None, 2**34, 2**30, 2**29, 0)]
    assert sizes == [2**29, 2**29, 2**29, 2**27, 2**26]


def test_step_bytes_count_everything_that_a_step_reads(folder):
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
    assert all(len(row.text) == 11 and row.params.cfg_scale > 0 for row in rows)
    for row in rows:
        while not row.done:
            row.accept(np.full(SMALL.decoder.num_channels, SMALL.decoder.eos))
        assert row.finish_reason == "max_tokens" and row.steps > 30


def job_of(kind: JobKind, folder) -> Job:
    return Job(kind, str(folder), threads=1, codec_seconds=0.5)


@pytest.mark.parametrize("random", [None, "tiny"])
def test_a_run_measures_a_whole_take(folder, random):
    job = replace(job_of(JobKind.RUN, folder), random=random, rows=2, steps=5, text_bytes=12)
    fractions = []
    raw = steps.run_job(job, lambda doing, fraction, **results: fractions.append(fraction))
    torch.set_num_threads(1)
    run = finish_run(raw, 40.0).to_json()
    assert all(run[key] is not None for key in RUN_KEYS)
    assert all(run[key] > 0 for key in RUN_KEYS if key not in ("precision", "kernels"))
    assert run["kernels"] and min(fractions) >= 0 and max(fractions) <= 1
    assert json.loads(json.dumps(run)) == run


def test_the_codec_job_measures_both_ways_of_decoding(folder):
    found = codec.run_job(job_of(JobKind.CODEC, folder), lambda *_, **results: None)
    assert found.realtime_whole > 0 and found.realtime_streamed > 0
    assert "small" in found.source and found.complete


@pytest.mark.long
def test_only_a_changed_precision_changes_the_distribution(folder):
    job = replace(job_of(JobKind.QUALITY, folder), precisions=("float32", "bfloat16"))
    found = quality.run_job(job, lambda *_, **results: None)
    torch.set_num_threads(1)
    same, fewer = found.precisions["float32"], found.precisions["bfloat16"]
    assert same.kl == (0.0,) * 3 and same.top1 == (1.0,) * 3
    assert 0 < fewer.kl_mean < 0.1 and 0.5 < fewer.top1_mean <= 1
    assert "word_error" not in found.to_json()["precisions"]["float32"], "not the embedded voice"


def test_word_error_counts_every_kind_of_error():
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


@pytest.mark.parametrize(("seconds", "size"), [(10.0, 128), (0.05, 256), (1e-6, 2048)])
def test_a_slow_matrix_product_is_made_smaller(monkeypatch, seconds, size):
    """The clock says how long a product of 128 takes; larger ones take eight times as long."""
    sizes = []

    def clock(run):
        sizes.append(len(run.__closure__[0].cell_contents))
        return seconds * (sizes[-1] / 128) ** 3

    monkeypatch.setattr(hardware, "_seconds", clock)
    rate = hardware.matrix_rate(torch.float32, 1)
    assert max(sizes) == sizes[-1] == size
    assert rate == pytest.approx(2 * 128**3 / seconds / 1e9)


def test_a_slow_codec_decodes_less(monkeypatch):
    """A tenth of a second a frame: so many frames as four seconds allow, but never only a few."""
    monkeypatch.setattr(codec, "measure_seconds", lambda run: run() or 0.1 * decoded.pop())
    decoded = []
    slow = SimpleNamespace(decode=lambda codes: decoded.append(len(codes)))
    codes = np.zeros((800, 9))
    assert codec.affordable_frames(slow, codes, 20.0) == 200
    assert codec.affordable_frames(slow, codes, 1.0) == 100
    assert codec.affordable_frames(slow, codes, 1e6) == 800
