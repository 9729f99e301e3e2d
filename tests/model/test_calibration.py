"""Calibrated int4: less error on the inputs a linear receives, the same every time, whole or not
at all."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from dia_demo.checkpoint_config import read_model_config
from dia_demo.config import ModelConfig
from dia_demo.engine.loading.calibration import make_takes
from dia_demo.engine.loading.memory import calibration_bytes, why_not_calibrated
from dia_demo.errors import RunError
from dia_demo.machine import system
from dia_demo.model import loading
from dia_demo.model.calibration.gptq import quantize
from dia_demo.model.loading import Calibrator
from dia_demo.model.packed_linear import PackedLinear
from dia_demo.model.weights import checkpoint, packed_cache
from dia_demo.task import Task, result_of
from tests.helpers.models.checkpoints import say, write_small
from tests.helpers.models.kernels import COMPILED
from tests.helpers.models.known import info_of

pytestmark = pytest.mark.processor


def correlated(samples: int, inputs: int, seed: int) -> torch.Tensor:
    """Inputs [samples, inputs] that share a few causes, as those of a trained model do."""
    causes = torch.randn(8, inputs, generator=torch.Generator().manual_seed(0))
    generator = torch.Generator().manual_seed(seed)
    mixture = torch.randn(samples, 8, generator=generator)
    return mixture @ causes + 0.3 * torch.randn(samples, inputs, generator=generator)


@pytest.mark.parametrize(("outputs", "inputs"), [(70, 48), (130, 200), (192, 256)])
def test_gptq_halves_the_error_on_unseen_inputs(outputs, inputs):
    weight = torch.randn(outputs, inputs, generator=torch.Generator().manual_seed(1))
    unseen = correlated(300, inputs, seed=3)
    expected = unseen @ weight.t()

    def error(packed: PackedLinear) -> float:
        return float((packed(unseen) - expected).norm() / expected.norm())

    calibrated = result_of(quantize(weight.t(), correlated(900, inputs, seed=2)))
    assert (calibrated.outputs, calibrated.inputs) == (outputs, inputs)
    assert error(calibrated) < 0.5 * error(PackedLinear.from_weight(weight, "int4"))


def test_without_samples_gptq_is_as_near_to_the_weights_as_rounding():
    weight = torch.randn(70, 100, generator=torch.Generator().manual_seed(1))
    packed = (
        result_of(quantize(weight.t(), torch.zeros(5, 100))),
        PackedLinear.from_weight(weight, "int4"),
    )
    errors = [(linear.dense(torch.float32) - weight).norm() for linear in packed]
    assert errors[0] <= errors[1]


# Loading


@pytest.fixture(autouse=True)
def cache_of_each_test(own_cache):
    """No test reads what another one prepared."""


@pytest.fixture
def folder(tmp_path):
    return write_small(tmp_path / "small")


def load(folder, why_not=""):
    """(the loaded model, the reported stages with their fractions)."""
    task = Task(
        loading.load_model(
            folder, read_model_config(folder), "int4", 1, Calibrator(make_takes, why_not)
        )
    )
    return task, list(task)


@pytest.mark.kernels
def test_calibration_gives_the_same_bytes_every_time(folder):
    file = packed_cache.prepared_file(folder, "int4")
    first = load(folder)[0].result.model.dia.named_buffers()
    file.unlink()
    second = dict(load(folder)[0].result.model.dia.named_buffers())
    assert all(torch.equal(second[name], blocks) for name, blocks in first)


@pytest.mark.kernels
def test_weights_say_how_they_were_rounded(folder):
    """Calibrated ones by their bytes, stored or not: those of another processor may differ."""
    names = [load(folder)[0].result.weights for _ in range(2)]
    file = packed_cache.prepared_file(folder, "int4")
    assert names[0] == names[1] == packed_cache.stored_weights_name(file)
    assert names[0].startswith("calibrated as ")
    file.unlink()
    assert packed_cache.stored_weights_name(file) is None
    assert load(folder, "too little memory")[0].result.weights == packed_cache.NOT_CALIBRATED
    task = Task(
        loading.load_model(folder, read_model_config(folder), "int8", 1, Calibrator(make_takes))
    )
    assert list(task) and task.result.weights == ""


@pytest.mark.kernels
def test_a_calibrated_model_is_nearer_to_float32_than_a_rounded_one(folder):
    exact = result_of(checkpoint.load(folder, "float32"))
    calibrated = load(folder)[0].result.model.dia
    rounded = result_of(checkpoint.load(folder, "int4", kernel=COMPILED))
    unseen = say(exact, b"\x02 Rain again, and no boat.", seed=77, max_tokens=150).previous_inputs

    def logits(model) -> torch.Tensor:
        cache = model.encode(b"\x02 Rain again, and no boat.", 1.0, len(unseen))
        return model(torch.from_numpy(unseen).expand(2, -1, -1), [cache])

    errors = [(logits(model) - logits(exact)).norm() for model in (calibrated, rounded)]
    assert errors[0] < 0.97 * errors[1]


@pytest.mark.kernels
def test_the_progress_of_a_calibration_only_grows(folder):
    _, stages = load(folder)
    for name in ("test takes", "rounding the weights"):
        fractions = [fraction for stage, fraction in stages if stage.endswith(name)]
        assert len(fractions) > 20 and fractions == sorted(fractions) and fractions[-1] <= 1


@pytest.mark.kernels
@pytest.mark.parametrize("stage", ["test takes", "rounding the weights", "next start"])
def test_a_cancelled_calibration_leaves_no_file(folder, own_cache, stage):
    work = loading.load_model(folder, read_model_config(folder), "int4", 1, Calibrator(make_takes))
    while not next(work)[0].endswith(stage):
        pass
    work.close()
    assert not [path for path in own_cache.rglob("*") if path.is_file()]


@pytest.mark.kernels
def test_stored_int4_that_was_rounded_to_the_nearest_is_made_again(folder, monkeypatch):
    with monkeypatch.context() as older:
        older.setattr(packed_cache, "ROUNDING", {})
        older.setattr(packed_cache, "LEAST_BYTES", 0)
        rounded = result_of(checkpoint.load(folder, "int4", kernel=COMPILED))
        before = packed_cache.prepared_file(folder, "int4")
        assert not packed_cache.write(rounded, before, folder, "int4")
    assert any("Calibrating" in stage for stage, _ in load(folder)[1])
    assert not before.exists() and packed_cache.prepared_file(folder, "int4").is_file()
    assert not any("Calibrating" in stage for stage, _ in load(folder)[1])


def test_int4_without_the_memory_to_calibrate_is_not_stored(folder, own_cache):
    task, stages = load(folder, why_not="Too little memory.")
    assert task.result.note == "Too little memory."
    assert not any("Calibrating" in stage for stage, _ in stages)
    assert not list(own_cache.rglob("*.safetensors"))


def test_the_note_names_the_memory_that_calibrating_needs(monkeypatch):
    info = info_of(ModelConfig())
    needed = calibration_bytes(info)
    assert needed > 5e9
    monkeypatch.setattr(system, "available_bytes", lambda: needed)
    assert not why_not_calibrated(info, "int4")
    monkeypatch.setattr(system, "available_bytes", lambda: 4_000_000_000)
    assert "4.0 GB are free" in why_not_calibrated(info, "int4")
    assert f"{needed / 1e9:.1f} GB" in why_not_calibrated(info, "int4")


def test_a_model_that_cannot_speak_is_not_calibrated(folder):
    dia = result_of(checkpoint.load(folder, "float32"))
    dia.decoder.logits_dense.weight.fill_(np.nan)
    with pytest.raises(RunError, match="non-finite"):
        result_of(make_takes(dia))
