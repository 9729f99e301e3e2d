"""The compiled parts of a frame of Dia2: the codes of torch's modules, alone and beside others."""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np
import pytest
import torch

from dia_demo.model.dia2 import torch_model
from dia_demo.model.dia2.calibration import calibrate
from dia_demo.model.dia2.config import DepthConfig, Dia2Config
from dia_demo.model.dia2.drawing import NOT_FINITE
from dia_demo.model.dia2.forced import FrameRecording, Recorder, forced_logits
from dia_demo.model.dia2.interface import Drawing
from dia_demo.model.dia2.loading import choose_kernel, compiled_model, random_model
from dia_demo.model.dia2.packing import parts_of, set_module
from dia_demo.model.dia2.torch_model import TorchDia2
from dia_demo.model.layers import Embedding, Linear
from dia_demo.model.linear import can_compile
from dia_demo.model.packed_linear import PackedLinear
from dia_demo.task import result_of

pytestmark = [
    pytest.mark.long,
    pytest.mark.processor,
    pytest.mark.kernels,
    pytest.mark.skipif(not can_compile(), reason="needs numba"),
]
BASE = Dia2Config()
# No width is a whole number of blocks, and sets of the depth's weights change between stages.
SMALL = replace(
    BASE,
    decoder=replace(
        BASE.decoder,
        num_layers=2,
        hidden_size=112,
        num_heads=4,
        num_kv_heads=2,
        head_dim=24,
        intermediate_size=150,
        vocab_size=130,
        eos=128,
        pad=129,
        bos=128,
        num_channels=6,
        max_positions=64,
    ),
    depth=DepthConfig(2, 96, 2, 32, 160, (0, 0, 1, 1, 1), apply_rope=True),
    delay_pattern=(2, 3, 3, 3, 3, 3),
    text_vocab=50,
    text_width=72,
)
NOT_ROTATED = replace(SMALL, depth=replace(SMALL.depth, apply_rope=False))
# A single stage, whose logits are then those of the last one.
ONE_STAGE = replace(
    SMALL,
    decoder=replace(SMALL.decoder, num_channels=2),
    depth=replace(SMALL.depth, schedule=(0,)),
    delay_pattern=(2, 3),
)
# Guidance on, off, and stronger: two slots, one, two.
SCALES = (2.0, 1.0, 4.5)
# Relative to the exact logits, as for Dia (tests/kernels/test_fuzz.py).
LOGITS = {"float32": 2e-5, "bfloat16": 2e-2, "int8": 4e-2, "int4": 4e-2, "int8+int5": 4e-2}
ROUNDED = ("bfloat16", "int8", "int4", "int8+int5")


def compiled(precision: str, config: Dia2Config = SMALL, threads: int = 2):
    return result_of(random_model(config, precision, threads)).model


def plain(model) -> TorchDia2:
    """torch's modules with the weights that a compiled model has."""
    network = copy.deepcopy(model.network)
    for name, module in list(network.named_modules()):
        if isinstance(module, PackedLinear):
            linear = Linear(module.inputs, module.outputs)
            linear.weight.data = module.dense(torch.float32)
            set_module(network, name, linear)
        elif isinstance(module, Embedding):
            module.weight.data = module.weight.data.float()
    return TorchDia2(network.requires_grad_(False), 1)


class Play:
    """A model's steps for some rows. Every row's input depends on its own seed alone."""

    def __init__(self, model, seeds, scales, temperature=0.9, positions=64) -> None:
        self.model, config = model, model.config
        self.branches = [config.branches(scale) for scale in scales]
        self.caches = [model.new_cache(branches, positions) for branches in self.branches]
        self.rngs = [np.random.default_rng(seed) for seed in seeds]
        self.drawing = [Drawing(scale, temperature, 20) for scale in scales]
        self.codes = np.full((len(seeds), config.decoder.num_channels), config.decoder.bos)

    def slots(self, rows: np.ndarray) -> torch.Tensor:
        return torch.from_numpy(np.repeat(rows, self.branches, axis=0))

    def step(self):
        """(action logits, codebook 0's logits, all codes) of a frame."""
        config = self.model.config
        text = np.stack([rng.integers(0, 8, 2) for rng in self.rngs])
        actions, first = self.model.step(self.slots(text), self.slots(self.codes), self.caches)
        logits = actions.clone(), first.clone()
        own = [its[0, : config.num_codes] for its in logits[1].split(self.branches)]
        first_codes = np.array([int(its.argmax()) for its in own])
        uniforms = np.stack([rng.random(config.stages, np.float32) for rng in self.rngs])
        others = self.model.depth(first_codes, uniforms, self.drawing, self.caches)
        self.codes = np.column_stack([first_codes, others])
        return *logits, self.codes


@pytest.fixture(scope="module")
def float32():
    return compiled("float32")


@pytest.mark.parametrize("temperature", [0.0, 0.9])
def test_codes_are_those_of_torch(float32, temperature):
    ours, theirs = (
        Play(model, range(3), SCALES, temperature) for model in (float32, plain(float32))
    )
    for _ in range(8):
        mine, expected = ours.step(), theirs.step()
        for logits, exact in zip(mine[:2], expected[:2], strict=True):
            torch.testing.assert_close(logits, exact, rtol=1e-4, atol=1e-5)
        np.testing.assert_array_equal(mine[2], expected[2])


def test_codes_without_rotation_are_those_of_torch():
    model = compiled("float32", NOT_ROTATED)
    ours, theirs = (Play(each, range(3), SCALES) for each in (model, plain(model)))
    for _ in range(3):
        np.testing.assert_array_equal(ours.step()[2], theirs.step()[2])


