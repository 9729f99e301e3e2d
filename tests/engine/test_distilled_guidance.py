"""A checkpoint with `guidance: distilled`: one branch per row, the CFG scale as a vector."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

from dia_demo.accelerator.backend import Backend
from dia_demo.accelerator.device_model import DeviceModel
from dia_demo.config import ModelConfig
from dia_demo.engine.loading.memory import needed_bytes
from dia_demo.engine.row import Row
from dia_demo.engine.scheduler import run_to_end
from dia_demo.errors import InputError
from dia_demo.families.dia.weights import WORKING_POSITIONS
from dia_demo.model.calibration.calibration import CalibrationTake, calibrate
from dia_demo.model.cpu_model import CpuModel
from dia_demo.model.dia import Dia
from dia_demo.model.weights import checkpoint
from dia_demo.task import result_of
from tests.helpers.models.checkpoints import SMALL, load, marks_for_case, say, write_small
from tests.helpers.models.known import info_of
from tests.helpers.models.students import (
    CASES,
    CODES,
    LARGEST_KL,
    ORDINARY,
    TEXT,
    build,
    divergence,
    prepared_twice,
)
from tools.make_random_dia import write_checkpoint
from training.distill import network

pytestmark = pytest.mark.processor

SCALES = (0.0, 1.0, 3.0)
STUDENT = replace(SMALL, guidance_scales=SCALES)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_small(tmp_path_factory.mktemp("student"), config=STUDENT)


@pytest.fixture(scope="module")
def dia(folder) -> Dia:
    return load(folder)


@pytest.fixture(
    scope="module",
    params=[pytest.param(case, marks=marks_for_case(*case)) for case in CASES],
    ids=lambda case: f"{case[0].name}, {case[1]}",
)
def built(request, folder) -> tuple[CpuModel, str]:
    """The student with each kernel in each precision."""
    kernel, precision = request.param
    return build(folder, kernel, precision), precision


def vector(table: Tensor, cfg_scale: float) -> Tensor:
    """Linear interpolation between the checkpoint's scales, by NumPy."""
    columns = table.float().numpy().T
    return torch.tensor([np.interp(cfg_scale, SCALES, column) for column in columns]).float()


@torch.inference_mode()
def reference(dia: Dia, codes: Tensor, cfg_scale: float) -> Tensor:
    """Logits [T, C, V] of a whole take by plain torch."""
    texts = network.read_texts(dia, torch.tensor([list(TEXT)]), torch.ones(1, len(TEXT)).bool())
    added = vector(dia.decoder.guidance_embedding.weight, cfg_scale)
    return network.decode(dia, codes[None], texts, None, added[None])[0]


@torch.inference_mode()
def stepwise(model, codes: Tensor, cfg_scale: float, prompt: int) -> Tensor:
    """The engine's logits [T - prompt + 1, C, V]: the prompt at once, the rest one by one."""
    cache = model.encode(TEXT, cfg_scale, len(codes))
    parts = [model(codes[None, :prompt], [cache])[:, -1].clone()]
    parts += [model(step[None, None], [cache])[:, 0].clone() for step in codes[prompt:]]
    return torch.cat(parts)


@pytest.mark.parametrize("cfg_scale", [0.4, 3.0])
@pytest.mark.parametrize("prompt", [1, 12])
def test_logits_are_those_of_plain_torch(built, dia, cfg_scale, prompt):
    model, precision = built
    codes = torch.from_numpy(CODES)
    expected = reference(dia, codes, cfg_scale)[prompt - 1 :]
    logits = stepwise(model, codes, cfg_scale, prompt)
    assert divergence(expected, logits) <= LARGEST_KL[precision]
    other = reference(dia, codes, 3.0 if cfg_scale < 2 else 0.0)[prompt - 1 :]
    assert divergence(other, logits) > 2 * divergence(expected, logits)


def test_a_batch_of_eight_gives_the_takes_of_single_rows(built):
    model, _ = built
    scales = (0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 0.0)

    def rows():
        for seed, scale in enumerate(scales):
            params = replace(STUDENT.defaults, cfg_scale=scale, seed=seed, max_tokens=40)
            yield Row(STUDENT, TEXT, params, CODES[:8] if seed % 2 else None)

    together, alone = list(rows()), list(rows())
    run_to_end(model, together)
    for row in alone:
        run_to_end(model, [row])
    for row, single in zip(together, alone, strict=True):
        assert np.array_equal(row.codes(), single.codes())


