"""Prepared weights of Dia2: calibrated once, and the same model from the file."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

from dia_demo.families.dia2.config_file import read_config
from dia_demo.families.dia2.takes import make_takes
from dia_demo.model.dia2.loading import FrameCalibrator, load_model
from dia_demo.model.linear import can_compile
from dia_demo.model.weights import packed_cache
from dia_demo.task import Task
from tools.compare_dia2.make_random_dia2 import SMALL, write_checkpoint

pytestmark = [
    pytest.mark.long,
    pytest.mark.kernels,
    pytest.mark.skipif(not can_compile(), reason="needs numba"),
]


@pytest.fixture
def folder(tmp_path, own_cache, monkeypatch):
    monkeypatch.setattr(packed_cache, "LEAST_BYTES", 0)
    return write_checkpoint(tmp_path / "small", SMALL)


def load(folder, precision):
    """(the model, the reported stages, the name of its weights)."""
    config = read_config(json.loads((folder / "config.json").read_text()), folder)
    task = Task(load_model(folder, config, precision, 2, FrameCalibrator(make_takes)))
    stages = [stage for stage, _ in task]
    return task.result.model, stages, task.result.weights


def first_logits(model):
    cache, config = model.new_cache(2, 4), model.config
    codes = torch.full((2, config.decoder.num_channels), 5)
    return model.step(torch.full((2, 2), 4), codes, [cache])[1].clone()


@pytest.mark.parametrize("precision", ["int8+int5", "int8"])
def test_the_second_start_reads_what_the_first_has_stored(folder, precision):
    first, stages, weights = load(folder, precision)
    assert any("Calibrating" in stage for stage in stages) == (precision != "int8")
    assert packed_cache.prepared_file(folder, precision).is_file()
    again, stages, same = load(folder, precision)
    assert not any("Calibrating" in stage or "Loading, in" in stage for stage in stages)
    assert weights == same
    np.testing.assert_array_equal(first_logits(first), first_logits(again))
