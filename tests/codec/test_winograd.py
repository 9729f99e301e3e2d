"""Convolutions by fewer products give what direct convolution gives."""

from __future__ import annotations

import pytest
import torch

from dia_demo.codec import convolution, winograd
from dia_demo.codec.codec import random_codec
from dia_demo.codec.convolution import LARGEST_ERROR, choose_backend
from dia_demo.codec.winograd import GroupedWinogradConvolution, WinogradConvolution
from tests.helpers.models.codec_folders import random_codes, signal_to_noise


@pytest.fixture(params=convolution.WINOGRAD.values(), ids=convolution.WINOGRAD)
def kind(request) -> type[WinogradConvolution]:
    return request.param


def make(kind, inputs: int, outputs: int, rows: int, dilation: int, usual: int | None = None):
    """A convolution, its input, and the expected output in float64. usual: rows it is made for."""
    generator = torch.Generator().manual_seed(inputs + rows + dilation)
    weight_OIK = torch.randn(outputs, inputs, 7, generator=generator) / inputs**0.5
    bias_O = torch.randn(outputs, generator=generator)
    x_TI = torch.randn(rows + 6 * dilation, inputs, generator=generator)
    expected_1OT = torch.conv1d(
        x_TI.double().t()[None], weight_OIK.double(), bias_O.double(), dilation=dilation
    )
    convolve = kind(weight_OIK, bias_O, dilation, usual or rows)
    return convolve, x_TI, expected_1OT[0].t()


def relative_error(out_TO, expected_TO) -> float:
    return float((out_TO.double() - expected_TO).norm() / expected_TO.norm())


@pytest.mark.parametrize("dilation", [1, 3, 9])
@pytest.mark.parametrize("rows", [1, 5, 6, 7, 54, 55, 500, 3000])
@pytest.mark.parametrize(("inputs", "outputs"), [(32, 48), (96, 96)])
def test_any_number_of_rows_gives_the_direct_convolution(kind, inputs, outputs, rows, dilation):
    convolve, x_TI, expected_TO = make(kind, inputs, outputs, rows, dilation, usual=300)
    out_TO = convolve(x_TI)
    assert out_TO.shape == (rows, outputs)
    assert relative_error(out_TO, expected_TO) < LARGEST_ERROR[torch.float32]


def test_blocks_give_the_same_as_the_whole(kind, monkeypatch):
    convolve, x_TI, _ = make(kind, 64, 64, 900, 3)
    whole_TO = convolve(x_TI)
    monkeypatch.setattr(winograd, "_BLOCK_FLOATS", 1)
    monkeypatch.setattr(winograd, "_FEWEST_TILES", 7)
    blocks, _, _ = make(kind, 64, 64, 900, 3)
    assert blocks.block < convolve.block
    torch.testing.assert_close(blocks(x_TI), whole_TO, rtol=0, atol=1e-4)


@pytest.mark.parametrize("rows", [64, 193, 256, 2048, 16384])
@pytest.mark.parametrize("dilation", [1, 9])
def test_grouped_products_always_have_the_rows_they_were_packed_for(rows, dilation):
    """For others oneDNN takes up to a hundred times as long. Half a usual block wastes little."""
    convolve, _, _ = make(GroupedWinogradConvolution, 32, 32, rows, dilation)
    for outputs in (rows, rows // 2, rows // 3):
        groups = -(-outputs // (convolve.tile * dilation))
        assert convolve._round_up(groups) % convolve.block == 0
    half = -(-rows // (2 * convolve.tile * dilation))
    assert convolve._round_up(half) <= half + half // 4 + 1


@pytest.mark.parametrize("rows", [72, 80, 96])  # Whole tiles, which are not copied, and others.
def test_an_offset_input_is_read_from_its_own_first_row(kind, rows):
    convolve, x_TI, expected_TO = make(kind, 32, 32, rows, 3)
    view_TI = torch.cat([torch.full((5, 32), 1e6), x_TI])[5:]
    assert relative_error(convolve(view_TI), expected_TO) < LARGEST_ERROR[torch.float32]


def test_an_output_is_added_to(kind):
    convolve, x_TI, expected_TO = make(kind, 32, 40, 30, 1)
    out_TO = torch.ones(30, 40)
    convolve.add(x_TI, out_TO)
    assert relative_error(out_TO - 1, expected_TO) < 2 * LARGEST_ERROR[torch.float32]


@pytest.mark.parametrize(
    ("shape", "dtype", "supported"),
    [
        ((96, 96, 7), torch.float32, True),
        ((96, 96, 7), torch.bfloat16, False),
        ((96, 96, 1), torch.float32, False),
        ((1, 96, 7), torch.float32, False),
    ],
)
def test_what_it_supports(shape, dtype, supported):
    assert WinogradConvolution.supports(torch.zeros(shape, dtype=dtype)) == supported


@pytest.mark.parametrize(
    ("has_avx512", "width", "expected"),
    [
        (False, 64, "Winograd"),
        (True, 64, "oneDNN packed"),
        (True, 192, "Winograd grouped"),
        (False, 16, "oneDNN packed"),
    ],
)
def test_the_class_of_processors_and_the_width_decide(monkeypatch, has_avx512, width, expected):
    """By a fixed rule, and not by a trial: backends round differently."""
    monkeypatch.setattr(convolution, "has_avx512", lambda: has_avx512)
    monkeypatch.setattr(convolution, "is_x86", lambda: True)
    choice = choose_backend(torch.randn(width, width, 7), 1e9, "float32")
    assert (choice.backend, choice.general) == (expected, "oneDNN packed")
    built = choice.build(torch.zeros(width, width, 1), torch.zeros(width), 10)
    assert isinstance(built, convolution.OneDnnConvolution)


@pytest.mark.parametrize("chosen", convolution.WINOGRAD)
def test_a_codec_that_decodes_with_it_sounds_the_same(chosen, monkeypatch):
    """More than 100 dB below the sound, streamed and whole alike."""
    shape = dict(encoder_dim=8, encoder_rates=[2, 4], decoder_dim=512, decoder_rates=[4, 2])
    shape |= dict(latent_dim=32, n_codebooks=2, codebook_size=32, codebook_dim=4, sample_rate=16000)
    sounds = {}
    for backend in ("plain", chosen):
        backends = {backend: convolution.BACKENDS[backend]}
        monkeypatch.setattr(convolution, "_suits", lambda name: True)
        monkeypatch.setattr(convolution, "BACKENDS", backends)
        # With some processors' products its error is just over the limit; it is then not used.
        monkeypatch.setattr(convolution, "LARGEST_ERROR", {torch.float32: 2e-5})
        codec = random_codec(precision="float32", **shape)
        assert codec.choice.backend == backend
        sounds[backend] = codec.decode(random_codes(codec, 90))
        monkeypatch.undo()
    assert signal_to_noise(sounds[chosen], sounds["plain"]) > 100
