"""Sampling: the distribution of transformers' own logits processors, drawn by a row's uniforms, the
same in the program and as operations of NumPy. See also test_compiled_sampler.py."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from transformers.generation.logits_process import (
    DiaClassifierFreeGuidanceLogitsProcessor,
    DiaEOSChannelFilterLogitsProcessor,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

from dia_demo.config import GenerationParams
from dia_demo.engine.sampling import NOT_FINITE, Sampler
from tests.helpers.sampling import ReferenceSampler, draw, random_case, sample

JUST_BELOW_ONE = float(np.nextafter(np.float32(1), np.float32(0)))


def their_distribution(cond_CV, uncond_CV, params, eos) -> torch.Tensor:
    """Probabilities [C, V] in the order of transformers' generation_dia.py."""
    channels = len(cond_CV)
    ids = torch.zeros(channels, 1, dtype=torch.long)
    scores = cond_CV.clone()
    if params.cfg_scale:
        guide = _guidance(params.cfg_scale, params.top_k)
        scores = guide(ids, torch.cat([cond_CV, uncond_CV]))
    scores = TemperatureLogitsWarper(params.temperature)(ids, scores)
    scores = DiaEOSChannelFilterLogitsProcessor(channels, eos)(ids, scores)
    scores = TopKLogitsWarper(params.top_k)(ids, scores)
    if params.top_p < 1:
        scores = TopPLogitsWarper(params.top_p)(ids, scores)
    return scores.softmax(dim=-1)


def _guidance(cfg_scale, top_k) -> DiaClassifierFreeGuidanceLogitsProcessor:
    guide = DiaClassifierFreeGuidanceLogitsProcessor(guidance_scale=2.0, guidance_top_k=top_k)
    guide.guidance_scale = cfg_scale  # Its constructor refuses 1 and below; its formula does not.
    return guide


@pytest.fixture(params=[ReferenceSampler.create, Sampler], ids=["operations", "compiled"])
def make(request):
    """Makes a sampler of either kind."""
    return request.param


def our_distribution(cond_CV, uncond_CV, params, eos) -> torch.Tensor:
    """Probabilities [C, V]: those that are drawn from, and 1 where there is no choice."""
    sizes = SimpleNamespace(eos=eos, num_channels=len(cond_CV), vocab_size=cond_CV.shape[1])
    sampler = ReferenceSampler.create([params], [2], sizes)
    candidates = sampler.candidates_of(cond_CV[None].numpy(), uncond_CV[None].numpy())
    codes, logits, probs = map(torch.from_numpy, (*candidates, sampler.probabilities(*candidates)))
    probs = probs / probs.sum(dim=-1, keepdim=True)
    no_choice = (codes[0, :, 0] == eos) & logits[0, :, 0].isfinite()
    probs[0, no_choice] = torch.eye(probs.shape[-1])[0]
    spread = torch.zeros_like(cond_CV)[None]
    return spread.scatter_add_(-1, codes, probs)[0]


def test_the_distribution_is_that_of_transformers():
    compared = 0
    for seed in range(600):
        cond, uncond, params, eos = random_case(seed)
        theirs = their_distribution(cond, uncond, params, eos)
        has_codes = theirs.isfinite().all(dim=-1)  # They end in NaN where nothing may be said.
        ours = our_distribution(cond, uncond, params, eos)
        difference = (ours - theirs)[has_codes].abs()
        assert not len(difference) or difference.max() < 1e-6, (seed, params)
        compared += int(has_codes.sum())
    assert compared > 2000


def test_eos_is_chosen_only_where_it_is_the_most_likely_code():
    ends = 0
    for seed in range(300):
        cond, uncond, params, eos = random_case(seed)
        guided = cond[0] + params.cfg_scale * (cond[0] - uncond[0])
        candidates = (
            guided.topk(params.top_k).indices if params.cfg_scale else torch.arange(eos + 1)
        )
        candidates = candidates[candidates <= eos]
        ours = our_distribution(cond, uncond, params, eos)
        is_end = len(candidates) > 0 and candidates[cond[0, candidates].argmax()] == eos
        if is_end:
            assert ours[0, eos] == 1
        elif len(candidates) > 0:
            assert ours[0, eos] == 0
        ends += bool(is_end)
    assert ends > 30


