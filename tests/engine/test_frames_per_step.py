"""A checkpoint with `frames_per_step`: a decoder step reads and gives several frames."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

from dia_demo.accelerator.backend import Backend
from dia_demo.accelerator.device_model import DeviceModel
from dia_demo.checkpoint_config import read_model_config
from dia_demo.config import GenerationParams, ModelConfig
from dia_demo.engine.events import FinishReason
from dia_demo.engine.loading.memory import needed_bytes
from dia_demo.engine.row import Row
from dia_demo.engine.scheduler import run_to_end
from dia_demo.errors import InputError
from dia_demo.model.calibration.calibration import CalibrationTake, calibrate
from dia_demo.model.cpu_model import CpuModel
from dia_demo.model.dia import Dia
from dia_demo.model.linear import decoder_weights
from dia_demo.model.weights import checkpoint
from dia_demo.services.measurements.quality import Forced, forced_logits
from dia_demo.task import result_of
from tests.helpers.models.checkpoints import SMALL, load, marks_for_case, write_small
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
    step_inputs,
)
from tests.helpers.sampling import ReferenceSampler
from tools.make_random_dia import write_checkpoint
from training.distill import network

pytestmark = pytest.mark.processor

FRAMES = (2, 3)
STUDENTS = {n: replace(SMALL, guidance_scales=(0.0, 3.0), frames_per_step=n) for n in FRAMES}
# Two branches per row: `frames_per_step` without distilled guidance.
GUIDED = replace(SMALL, frames_per_step=2)


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    return {
        n: write_small(tmp_path_factory.mktemp(f"student{n}"), config=config)
        for n, config in STUDENTS.items()
    }


@pytest.fixture(scope="module")
def dias(folders) -> dict[int, Dia]:
    return {n: load(folder) for n, folder in folders.items()}


@pytest.fixture(
    scope="module",
    params=[
        pytest.param((frames, *case), marks=marks_for_case(*case))
        for case in CASES
        for frames in FRAMES
    ],
    ids=lambda case: f"{case[1].name}, {case[2]}, {case[0]} frames",
)
def built(request, folders) -> tuple[CpuModel, str]:
    """The student with each kernel in each precision."""
    frames, kernel, precision = request.param
    return build(folders[frames], kernel, precision), precision


@torch.inference_mode()
def reference(dia: Dia, codes: Tensor, cfg_scale: float) -> Tensor:
    """Logits [P, C, V] after each position of a whole take by plain torch."""
    texts = network.read_texts(dia, torch.tensor([list(TEXT)]), torch.ones(1, len(TEXT)).bool())
    vectors = network.scale_vectors(dia, [cfg_scale])
    return network.decode(dia, codes[None], texts, None, vectors)[0]


@torch.inference_mode()
def stepwise(model, codes: Tensor, cfg_scale: float, prompt: int) -> Tensor:
    """The engine's logits after each position that `prompt` steps, read at once, do not read."""
    frames = model.config.frames_per_step
    steps = torch.from_numpy(step_inputs(codes.numpy(), model.config))
    cache = model.encode(TEXT, cfg_scale, len(steps))
    if prompt:
        model(steps[None, :prompt], [cache])
    parts = []
    for number in range(prompt, len(steps)):
        parts.append(model(steps[None, number : number + 1], [cache])[:, 0].clone())
        for further in range(1, frames):
            position = number * frames + further
            if position < len(codes):
                parts.append(model.next_frame(codes[None, position], [cache], further).clone())
    return torch.cat(parts)


@pytest.mark.parametrize("prompt", [0, 6])
def test_logits_are_those_of_plain_torch(built, dias, prompt):
    model, precision = built
    frames = model.config.frames_per_step
    codes = torch.from_numpy(CODES)
    expected = reference(dias[frames], codes, 2.2)[prompt * frames :]
    logits = stepwise(model, codes, 2.2, prompt)
    assert divergence(expected[: len(logits)], logits) <= LARGEST_KL[precision]
    shuffled = expected[: len(logits)].roll(1, dims=0)
    assert divergence(shuffled, logits) > 2 * LARGEST_KL[precision], "the frames' order counts"


def make_rows(config: ModelConfig, count: int = 8) -> list[Row]:
    """Rows of different lengths, with prompts of every remainder."""
    rows = []
    for seed in range(count):
        params = replace(config.defaults, cfg_scale=seed % 4, seed=seed, max_tokens=36 + seed)
        params = params.check(replace(config, guidance_scales=(0.0, 3.0)))
        rows.append(Row(config, TEXT, params, CODES[:seed] if seed else None))
    return rows


def test_a_batch_of_eight_gives_the_takes_of_single_rows(built):
    model, _ = built
    together, alone = make_rows(model.config), make_rows(model.config)
    run_to_end(model, together)
    for row in alone:
        run_to_end(model, [row])
    for row, single in zip(together, alone, strict=True):
        assert len(row.codes()) > 0 and np.array_equal(row.codes(), single.codes())