def test_a_prompt_and_the_steps_after_it_are_those_of_torch(float32, monkeypatch):
    """Its last position is read twice, and the cache grows meanwhile."""
    monkeypatch.setattr(torch_model, "FIRST_POSITIONS", 4)
    codes = torch.randint(0, 128, (2, 6, 6), generator=torch.Generator().manual_seed(0))
    plays = [Play(model, [0], [2.0]) for model in (float32, plain(float32))]
    for play in plays:
        play.model.read(codes[..., :2] % 8, codes, play.caches[0])
        play.caches[0].position -= 1
    for _ in range(5):
        mine, expected = (play.step()[2] for play in plays)
        np.testing.assert_array_equal(mine, expected)


@pytest.mark.parametrize("precision", ["float32", *ROUNDED])
def test_rows_join_and_leave_and_each_is_as_alone(precision, float32):
    model = float32 if precision == "float32" else compiled(precision)
    alone = [Play(model, [seed], [scale]) for seed, scale in enumerate(SCALES)]
    expected = [[play.step()[2][0] for _ in range(6)] for play in alone]
    rows = [Play(model, [seed], [scale]) for seed, scale in enumerate(SCALES)]
    taken: list[list[np.ndarray]] = [[], [], []]
    for here in ((0,), (0, 1), (2, 1), (0, 1, 2), (2,), (1, 0, 2), (0, 2)):
        together = Play(model, [], [])
        together.branches = [rows[row].branches[0] for row in here]
        together.caches = [rows[row].caches[0] for row in here]
        together.rngs = [rows[row].rngs[0] for row in here]
        together.drawing = [rows[row].drawing[0] for row in here]
        together.codes = np.concatenate([rows[row].codes for row in here])
        for row, codes in zip(here, together.step()[2], strict=True):
            rows[row].codes = codes[None]
            taken[row].append(codes)
    for own, theirs in zip(taken, expected, strict=True):
        np.testing.assert_array_equal(own, theirs[: len(own)])


@pytest.mark.parametrize("threads", [1, 3])
def test_the_number_of_threads_changes_no_code(float32, threads):
    expected = Play(float32, range(3), SCALES)
    other = Play(compiled("float32", threads=threads), range(3), SCALES)
    for _ in range(3):
        np.testing.assert_array_equal(other.step()[2], expected.step()[2])


@pytest.mark.parametrize("precision", ROUNDED)
def test_logits_of_other_formats_are_within_their_rounding(precision):
    model = compiled(precision, ONE_STAGE)
    ours, theirs = (Play(each, range(3), SCALES) for each in (model, plain(model)))
    pairs: list[tuple[torch.Tensor, torch.Tensor]] = []
    for _ in range(5):
        mine, exact = ours.step(), theirs.step()
        pairs += zip(mine[:2], exact[:2], strict=True)
        # The depth part, for the same state and first codes.
        state = torch.cat([cache.state for cache in ours.caches])
        slots = torch.from_numpy(np.repeat(mine[2][:, 0], ours.branches))
        expected = theirs.model.network.depformer.stage(0, slots, state, [None] * 2)
        pairs.append((model.depth_part.logits.clone(), expected))
        theirs.codes = ours.codes
    found, exact = (
        torch.cat([each.flatten() for each in side]) for side in zip(*pairs, strict=True)
    )
    assert (found - exact).norm() <= LOGITS[precision] * exact.norm()


def test_a_row_with_logits_that_are_not_finite_has_no_codes_and_others_have(float32):
    play = Play(float32, range(3), SCALES)
    play.step()
    play.caches[1].state = torch.full_like(play.caches[1].state, torch.nan)
    uniforms = np.full((3, SMALL.stages), 0.5, np.float32)
    codes = float32.depth(np.zeros(3, np.int64), uniforms, play.drawing, play.caches)
    assert (codes[1] == NOT_FINITE).all()
    assert (codes[[0, 2]] >= 0).all()


def test_a_format_without_numba_is_refused_with_the_remedy(monkeypatch):
    from dia_demo.errors import InputError
    from dia_demo.model.dia2 import loading

    monkeypatch.setattr(loading, "can_compile", lambda: False)
    with pytest.raises(InputError, match="int8 needs numba.*choose float32"):
        result_of(random_model(SMALL, "int8", 1))
    assert type(result_of(random_model(SMALL, "float32", 1)).model) is TorchDia2


def recordings(model) -> list[FrameRecording]:
    """What some rows read and drew in a few steps."""
    recorder = Recorder(model)
    play = Play(recorder, range(3), SCALES)
    for _ in range(24):
        play.step()
    return recorder.recordings


def test_logits_of_recorded_frames_are_those_of_torch(float32):
    takes = recordings(float32)
    for take in takes:
        logits, expected = (forced_logits(model, take) for model in (float32, plain(float32)))
        assert logits.shape == (24, take.branches, 6, SMALL.num_codes)
        torch.testing.assert_close(logits, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("precision", ["int4", "int8+int5"])
def test_calibrated_weights_are_closer_than_those_rounded_to_the_nearest(precision, float32):
    takes = recordings(float32)
    exact = [forced_logits(float32, take) for take in takes]
    rounded, calibrated = compiled(precision), compiled("bfloat16")
    result_of(calibrate(calibrated, takes, precision, threads=2))
    kernels = [choose_kernel(SMALL, part, 2) for part in parts_of(precision)]
    calibrated = compiled_model(calibrated.network, 2, kernels)

    def error(model) -> float:
        pairs = zip(takes, exact, strict=True)
        return sum(float((forced_logits(model, take) - own).norm()) for take, own in pairs)

    assert error(calibrated) < 0.9 * error(rounded)