def test_no_row_ever_says_what_is_no_audio(make):
    """EOS off channel 0, PAD, BOS and what follows: not even where nothing else is left."""
    for seed in range(300):
        cond, uncond, params, eos = random_case(seed)
        if seed % 3 == 0:
            cond[:, eos + 1 :] += 100
        if seed % 5 == 0:
            params = replace(params, temperature=0.0)
        for uniform in (0.0, 0.5, JUST_BELOW_ONE):
            uniforms = torch.full((1, len(cond)), uniform)
            codes = sample(make, [params], eos, cond[None], uncond[None], uniforms)[0]
            assert codes.min() >= 0 and codes[0] <= eos
            assert len(codes) == 1 or codes[1:].max() < eos


def test_where_only_forbidden_codes_are_left_code_0_is_said(make):
    """Guidance may keep specials alone; the references' argmax of -inf is code 0, ours drew NaN."""
    cond = torch.zeros(1, 2, 14)
    uncond = cond.clone()
    cond[..., 11:] = 9.0
    for temperature in (0.0, 1.0):
        params = GenerationParams(temperature=temperature, cfg_scale=3.0, top_k=3)
        codes = sample(make, [params], 10, cond, uncond, torch.full((1, 2), 0.9))
        assert codes.tolist() == [[0, 0]]


# Drawing


def drawn(codes, probs, uniforms) -> int:
    return draw(codes.numpy(), probs.numpy(), uniforms.numpy()).item()


def test_the_draw_follows_the_distribution(make):
    """Against the probabilities, by chi-square: 60,000 draws of 11 codes, fixed seed."""
    cond, uncond = torch.zeros(1, 1, 16), torch.zeros(1, 1, 16)
    cond[0, 0, :12] = torch.linspace(-2, 1.5, 12)
    params = GenerationParams(temperature=1.3, cfg_scale=0.0, top_k=11, top_p=1.0)
    expected = our_distribution(cond[0], uncond[0], params, 12)[0].double()
    assert (expected > 0).sum() == 11
    rows = 60_000
    uniforms = torch.rand(rows, 1, generator=torch.Generator().manual_seed(5))
    logits = cond.expand(rows, 1, 16), uncond.expand(rows, 1, 16)
    drawn = sample(make, [params] * rows, 12, *logits, uniforms)
    counts = torch.bincount(drawn.view(-1), minlength=16).double()
    assert counts[expected == 0].sum() == 0
    some = expected > 0
    chi_square = ((counts - rows * expected)[some] ** 2 / (rows * expected[some])).sum()
    assert chi_square < 29.6  # 10 degrees of freedom, p = 0.001


def test_uniforms_at_both_ends_draw_codes_that_may_be_drawn():
    """At 0 the likeliest code; just below 1 the last with a probability, not the first without."""
    codes = torch.tensor([[[5, 3, 9, 1, 7]]])
    probabilities = torch.tensor([[[0.4, 0.3, 0.2, 0.1, 0.0]]])
    assert drawn(codes, probabilities, torch.zeros(1, 1)) == 5
    assert drawn(codes, probabilities, torch.full((1, 1), JUST_BELOW_ONE)) == 1
    for size in (2, 45, 1028):
        thirds = torch.full((1, 1, size), 1 / 3).softmax(-1)
        thirds[..., -1] = 0
        last = drawn(torch.arange(size)[None, None], thirds, torch.full((1, 1), JUST_BELOW_ONE))
        assert last == size - 2


@pytest.mark.parametrize("uniform", [0.0, 0.3, 0.5, 0.999])
def test_the_draw_inverts_the_cumulative_probabilities(uniform):
    codes = torch.arange(4).view(1, 1, 4)
    probabilities = torch.tensor([[[0.5, 0.25, 0.125, 0.125]]])
    expected = np.searchsorted([0.5, 0.75, 0.875], uniform, side="right")
    assert drawn(codes, probabilities, torch.full((1, 1), uniform)) == expected


