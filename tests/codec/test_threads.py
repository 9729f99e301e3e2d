"""The number of threads changes nothing that a codec computes."""

import numpy as np
import pytest
import torch

from dia_demo.codec import convolution
from dia_demo.codec.codec import load_codec, random_codec
from dia_demo.codec.pieces import split_convolution
from dia_demo.model.cpu_model import torch_threads
from tests.codec.test_codec import random_codes, streamed
from tests.helpers.long import long_after
from tests.helpers.models.known import EMBEDDED_FOLDER

pytestmark = pytest.mark.processor


@pytest.mark.parametrize("precision", long_after(1, ["float32", "bfloat16"]))
@pytest.mark.parametrize("backend", long_after(1, convolution.BACKENDS))
def test_the_number_of_threads_changes_no_sample(monkeypatch, backend, precision):
    """Convolutions long and wide enough to be cut into pieces, both by rows and by outputs."""
    shape = dict(encoder_dim=4, encoder_rates=[8, 8], decoder_dim=512, decoder_rates=[8, 8])
    shape |= dict(latent_dim=16, n_codebooks=2, codebook_size=32, codebook_dim=4, sample_rate=16000)
    backends = {name: convolution.BACKENDS[name] for name in (backend, "plain")}
    monkeypatch.setattr(convolution, "BACKENDS", backends)
    monkeypatch.setattr(convolution, "_suits", lambda name: True)
    codec = random_codec(precision=precision, **shape)
    codes = random_codes(codec, 75)
    found = []
    for threads in (1, 2, 3):
        with torch_threads(threads):
            found.append(codec.decode(codes))
            found.append(streamed(codec, codes, iter([1, 40, 2, 30, 99])))
    for samples in found:
        np.testing.assert_array_equal(samples, found[0])


@pytest.mark.parametrize(
    ("width", "rows", "kind"),
    [(1024, 64, "_OutputPieces"), (96, 2**14, "_RowPieces"), (16, 2**14, "PlainConvolution")],
)
def test_a_convolution_with_little_work_is_not_cut(width, rows, kind):
    """Pieces of the embedded voice's codec would take longer than the whole."""
    weight_OIK, bias_O = torch.zeros(width, width, 7), torch.zeros(width)
    convolved = split_convolution(convolution.PlainConvolution, weight_OIK, bias_O, 1, rows)
    assert type(convolved).__name__ == kind


def test_the_number_of_threads_changes_no_code_of_a_prompt():
    codec = load_codec(EMBEDDED_FOLDER)
    noise = np.random.default_rng(0).normal(0, 0.1, 32000).astype("f")
    found = []
    for threads in (1, 2, 3):
        with torch_threads(threads):
            found.append(codec.encode(noise))
    for codes in found:
        np.testing.assert_array_equal(codes, found[0])
