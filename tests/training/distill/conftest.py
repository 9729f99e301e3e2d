"""A tiny teacher, its takes, and students of it."""

from __future__ import annotations

import json

import pytest
import torch

from tests.helpers.models.checkpoints import load, write_small
from tests.training.distill.settings import SCALES, TEXTS
from training.distill import guidance, takes
from training.distill.student import student_of


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = write_small(tmp_path_factory.mktemp("teacher"))
    settings = {"guidance_scale": 1.0, "max_length": 40, "top_k": 12, "temperature": 0.9}
    (folder / "generation_config.json").write_text(json.dumps(settings))
    return folder


@pytest.fixture(scope="module")
def teacher(folder):
    return load(folder)


@pytest.fixture(scope="module")
def sampled(teacher):
    return takes.sample_shard(teacher, TEXTS * 4, SCALES, seed=3)


@pytest.fixture
def lesson(teacher):
    torch.manual_seed(0)
    return guidance.lesson_of(teacher, student_of(teacher, SCALES), "cpu")


@pytest.fixture
def student(teacher):
    return student_of(teacher, SCALES).requires_grad_(False)
