"""Placement of a model on this CPU: threads, precision, and what a benchmark measured here."""

from dataclasses import replace

import pytest
import torch
from torch import nn

from dia_demo.config import ModelConfig, RuntimeConfig
from dia_demo.engine.loading import placement
from dia_demo.engine.loading.placement import place_on_cpu
from dia_demo.errors import InputError
from dia_demo.machine import processor, system
from dia_demo.model import autotune
from dia_demo.model.dia import Dia
from dia_demo.model.dia2.config import Dia2Config
from dia_demo.model.linear import decoder_weights
from tests.helpers.models.checkpoints import SMALL as SMALL_CONFIG
from tests.helpers.models.known import NANO, info_of

pytestmark = pytest.mark.processor

FULL_SIZE, SMALL = info_of(ModelConfig()), info_of(SMALL_CONFIG)


def test_a_small_model_uses_one_thread(monkeypatch):
    monkeypatch.setattr(placement, "granted_cores", lambda: 4)
    assert place_on_cpu(RuntimeConfig(), SMALL).threads == 1
    assert place_on_cpu(RuntimeConfig(threads=3), SMALL).threads == 3
    assert place_on_cpu(RuntimeConfig(precision="int4"), FULL_SIZE).threads == 4


def test_more_threads_than_granted_are_refused():
    with pytest.raises(InputError, match="threads.*1024"):
        place_on_cpu(RuntimeConfig(threads=1024), SMALL)


def test_auto_is_float32_for_a_tiny_model():
    for precision in ("float32", "bfloat16"):
        assert place_on_cpu(RuntimeConfig(precision=precision), SMALL).precision == precision
    placed = place_on_cpu(RuntimeConfig(), SMALL)
    assert placed.precision == "float32" and "small" in placed.reason


@pytest.mark.parametrize(
    ("features", "numba", "expected"),
    [
        ({"avx512vnni", "avx512vl", "avx512bf16"}, True, "int8"),
        ({"avxvnni"}, True, "int8"),
        ({"avx2"}, True, "int8"),
        ({"sse4.2"}, True, "bfloat16"),
        ({"avx512vnni", "avx512vl", "avx512bf16"}, False, "bfloat16"),
        ({"avx2"}, False, "float32"),
    ],
)
def test_auto_is_the_fastest_that_sounds_the_same_here(
    features, numba, expected, monkeypatch, tmp_path
):
    monkeypatch.setattr(autotune, "cache_folder", lambda: tmp_path)
    monkeypatch.setattr(processor, "features", lambda: frozenset(features))
    monkeypatch.setattr(placement, "find_spec", lambda _: object() if numba else None)
    monkeypatch.setattr(system, "memory_bytes", lambda: 64 * 10**9)
    for info in (FULL_SIZE, NANO):
        placed = place_on_cpu(RuntimeConfig(), info)
        assert placed.precision == expected and len(placed.reason) > 20
    assert place_on_cpu(RuntimeConfig(precision="bfloat16"), FULL_SIZE).reason == "as asked"


@pytest.fixture
def measured(monkeypatch, tmp_path):
    """A function that keeps a benchmark's steps; nothing was measured before."""
    monkeypatch.setattr(autotune, "cache_folder", lambda: tmp_path)
    monkeypatch.setattr(system, "memory_bytes", lambda: 64 * 10**9)
    monkeypatch.setattr(placement, "granted_cores", lambda: 2)
    return lambda **steps: placement.remember_steps(FULL_SIZE.config, 2, steps)


def test_auto_is_the_precision_that_a_benchmark_found_fastest(measured):
    measured(float32=200.4, bfloat16=48.2, int8=51.0)
    placed = place_on_cpu(RuntimeConfig(), FULL_SIZE)
    assert placed.precision == "bfloat16"
    for figure in ("48 ms", "51 ms in int8", "200 ms in float32"):
        assert figure in placed.reason
    assert place_on_cpu(RuntimeConfig(precision="int8"), FULL_SIZE).precision == "int8"


