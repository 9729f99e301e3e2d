"""Cases for both samplers of engine/sampling.py."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import torch

from dia_demo.config import GenerationParams


def sample(make, params, eos, cond_RCV, uncond_RCV, uniforms_RC) -> torch.Tensor:
    """Codes [R, C] of rows with two halves each."""
    rows, channels, vocab = cond_RCV.shape
    sizes = SimpleNamespace(eos=eos, num_channels=channels, vocab_size=vocab)
    logits = torch.stack((cond_RCV, uncond_RCV), 1).flatten(0, 1)
    sampler = make(params, [2] * rows, sizes)
    return torch.from_numpy(sampler(logits, uniforms_RC.numpy()).copy())


def random_case(seed: int):
    """(cond, uncond, params, eos): any size, sharpness and setting, EOS sometimes the likeliest."""
    rng = np.random.default_rng(seed)
    torch.manual_seed(seed)
    channels, codes = int(rng.integers(1, 10)), int(rng.integers(4, 200))
    vocab = codes + 4
    sharpness = float(rng.choice([0.1, 1.0, 5.0, 20.0]))
    cond = sharpness * torch.randn(channels, vocab)
    uncond = cond + sharpness * float(rng.choice([0.1, 1.0])) * torch.randn(channels, vocab)
    if rng.random() < 0.3:
        cond[0, codes] = cond[0].max() + 1
    params = GenerationParams(
        temperature=float(rng.choice([0.01, 0.3, 1.0, 1.2, 1.8, 5.0])),
        cfg_scale=float(rng.choice([0.0, 0.5, 1.0, 3.0, 20.0])),
        top_p=float(rng.choice([0.01, 0.3, 0.9, 0.95, 0.999, 1.0])),
        top_k=int(rng.choice([1, 2, 7, 45, vocab - 1, vocab]).clip(1, vocab)),
    )
    return cond, uncond, params, codes
