"""The memory of a row's keys and values: it grows without changing anything."""

import numpy as np
import pytest
import torch

from dia_demo.model import kv_cache
from tests.helpers.models.checkpoints import SMALL, load, random_codes, say, write_small

pytestmark = pytest.mark.processor

TEXT = b"\x01 Hello there.\n\x02 Hi."


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return load(write_small(tmp_path_factory.mktemp("small")))


def test_slots_not_written_are_nan_also_after_growth(model, monkeypatch):
    """Reading one must be loud: zeros would pass for keys."""
    monkeypatch.setattr(kv_cache, "FIRST_POSITIONS", 20)
    cache = model.encode(TEXT, cfg_scale=1.0, max_positions=100)
    codes = torch.zeros(2, 5, SMALL.decoder.num_channels, dtype=torch.long)
    model(codes, [cache])
    assert cache.length == 5 and cache.branches == 2
    for room in (20, 95):
        cache.reserve(room - cache.length)
        for slots in (*cache._keys, *cache._values):
            assert slots.shape[2] >= room
            assert slots[:, :, :5].isfinite().all() and slots[:, :, 5:].isnan().all()


@pytest.mark.parametrize("first", [16, 100])
def test_growing_the_cache_changes_nothing(model, monkeypatch, first):
    params = dict(temperature=1.0, max_tokens=300, seed=2)
    monkeypatch.setattr(kv_cache, "FIRST_POSITIONS", 1000)
    expected = say(model, TEXT, **params).codes()
    monkeypatch.setattr(kv_cache, "FIRST_POSITIONS", first)
    np.testing.assert_array_equal(say(model, TEXT, **params).codes(), expected)


def test_a_row_longer_than_the_first_cache_runs_to_the_models_limit(model):
    limit = SMALL.decoder.max_positions
    row = say(model, TEXT, max_tokens=limit, cfg_scale=0.0)
    assert limit > 2 * kv_cache.FIRST_POSITIONS
    assert len(row.codes()) == SMALL.frames_within(limit)


def test_a_prompt_longer_than_the_first_cache_is_read(model, monkeypatch):
    prompt = random_codes(SMALL, 30)
    expected = say(model, TEXT, prompt, max_tokens=60).codes()
    monkeypatch.setattr(kv_cache, "FIRST_POSITIONS", 8)
    np.testing.assert_array_equal(say(model, TEXT, prompt, max_tokens=60).codes(), expected)


def test_the_longest_text_the_model_reads_is_read(model):
    assert len(say(model, b"x" * SMALL.encoder.max_positions, max_tokens=20).codes()) > 0