def test_auto_takes_no_precision_that_loses_quality_however_fast(measured):
    measured(int4=10.0, bfloat16=48.0, int8=51.0)
    assert place_on_cpu(RuntimeConfig(), FULL_SIZE).precision == "bfloat16"


@pytest.mark.parametrize("steps", [{"bfloat16": 10.0}, {"bfloat16": 10.0, "int4": 9.0}])
def test_one_measured_precision_does_not_decide(measured, steps):
    before = place_on_cpu(RuntimeConfig(), FULL_SIZE)
    measured(**steps)
    assert place_on_cpu(RuntimeConfig(), FULL_SIZE) == before


def test_steps_of_other_threads_do_not_decide(measured):
    before = place_on_cpu(RuntimeConfig(threads=1), FULL_SIZE)
    measured(bfloat16=10.0, int8=51.0)
    assert place_on_cpu(RuntimeConfig(threads=1), FULL_SIZE) == before


def test_steps_on_another_processor_do_not_decide(measured, monkeypatch):
    before = place_on_cpu(RuntimeConfig(), FULL_SIZE)
    measured(bfloat16=10.0, int8=51.0)
    monkeypatch.setattr(placement, "digest", lambda: "another processor's")
    assert place_on_cpu(RuntimeConfig(), FULL_SIZE) == before


def test_the_fastest_precision_still_has_to_fit(measured, monkeypatch):
    measured(float32=20.0, bfloat16=48.0, int8=51.0)
    monkeypatch.setattr(system, "memory_bytes", lambda: 5 * 10**9)
    placed = place_on_cpu(RuntimeConfig(), FULL_SIZE)
    assert placed.precision == "bfloat16" and "float32 would need" in placed.reason


def test_integers_without_numba_are_refused_with_the_remedy(monkeypatch):
    monkeypatch.setattr(placement, "find_spec", lambda _: None)
    with pytest.raises(InputError, match="int4 needs numba.*pip install numba.*bfloat16"):
        place_on_cpu(RuntimeConfig(precision="int4"), SMALL)


def test_decoder_weights_counts_what_a_step_reads():
    with torch.device("meta"):
        decoder = Dia(SMALL_CONFIG).decoder
    counted = [
        module.weight.numel()
        for name, module in decoder.named_modules()
        if isinstance(module, nn.Linear)
        and not name.endswith(("cross_attention.k_proj", "cross_attention.v_proj"))
    ]
    assert decoder_weights(SMALL_CONFIG) == sum(counted) > 0


TWO_PARTS = replace(FULL_SIZE, config=Dia2Config())


def test_formats_for_two_parts_are_refused_for_a_model_of_one():
    with pytest.raises(InputError, match="int8\\+int5 is for models of two parts.*choose float32"):
        place_on_cpu(RuntimeConfig(precision="int8+int5"), SMALL)
    assert place_on_cpu(RuntimeConfig(precision="int8+int5"), TWO_PARTS).precision == "int8+int5"


@pytest.mark.parametrize(("loss", "expected"), [(0.0029, "int8+int5"), (0.004, "int8")])
def test_auto_takes_few_bits_only_where_a_benchmark_found_no_loss(measured, loss, expected):
    measured(int8=51.0, bfloat16=80.0)
    placement.remember_steps(TWO_PARTS.config, 2, {"int8": 51.0, "int8+int5": 40.0})
    assert place_on_cpu(RuntimeConfig(), TWO_PARTS).precision == "int8"
    placement.remember_losses(TWO_PARTS, {"int8": 0.002, "int8+int5": loss, "int4": 0.0})
    assert place_on_cpu(RuntimeConfig(), TWO_PARTS).precision == expected
    placement.remember_losses(TWO_PARTS, {"int4": 0.1})
    assert place_on_cpu(RuntimeConfig(), TWO_PARTS).precision == expected, "the others are kept"
    assert place_on_cpu(RuntimeConfig(), FULL_SIZE).precision != "int8+int5"
