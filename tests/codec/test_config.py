"""The config.json of a codec: its format is read, or refused by file, key and range."""

import json
from inspect import signature

import pytest

from dia_demo.codec.config import CodecFormat, DacSizes, read_codec_format
from dia_demo.codec.files import import_dac
from dia_demo.errors import InputError

SHAPE = {"sample_rate": 16000, "encoder_rates": [4, 8, 8], "decoder_rates": [8, 8, 4]}


def read(tmp_path, **changes) -> CodecFormat:
    (tmp_path / "codec").mkdir()
    (tmp_path / "codec" / "config.json").write_text(json.dumps(SHAPE | changes))
    return read_codec_format(tmp_path)


def test_without_a_codec_the_format_is_descripts(tmp_path):
    assert read_codec_format(tmp_path) == CodecFormat()


def test_a_format_is_read_and_what_is_missing_is_dacs(tmp_path):
    found = read(tmp_path, n_codebooks=4.0, latent_dim=None, encoder_rates=[4.0, 8], more={})
    assert found == CodecFormat(16000, 32, 4, 1024)
    assert type(found.n_codebooks) is type(found.hop_length) is int


def test_the_defaults_are_those_of_dac():
    defaults = {
        name: tuple(parameter.default) if name.endswith("rates") else parameter.default
        for name, parameter in signature(import_dac().DAC).parameters.items()
    }
    assert vars(DacSizes()).items() <= defaults.items()


@pytest.mark.parametrize("key", [key for key in vars(DacSizes()) if "rates" not in key])
@pytest.mark.parametrize("value", [0, -1, 10**9, 4000.5, True, "4000", [4000], float("nan")])
def test_a_size_that_is_no_size_is_refused(tmp_path, key, value):
    with pytest.raises(InputError, match=rf"config\.json: {key} must be a whole number from "):
        read(tmp_path, **{key: value})


@pytest.mark.parametrize("key", ["sample_rate", "n_codebooks", "codebook_dim"])
def test_null_is_no_size(tmp_path, key):
    """A sample rate of null once became a TypeError where a duration was computed."""
    with pytest.raises(InputError, match=f"{key} must be a whole number from .* not None"):
        read(tmp_path, **{key: None})


@pytest.mark.parametrize("key", ["encoder_rates", "decoder_rates"])
@pytest.mark.parametrize("value", [None, [], 8, "8", {"0": 8}, [2] * 9])
def test_rates_that_are_none_are_refused(tmp_path, key, value):
    with pytest.raises(InputError, match=rf"{key} must list 1 to 8 whole numbers\.$"):
        read(tmp_path, **{key: value})