@torch.inference_mode()
def by_hand(dia: Dia, row: Row) -> np.ndarray:
    """The tokens of a row, one frame after another, each from the logits of the whole take."""
    config = dia.config
    decoder, lags = config.decoder, np.array(config.delay_pattern)
    prompt = row.previous_inputs.reshape(-1, decoder.num_channels)[config.frames_per_step - 1 :]
    known = [*prompt, *row.next_input.reshape(config.frames_per_step, -1)]
    known = np.stack(known)[-(row.position + 1) :]
    sampler = ReferenceSampler.create([row.params], [1], decoder)
    generator = torch.Generator().manual_seed(row.params.seed)
    end = None
    while end is None or len(known) - 1 - end < config.max_delay:
        logits = reference(dia, torch.from_numpy(known), row.params.cfg_scale)[-1:]
        uniforms = torch.rand(1, decoder.num_channels, generator=generator)
        codes, position = sampler(logits, uniforms.numpy())[0], len(known)
        for channel, lag in enumerate(lags):
            frame = position - 1 - lag
            if frame < row.prompt_frames:
                codes[channel] = CODES[frame, channel] if frame >= 0 else decoder.bos
        is_last = position >= row.params.max_tokens - config.max_delay
        if end is None and (codes[0] == decoder.eos or is_last):
            end = position
        if end is not None:
            codes = np.where(position - end == lags, decoder.eos, codes)
            codes = np.where(position - end > lags, decoder.pad, codes)
        known = np.concatenate((known, codes[None]))
    frames = range(row.prompt_frames, end - 1)
    return np.array([[known[f + 1 + lag, c] for c, lag in enumerate(lags)] for f in frames])


@pytest.mark.parametrize("frames", FRAMES)
@pytest.mark.parametrize("prompt", range(5))
def test_a_take_is_that_of_frame_by_frame_sampling(dias, frames, prompt):
    """Each frame is drawn from its distribution after all frames before it, whatever the remainder
    of the prompt."""
    dia = dias[frames]
    row = make_rows(dia.config)[prompt]
    expected = by_hand(dia, row)
    run_to_end(CpuModel(dia, 1), [row])
    codes = row.codes()
    expected = np.where(expected < dia.config.num_codes, expected, 0)
    assert len(codes) > 8 and np.array_equal(codes, expected)
    assert np.array_equal(row.codes(0, 0), np.zeros((0, SMALL.decoder.num_channels)))


def test_a_row_ends_at_any_frame_of_a_step(dias):
    """Its last frame is the one before EOS, and max tokens is exact."""
    for frames, dia in dias.items():
        lengths = set()
        for row in make_rows(dia.config):
            run_to_end(CpuModel(dia, 1), [row])
            most = dia.config.frames_within(row.params.max_tokens, row.prompt_frames)
            if row.finish_reason is FinishReason.MAX_TOKENS:
                assert len(row.codes()) == most
            lengths.add((row.prompt_frames + len(row.codes())) % frames)
        assert len(lengths) == frames, "every remainder occurs"


def test_guidance_works_with_several_frames(tmp_path):
    """Two branches per row; in a batch with a row that has one."""
    dia = load(write_small(tmp_path, config=GUIDED))
    for model in (CpuModel(dia, 1), DeviceModel.from_model(dia, Backend("cpu"), torch.float32)):
        scales = (2.0, 0.0, 1.0)
        rows = [
            Row(GUIDED, TEXT, replace(GenerationParams(), cfg_scale=scale, max_tokens=30, top_k=9))
            for scale in scales
        ]
        run_to_end(model, rows)
        takes = [row.codes() for row in rows]
        assert not np.array_equal(takes[0], takes[1]) and not np.array_equal(takes[0], takes[2])
        alone = Row(GUIDED, TEXT, rows[0].params)
        run_to_end(CpuModel(dia, 1), [alone])
        assert np.array_equal(alone.codes(), takes[0])


@pytest.mark.kernels
def test_another_row_between_two_frames_changes_nothing(folders, dias):
    """A prompt of one step may be read while other rows are between two frames."""
    model, codes = build(folders[2], ORDINARY, "float32"), torch.from_numpy(CODES)
    steps = torch.from_numpy(step_inputs(CODES, model.config))
    cache = model.encode(TEXT, 1.0, 4)
    with torch.inference_mode():
        model(steps[None, :1], [cache])
        model(steps[None, :1], [model.encode(b"\x02 No.", 3.0, 4)])
        logits = model.next_frame(codes[None, 1], [cache], 1)
    expected = reference(dias[2], codes[:2], 1.0)[1:]
    assert divergence(expected, logits) <= LARGEST_KL["float32"]


