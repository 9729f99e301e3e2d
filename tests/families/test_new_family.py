"""A new family is a package of its own and an entry of the table: it generates with nothing else
changed."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

import dia_demo
from dia_demo.codec.codec import random_codec
from dia_demo.codec.config import CodecFormat
from dia_demo.engine.family import Codecs, Family, Profile
from dia_demo.engine.row import Row
from dia_demo.families import table
from dia_demo.families.dia.weights import WEIGHTS
from dia_demo.model.loading import random_model
from tests.helpers.models.checkpoints import CODEC, SMALL

FORMAT = CodecFormat(16000, 256, n_codebooks=3, codebook_size=64)
STEPS = 12


class CountingRow(Row):
    """Its codes count the steps, on every channel, and it ends after STEPS of them."""

    @staticmethod
    def make_sampler(params, _branches, decoder):
        steps = iter(range(1000))

        def sample(logits, uniforms) -> np.ndarray:
            code = next(steps)
            codes = np.full((len(params), decoder.num_channels), code, np.int64)
            codes[:, 0] = decoder.eos if code == STEPS else code
            return codes

        return sample


def opened(folder, **_):
    yield 1.0
    return random_codec(**CODEC)


COUNTING = Family(
    name="counting",
    is_config=lambda raw: raw.get("model_type") == "counting",
    read_config=lambda raw, folder: replace(SMALL, delay_pattern=tuple(raw["lags"])),
    codecs=Codecs(
        format=FORMAT,
        read_format=lambda folder: FORMAT,
        open=opened,
        find=opened,
    ),
    encode=lambda script, transcript: bytes(len(word) for word in script.split()),
    row=CountingRow,
    load=lambda info, precision, threads: random_model(info.config, precision, threads),
    prepare=lambda info, precision, threads: pytest.fail("nothing is exported here"),
    check_files=lambda info: None,
    weights=WEIGHTS,
    config=SMALL,
    profiles={"owner/counting": Profile("Counting", "It counts.", license="mit")},
    other=Profile("", "A counting model of your own."),
)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A checkpoint of the new family, which is in the table."""
    monkeypatch.setattr(table, "FAMILIES", [*table.FAMILIES, COUNTING])
    monkeypatch.setattr("dia_demo.families.resolve.FAMILIES", table.FAMILIES)
    config = {"model_type": "counting", "lags": [0, 1, 2]}
    (tmp_path / "config.json").write_text(json.dumps(config))
    return tmp_path


def test_a_new_family_generates(folder):
    with dia_demo.load(str(folder), precision="float32", threads=1) as model:
        take = model.generate("one two three", max_tokens=60)
    assert model.info.family is COUNTING and model.info.config.delay_pattern == (0, 1, 2)
    assert take.sample_rate == FORMAT.sample_rate and len(take.samples) >= STEPS * 256
    # Its own sampler and end; the delays are undone, so a later channel is ahead by its own.
    expected = np.arange(STEPS)[:, None] + np.array([0, 1, 2])
    np.testing.assert_array_equal(take.codes, expected)


def test_a_hub_model_that_a_family_knows_is_described_before_it_is_fetched(folder):
    from dia_demo.families.resolve import assumed_info

    info = assumed_info("owner/counting")
    assert info.family is COUNTING and info.folder is None and not info.has_weights
    assert (info.title, info.sample_rate, info.config) == ("Counting", 16000, SMALL)