def test_temperature_0_takes_the_likeliest_whatever_the_uniforms(make):
    for seed in range(50):
        cond, uncond, params, eos = random_case(seed)
        params = replace(params, temperature=0.0, cfg_scale=0.0)
        sayable = [cond[0, : eos + 1], *cond[1:, :eos]]
        expected = [channel.argmax().item() for channel in sayable]
        for uniforms in (torch.zeros(1, len(cond)), torch.full((1, len(cond)), JUST_BELOW_ONE)):
            codes = sample(make, [params], eos, cond[None], uncond[None], uniforms)
            assert codes[0].tolist() == expected


# Rows


def test_rows_of_one_sampler_are_each_as_alone(make):
    """A top k, a temperature or a guidance that leaks into its neighbour shows here."""
    rng = np.random.default_rng(0)
    for seed in range(100):
        torch.manual_seed(seed)
        rows, channels, codes = int(rng.integers(2, 5)), 4, 60
        cond, uncond = 3 * torch.randn(2, rows, channels, codes + 4)
        uniforms = torch.rand(rows, channels)
        params = [
            GenerationParams(
                temperature=float(rng.choice([0.0, 0.5, 1.0, 2.0])),
                cfg_scale=float(rng.choice([0.0, 1.0, 4.0])),
                top_p=float(rng.choice([0.2, 0.9, 1.0])),
                top_k=int(rng.choice([1, 5, 45, 64])),
            )
            for _ in range(rows)
        ]
        together = sample(make, params, codes, cond, uncond, uniforms)
        for row, row_params in enumerate(params):
            part = slice(row, row + 1)
            alone = sample(make, [row_params], codes, cond[part], uncond[part], uniforms[part])
            assert torch.equal(together[part], alone), (seed, row, params)


def test_sampling_leaves_the_logits_as_they_were(make):
    """A row without guidance has one branch that stands for both."""
    cond, uncond, params, eos = random_case(3)
    sizes = SimpleNamespace(eos=eos, num_channels=len(cond), vocab_size=cond.shape[1])
    logits = torch.stack((cond, uncond, cond))
    before = logits.clone()
    rows = [params, replace(params, cfg_scale=0.0)]
    make(rows, [2, 1], sizes)(logits, np.zeros((2, len(cond)), np.float32))
    assert torch.equal(logits, before)


def test_a_row_of_one_half_is_sampled_as_with_two_equal_ones(make):
    cond, _, params, eos = random_case(7)
    sizes = SimpleNamespace(eos=eos, num_channels=len(cond), vocab_size=cond.shape[1])
    uniforms = torch.rand(1, len(cond))
    for cfg_scale in (0.0, 3.0):
        rows = [replace(params, cfg_scale=cfg_scale)]
        one = make(rows, [1], sizes)(cond[None], uniforms.numpy())
        two = sample(make, rows, eos, cond[None], cond[None], uniforms)
        assert one.tolist() == two.tolist()


@pytest.mark.parametrize("bad", [torch.nan, torch.inf, -torch.inf])
def test_a_row_with_a_logit_that_is_not_finite_has_no_code(make, bad):
    for slot in range(4):
        cond, uncond = torch.zeros(2, 3, 14), torch.zeros(2, 3, 14)
        (cond, uncond)[slot % 2][slot // 2, 2, 13] = bad
        params = [GenerationParams(cfg_scale=3.0, top_k=5)] * 2
        codes = sample(make, params, 10, cond, uncond, torch.rand(2, 3))
        assert codes[slot // 2].tolist() == [NOT_FINITE] * 3
        assert (codes[1 - slot // 2] >= 0).all()


def test_guided_logits_beyond_float32_draw_codes_that_may_be_drawn(make):
    """Finite logits whose guided ones are not."""
    cond, uncond = torch.zeros(1, 2, 14), torch.zeros(1, 2, 14)
    cond[..., ::3], uncond[..., ::3] = 3e38, -3e38
    cond[..., 1::3], uncond[..., 1::3] = -3e38, 3e38
    for top_k in (1, 5, 14):
        params = GenerationParams(temperature=1.0, cfg_scale=3.0, top_k=top_k)
        codes = sample(make, [params], 10, cond, uncond, torch.full((1, 2), 0.9))[0]
        assert (codes >= 0).all() and codes[0] <= 10 and codes[1] < 10