def test_a_cache_has_a_position_for_each_step(dias):
    row = make_rows(STUDENTS[3])[7]
    steps = -(-row.params.max_tokens // 3)
    assert row.max_steps == steps
    model = CpuModel(dias[3], 1)
    run_to_end(model, [row])
    # A row of the full length, with the prompt's steps, has used no more.
    assert len(row.previous_inputs) < steps


def test_the_qualities_logits_are_those_of_every_frame(dias):
    dia = dias[2]
    row = make_rows(dia.config)[0]
    run_to_end(CpuModel(dia, 1), [row])
    logits = forced_logits(dia, Forced(row, row.previous_inputs, row.params.cfg_scale))[:, 0]
    codes = row.previous_inputs.reshape(-1, SMALL.decoder.num_channels)[1:]
    expected = reference(dia, torch.from_numpy(codes), row.params.cfg_scale)
    assert len(logits) == len(codes)
    assert divergence(expected, logits) <= LARGEST_KL["float32"]


def test_a_device_computes_the_same(dias):
    model = DeviceModel.from_model(dias[2], Backend("cpu"), torch.float32)
    codes = torch.from_numpy(CODES)
    expected = stepwise(dias[2], codes, 2.2, 4)
    assert divergence(expected, stepwise(model, codes, 2.2, 4)) <= 1e-6
    assert model.drift() == model.drift() == 0


@pytest.mark.kernels
@pytest.mark.parametrize("precision", ["int8", "int4"])
def test_prepared_weights_keep_every_frame(folders, tmp_path, precision):
    models = prepared_twice(folders[2], STUDENTS[2], precision, tmp_path / "p.safetensors")
    codes = torch.from_numpy(CODES)
    first, second = (stepwise(model, codes, 2.2, 0) for model in models)
    assert torch.equal(first, second)


@pytest.mark.kernels
def test_int4_is_calibrated_in_the_layers_alone(folders, dias):
    packed = result_of(checkpoint.load(folders[2], "bfloat16", kernel=ORDINARY))
    result_of(calibrate(packed, [CalibrationTake(TEXT, step_inputs(CODES, STUDENTS[2]))], 1))
    assert packed.decoder.next_frames[0].mlp.down_proj.precision == "int8"
    codes, scale = torch.from_numpy(CODES), STUDENTS[2].defaults.cfg_scale
    logits = stepwise(ORDINARY.install(packed, 1), codes, scale, 0)
    assert divergence(reference(dias[2], codes, scale)[: len(logits)], logits) <= LARGEST_KL["int4"]


@pytest.mark.parametrize("naming", ["transformers", "nari"])
def test_both_public_layouts_hold_the_frames(tmp_path, naming):
    write_checkpoint(tmp_path, STUDENTS[2], naming)
    decoder = load(tmp_path).decoder
    codes = SMALL.decoder.num_channels * SMALL.decoder.vocab_size
    assert decoder.embeddings.weight.shape == (2 * codes, SMALL.decoder.hidden_size)
    assert decoder.next_frames[0].embeddings.weight.shape[0] == codes


@pytest.mark.parametrize("frames", [0, 5, 1.5, "2", None, True])
def test_other_numbers_of_frames_are_refused(tmp_path, frames):
    write_small(tmp_path)
    raw = json.loads((tmp_path / "config.json").read_text()) | {"frames_per_step": frames}
    (tmp_path / "config.json").write_text(json.dumps(raw))
    with pytest.raises(InputError, match="frames_per_step must be a whole number from 1 to 4, not"):
        read_model_config(tmp_path)


def test_weights_without_the_further_frame_are_refused(tmp_path):
    write_small(tmp_path)
    raw = json.loads((tmp_path / "config.json").read_text()) | {"frames_per_step": 2}
    (tmp_path / "config.json").write_text(json.dumps(raw))
    with pytest.raises(InputError, match="missing: model.decoder.next_frames.0"):
        load(tmp_path)


def test_memory_and_weights_are_those_of_the_model(dias):
    """Half of the positions in the caches, and the further frame's weights."""
    ordinary = replace(STUDENTS[2], frames_per_step=1)
    d = SMALL.decoder
    head, mlp = (
        d.num_channels * d.vocab_size * d.hidden_size,
        3 * d.hidden_size * d.intermediate_size,
    )
    assert decoder_weights(STUDENTS[2]) - decoder_weights(ordinary) == head + mlp
    total = sum(p.numel() for p in dias[2].parameters())
    plain = sum(p.numel() for p in Dia(ordinary).parameters())
    assert total - plain == 3 * head + mlp + 2 * d.hidden_size
    large = replace(ModelConfig(), guidance_scales=(0.0, 3.0))
    two = replace(large, frames_per_step=2)
    fewer = needed_bytes(info_of(large), "int8") - needed_bytes(info_of(two), "int8")
    assert fewer < 0, "a table and a head more weigh more than half of the caches"
