"""Random weights: two implementations that round differently must choose the same codes."""

from __future__ import annotations

import pytest
import torch

from dia_demo.config import DecoderConfig, EncoderConfig, ModelConfig
from tests.helpers.models.checkpoints import load
from tools.make_random_dia import NAMINGS, write_checkpoint

# Dia's heads are 128 wide, and its attention has no scale.
DEEP = ModelConfig(
    encoder=EncoderConfig(6, 64, 2, 2, 128, 128),
    decoder=DecoderConfig(8, 64, 2, 2, 128, 2, 2, 128, 128, max_positions=64),
)
STEPS, CHANGE = 8, 1e-4


def logits_of(model) -> torch.Tensor:
    """The last logits after a few steps with fixed codes."""
    generator = torch.Generator().manual_seed(1)
    cache = model.encode(b"\x01 Good morning. \x02 Did you sleep well?", 3.0, STEPS)
    shape = (STEPS, 1, 1, model.config.decoder.num_channels)
    for codes in torch.randint(0, model.config.num_codes, shape, generator=generator):
        logits = model(codes.expand(cache.branches, -1, -1), [cache])
    return logits


@pytest.mark.parametrize("naming", NAMINGS)
def test_a_small_change_of_the_text_stays_small(tmp_path, naming):
    write_checkpoint(tmp_path, DEEP, naming)
    model = load(tmp_path)
    before = logits_of(model)
    embedding = model.encoder.embedding.weight
    noise = torch.randn(embedding.shape, generator=torch.Generator().manual_seed(2))
    with torch.no_grad():
        embedding.mul_(1 + CHANGE * noise)
    change = (logits_of(model) - before).norm() / before.norm()
    assert CHANGE / 100 < change < 10 * CHANGE
