"""The compiled sampler draws what the reference draws, and is checked before it is used."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from dia_demo.config import GenerationParams
from dia_demo.engine import sampling
from dia_demo.engine.sampling import Sampler
from dia_demo.errors import RunError
from tests.helpers.sampling import ReferenceSampler, random_case, sample


@pytest.mark.processor
def test_the_compiled_sampler_draws_what_the_operations_draw():
    """Their sums differ by rounding: a uniform that lies just there may draw the next code."""
    draws = differ = 0
    for seed in range(600):
        cond, uncond, params, eos = random_case(seed)
        uniforms = torch.rand(1, len(cond))
        ours, compiled = (
            sample(each, [params], eos, cond[None], uncond[None], uniforms)[0]
            for each in (ReferenceSampler.create, Sampler)
        )
        draws += len(ours)
        differ += int((ours != compiled).sum())
    assert draws > 2000 and differ <= 2


@pytest.mark.processor
def test_equal_logits_are_kept_up_to_the_top_k():
    """As many candidates as top k allows, also where more have the same logit."""
    for top_k in (1, 3, 8, 16, 20):
        params = GenerationParams(temperature=1.0, cfg_scale=1.0, top_p=1.0, top_k=top_k)
        rows = 400
        cond = torch.zeros(rows, 1, 20)
        cond[..., 5] = 1.0
        uniforms = torch.linspace(0, 0.999, rows).view(-1, 1)
        codes = sample(Sampler, [params] * rows, 20, cond, cond, uniforms)
        assert len(codes.unique()) == top_k and 5 in codes


def test_logits_may_lie_in_memory_in_any_order():
    cond, uncond, params, eos = random_case(9)
    sizes = SimpleNamespace(eos=eos, num_channels=len(cond), vocab_size=cond.shape[1])
    logits, uniforms = torch.stack((cond, uncond)), np.full((1, len(cond)), 0.5, np.float32)
    sampler = Sampler([params], [2], sizes)
    expected = sampler(logits, uniforms).tolist()
    assert sampler(logits.mT.contiguous().mT, uniforms).tolist() == expected
    padded = torch.nn.functional.pad(logits.flatten(1), (0, 24))[:, : logits[0].numel()]
    assert sampler(padded.unflatten(1, logits.shape[1:]), uniforms).tolist() == expected


@pytest.fixture
def unchecked():
    """The sampler is checked again, in the test and after it."""
    sampling.check_sampler.cache_clear()
    yield
    sampling.check_sampler.cache_clear()


@pytest.mark.processor
def test_it_works_here(unchecked):
    sampling.check_sampler()


def test_the_known_codes_are_those_of_the_reference(unchecked, monkeypatch):
    monkeypatch.setattr(sampling, "Sampler", ReferenceSampler.create)
    sampling.check_sampler()


def test_what_does_not_compile_is_explained(unchecked, monkeypatch):
    def broken(*_):
        raise RuntimeError("LLVM")

    monkeypatch.setattr(Sampler, "__call__", broken)
    with pytest.raises(RunError, match=r"RuntimeError: LLVM\. Install .* DIA_CACHE"):
        sampling.check_sampler()


def test_a_wrong_result_is_noticed(unchecked, monkeypatch):
    right = Sampler.__call__
    monkeypatch.setattr(Sampler, "__call__", lambda *given: right(*given) + 1)
    with pytest.raises(RunError, match="instead of"):
        sampling.check_sampler()
