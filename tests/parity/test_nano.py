"""The embedded voice's folder: the public implementation loads it and says the same codes."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import DiaForConditionalGeneration

from dia_demo.codec.codec import load_codec
from dia_demo.text.script import encode_script
from tests.helpers.models.checkpoints import load, say
from tests.helpers.models.known import EMBEDDED_FOLDER
from tools.transformers_codes import generate

pytestmark = pytest.mark.processor

LARGEST_FILE = 10_000_000


@pytest.fixture(scope="module")
def theirs():
    model, told = DiaForConditionalGeneration.from_pretrained(
        EMBEDDED_FOLDER, dtype=torch.float32, output_loading_info=True, local_files_only=True
    )
    return model.eval(), told


def test_transformers_finds_no_missing_surplus_or_misshapen_key(theirs):
    _, told = theirs
    for kind in ("missing_keys", "unexpected_keys", "mismatched_keys"):
        assert not told[kind], kind


@pytest.mark.parametrize("cfg_scale", [0.0, 2.0])
def test_greedy_codes_are_those_of_transformers(theirs, cfg_scale):
    text = encode_script("[S1] Hello there. [S2] Good morning.")
    model = load(EMBEDDED_FOLDER)
    model.config = replace(model.config, voices=None)  # transformers sets no marks.
    max_tokens = 90
    settings = dict(temperature=0.0, cfg_scale=cfg_scale, top_k=45, max_tokens=max_tokens)
    row = say(model, text, **settings)
    expected = generate(theirs[0], model.config, text, cfg_scale, max_tokens)
    np.testing.assert_array_equal(row.codes(), expected)


@pytest.mark.long
def test_transformers_takes_a_guidance_of_one_for_none(theirs):
    """nano's own default is 1.0, which the card explains: here it guides."""
    text, max_tokens = encode_script("[S1] Hello there. [S2] Good morning."), 90
    model = load(EMBEDDED_FOLDER)
    model.config = replace(model.config, voices=None)  # transformers sets no marks.
    settings = dict(temperature=0.0, top_k=45, max_tokens=max_tokens)
    unguided, guided = (say(model, text, cfg_scale=scale, **settings) for scale in (0.0, 1.0))
    assert not np.array_equal(unguided.codes(), guided.codes())
    for scale, row in ((1.0, unguided), (1.0001, guided)):
        expected = generate(theirs[0], model.config, text, scale, max_tokens)
        np.testing.assert_array_equal(row.codes(), expected)


def test_the_nano_codec_fits_the_nano_model():
    config, codec = load(EMBEDDED_FOLDER).config, load_codec(EMBEDDED_FOLDER)
    assert codec.num_codebooks == config.decoder.num_channels
    assert codec.codebook_size == config.num_codes


def test_every_file_is_small_enough_for_the_repository():
    for path in EMBEDDED_FOLDER.rglob("*"):
        assert path.is_dir() or path.stat().st_size < LARGEST_FILE, path


def test_the_folder_holds_no_pickle():
    suffixes = {path.suffix for path in Path(EMBEDDED_FOLDER).rglob("*")}
    assert not suffixes & {".pth", ".pt", ".bin", ".pkl", ".ckpt"}
