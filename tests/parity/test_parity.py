"""Ours against transformers, fp32, random weights: states, logits, and whole generations."""

from __future__ import annotations

from contextlib import contextmanager

import numpy as np
import pytest
import torch

from dia_demo.config import GenerationParams
from dia_demo.engine.row import Row
from dia_demo.engine.scheduler import run_to_end
from dia_demo.model.delay import apply_delay
from dia_demo.model.linear import KERNELS
from dia_demo.model.weights import checkpoint
from dia_demo.task import result_of
from dia_demo.text.script import encode_script
from tests.helpers.long import long_after
from tests.helpers.models.checkpoints import marks_for_case, threads_for
from tests.helpers.models.references import SHAPES, make_reference
from tools.transformers_codes import generate

pytestmark = pytest.mark.processor

TEXT = encode_script("[S1] Hello there, how are you? [S2] Fine (laughs), thanks.\n[S1] Good.")


IN_FLOAT32 = [kernel for kernel in KERNELS if "float32" in kernel.precisions]


@pytest.fixture(scope="module")
def references(tmp_path_factory):
    """One of every shape, for all kernels."""
    return {name: make_reference(name, tmp_path_factory.mktemp("checkpoint")) for name in SHAPES}


@pytest.fixture(
    scope="module",
    params=[
        pytest.param((shape, kernel), marks=marks_for_case(kernel, "float32"))
        for shape in SHAPES
        for kernel in IN_FLOAT32
    ],
    ids=lambda param: f"{param[0]}, {param[1].name}",
)
def pair(request, references):
    """(transformers' model, ours loaded from what it saved, with a kernel it may run with)."""
    shape, kernel = request.param
    reference = references[shape]
    return reference.model, load_with(reference.folder, kernel)


def load_with(folder, kernel):
    dia = result_of(checkpoint.load(folder, "float32", kernel=kernel))
    return kernel.install(dia, threads_for(kernel))


def assert_near(ours: torch.Tensor, theirs: torch.Tensor) -> None:
    """Within 1e-4 of the reference's scale, everywhere."""
    assert ours.shape == theirs.shape
    assert (ours - theirs).abs().max() <= 1e-4 * theirs.abs().max()


def random_codes(model, frames: int, seed: int = 1) -> np.ndarray:
    config = model.config
    random = np.random.default_rng(seed)
    return random.integers(0, config.num_codes, (frames, config.decoder.num_channels))


def text_ids(text: bytes) -> torch.Tensor:
    return torch.tensor([list(text)])


@torch.inference_mode()
def test_encoder_states(pair):
    theirs, ours = pair
    expected = theirs.model.encoder(text_ids(TEXT)).last_hidden_state
    assert_near(ours.dia.encoder(text_ids(TEXT), ours.dia.rotaries[0]), expected)


@torch.inference_mode()
def test_logits_match_with_or_without_the_cache(pair):
    theirs, ours = pair
    decoder = ours.config.decoder
    codes = apply_delay(random_codes(ours, 40), ours.config.delay_pattern, decoder.bos)[:40]
    ids = torch.from_numpy(codes)[None]
    expected = theirs(input_ids=text_ids(TEXT), decoder_input_ids=ids).logits
    expected = expected.view(decoder.num_channels, 40, decoder.vocab_size).transpose(0, 1)

    # Of a prompt, the logits after its last position.
    whole = ours(ids, [ours.encode(TEXT, cfg_scale=0.0, max_positions=256)])[0]
    assert_near(whole[-1:], expected[-1:])

    cache = ours.encode(TEXT, cfg_scale=0.0, max_positions=256)
    steps = [ours(ids[:, :25], [cache])[0][-1:]]
    # A step's logits lie where the next one's will.
    steps += [ours(ids[:, [position]], [cache])[0].clone() for position in range(25, 40)]
    assert_near(torch.cat(steps), expected[24:])

    cache = ours.encode(TEXT, cfg_scale=0.0, max_positions=256)
    steps = [ours(ids[:, [position]], [cache])[0].clone() for position in range(40)]
    assert_near(torch.cat(steps), expected)