def test_the_cfg_scale_changes_the_take(dia):
    takes = [say(dia, cfg_scale=scale, max_tokens=60).codes() for scale in (0.0, 1.0, 3.0)]
    assert not np.array_equal(takes[0], takes[1])
    assert not np.array_equal(takes[1], takes[2])


def test_a_cache_has_half_the_bytes_of_an_ordinary_one(dia, tmp_path):
    ordinary = load(write_small(tmp_path / "ordinary"))
    caches = [model.encode(TEXT, 3.0, 300) for model in (dia, ordinary)]
    own = [sum(k.nbytes + v.nbytes for k, v in c.layers_of_branch(0)) for c in caches]
    assert own[0] == own[1]
    texts = [sum(k.nbytes + v.nbytes for branch in c.cross for k, v in branch) for c in caches]
    student, teacher = (c.size_bytes - text for c, text in zip(caches, texts, strict=True))
    assert [c.branches for c in caches] == [1, 2]
    assert student == teacher / 2


def test_a_student_with_one_scale_is_an_ordinary_checkpoint(dia, tmp_path):
    """Every position has one code of channel 0, so its table can take the vector."""
    ordinary = load(write_small(tmp_path))
    ordinary.load_state_dict(
        {name: tensor for name, tensor in dia.state_dict().items() if "guidance" not in name}
    )
    table = ordinary.decoder.embeddings.weight
    table[: SMALL.decoder.vocab_size] += vector(dia.decoder.guidance_embedding.weight, 1.6)
    codes = torch.from_numpy(CODES)
    expected = stepwise(ordinary, codes, 0.0, 1)
    assert divergence(expected, stepwise(dia, codes, 1.6, 1)) <= 1e-6


def test_a_device_computes_the_same(dia):
    device_model = DeviceModel.from_model(dia, Backend("cpu"), torch.float32)
    codes = torch.from_numpy(CODES)
    expected = stepwise(dia, codes, 2.2, 12)
    assert divergence(expected, stepwise(device_model, codes, 2.2, 12)) <= 1e-6
    assert device_model.drift() == device_model.drift() == 0


@pytest.mark.kernels
def test_prepared_weights_keep_the_vectors(folder, tmp_path):
    models = prepared_twice(folder, STUDENT, "int8", tmp_path / "p.safetensors")
    codes = torch.from_numpy(CODES)
    first, second = (stepwise(model, codes, 2.2, 1) for model in models)
    assert torch.equal(first, second)


@pytest.mark.kernels
def test_int4_is_calibrated_on_what_the_student_reads(folder, dia):
    packed = result_of(checkpoint.load(folder, "bfloat16", kernel=ORDINARY))
    result_of(calibrate(packed, [CalibrationTake(TEXT, CODES)], 1))
    codes = torch.from_numpy(CODES)
    logits = stepwise(ORDINARY.install(packed, 1), codes, STUDENT.defaults.cfg_scale, 1)
    expected = reference(dia, codes, STUDENT.defaults.cfg_scale)
    assert divergence(expected, logits) <= LARGEST_KL["int4"]


@pytest.mark.parametrize("naming", ["transformers", "nari"])
def test_both_public_layouts_hold_the_vectors(tmp_path, naming):
    write_checkpoint(tmp_path, STUDENT, naming)
    vectors = load(tmp_path).decoder.guidance_embedding.weight
    assert vectors.shape == (len(SCALES), STUDENT.decoder.hidden_size)


def test_a_scale_beyond_the_trained_ones_is_refused():
    params = replace(STUDENT.defaults, cfg_scale=3.5)
    with pytest.raises(InputError, match="cfg_scale must be a number from 0 to 3, not 3.5"):
        Row(STUDENT, TEXT, params)


def test_weights_without_the_vectors_are_refused(tmp_path):
    write_small(tmp_path)
    text = (tmp_path / "config.json").read_text()
    keys = '{"guidance": "distilled", "guidance_scales": [0, 3],'
    (tmp_path / "config.json").write_text(text.replace("{", keys, 1))
    with pytest.raises(InputError, match="missing: model.decoder.guidance_embedding.weight"):
        load(tmp_path)


def test_memory_is_estimated_for_one_branch():
    student = replace(ModelConfig(), guidance_scales=SCALES)
    caches = needed_bytes(info_of(ModelConfig()), "int8") - needed_bytes(info_of(student), "int8")
    d = student.decoder
    positions = WORKING_POSITIONS * d.num_layers * d.num_kv_heads * d.head_dim
    assert caches == 2 * 4 * positions