@torch.inference_mode()
def test_unconditional_half_reads_zeros_of_the_same_length(pair):
    theirs, ours = pair
    ids = torch.full((1, 1, ours.config.decoder.num_channels), ours.config.decoder.bos)
    both = ours(ids.expand(2, -1, -1), [ours.encode(TEXT, cfg_scale=1.0, max_positions=256)])
    # transformers pads: a masked tail must change nothing.
    padded = torch.cat([text_ids(TEXT), torch.zeros(1, 9, dtype=torch.long)], dim=1)
    mask = (torch.arange(padded.shape[1]) < len(TEXT)).long()[None]
    for branch, text in zip(both, (padded, torch.zeros_like(padded)), strict=True):
        expected = theirs(input_ids=text, attention_mask=mask, decoder_input_ids=ids).logits
        assert_near(branch[0], expected.view(branch[0].shape))


def generate_ours(model, params: GenerationParams, prompt=None) -> Row:
    row = Row(model.config, TEXT, params, prompt)
    run_to_end(model, [row])
    return row


@pytest.fixture(scope="module")
def said():
    """What transformers said so far: it says the same beside every one of our kernels."""
    return {}


def remembered(said, theirs, config, cfg_scale, max_tokens, prompt, end=None) -> np.ndarray:
    """transformers' codes, once for all kernels. end: the code that stands for EOS just now."""
    key = id(theirs), cfg_scale, max_tokens, prompt.tobytes(), end
    if key not in said:
        said[key] = generate(theirs, config, TEXT, cfg_scale, max_tokens, prompt)
    return said[key]


@pytest.mark.parametrize("cfg_scale", long_after(1, [3.0, 0.0]))
@pytest.mark.parametrize("prompt_frames", long_after(1, [21, 0]))
def test_greedy_generation_through_max_tokens(pair, said, cfg_scale, prompt_frames):
    theirs, ours = pair
    prompt = random_codes(ours, prompt_frames)
    params = GenerationParams(temperature=0.0, cfg_scale=cfg_scale, max_tokens=110)
    row = generate_ours(ours, params, prompt)
    expected = remembered(said, theirs, ours.config, cfg_scale, 110, prompt)
    assert row.finish_reason == "max_tokens"
    assert len(expected) == ours.config.frames_within(110, prompt_frames) >= 60
    np.testing.assert_array_equal(row.codes(), expected)


@pytest.mark.parametrize("cfg_scale", long_after(1, [3.0, 0.0]))
@pytest.mark.parametrize("prompt_frames", long_after(1, [21, 0]))
def test_greedy_generation_through_eos(pair, said, cfg_scale, prompt_frames):
    theirs, ours = pair
    prompt = random_codes(ours, prompt_frames)
    params = GenerationParams(temperature=0.0, cfg_scale=cfg_scale, max_tokens=130)
    codes = list(generate_ours(ours, params, prompt).codes()[:, 0])
    first_said = [frame for frame, code in enumerate(codes) if code not in codes[:frame]]
    end = next(frame for frame in first_said if frame >= 60)
    with end_instead_of(codes[end], theirs, ours) as ours_that_ends:
        row = generate_ours(ours_that_ends, params, prompt)
        expected = remembered(said, theirs, ours.config, cfg_scale, 130, prompt, codes[end])
    assert row.finish_reason == "end"
    assert len(expected) == end
    np.testing.assert_array_equal(row.codes(), expected)


@contextmanager
def end_instead_of(code: int, theirs, ours):
    """Both models say EOS on channel 0 where they would have said `code`: their rows swap.

    Yields ours; theirs is changed until the end of the block.
    """
    weight = theirs.logits_dense.weight.data
    swapped = [code, ours.config.decoder.eos]
    weight[swapped] = weight[swapped[::-1]]
    try:
        yield SwappedCodes(ours, swapped)
    finally:
        weight[swapped] = weight[swapped[::-1]]


class SwappedCodes:
    """A model with the logits of two codes of channel 0 exchanged."""

    def __init__(self, model, codes: list[int]) -> None:
        self.model, self.codes = model, codes
        self.config, self.can_prefill_ahead = model.config, model.can_prefill_ahead
        self.encode = model.encode

    @torch.inference_mode()
    def __call__(self, codes_BTC, caches):
        logits = self.model(codes_BTC, caches)
        logits[:, :, 0, self.codes] = logits[:, :, 0, self.codes[::-1]]
        return logits
