"""The codec's high-pass: asked for by its config alone, streamed = whole, speech untouched."""

import json
import shutil

import numpy as np
import pytest
from scipy import signal

from dia_demo.codec import convolution
from dia_demo.codec.codec import load_codec
from dia_demo.codec.highpass import HighPass
from dia_demo.errors import InputError
from tests.codec.test_codec import random_codes, streamed
from tests.helpers.long import long_after
from tests.helpers.models.codec_folders import (
    NATIVE,
    dac_model,
    decode_interleaved,
    hf_tensors,
    transformers_dac,
    write_codec,
)
from tests.helpers.models.known import EMBEDDED_FOLDER


@pytest.fixture(scope="module", autouse=True)
def one_form():
    """Codecs that are compared compute alike: their trials may choose different convolutions."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(convolution, "BACKENDS", {"plain": convolution.PlainConvolution})
        yield


@pytest.fixture(scope="module")
def nano():
    return load_codec(EMBEDDED_FOLDER, precision="float32")


@pytest.fixture(scope="module")
def unfiltered(tmp_path_factory):
    """The embedded codec without the key in its config."""
    folder = tmp_path_factory.mktemp("unfiltered")
    shutil.copytree(EMBEDDED_FOLDER / "codec", folder / "codec")
    config = folder / "codec" / "config.json"
    kwargs = json.loads(config.read_text())
    assert kwargs.pop("highpass_hz") == 50
    config.write_text(json.dumps(kwargs))
    return load_codec(folder, precision="float32")


def gain_db(hz, rate=16000):
    """Of a steady tone."""
    wave = np.sin(2 * np.pi * hz * np.arange(2 * rate) / rate).astype("f")
    out = HighPass(50, rate)(wave, {})
    return 20 * np.log10(np.std(out[rate:]) / np.std(wave[rate:]))


@pytest.mark.parametrize("rate", [16000, 44100])
def test_the_filter_removes_only_what_lies_below_speech(rate):
    assert gain_db(10, rate) < -50 and gain_db(25, rate) < -23
    assert gain_db(50, rate) == pytest.approx(-3, abs=0.1)
    for hz in (80, 100, 125, 208, 1000, 3900):
        assert gain_db(hz, rate) == pytest.approx(0, abs=0.11)
    constant = HighPass(50, rate)(np.full(rate, 0.5, "f"), {})
    assert np.abs(constant).max() < 1e-6


@pytest.mark.parametrize("seed", long_after(1, range(4)))
def test_streamed_is_whole_to_the_last_bit(nano, unfiltered, seed):
    rng = np.random.default_rng(seed)
    codes = random_codes(nano, int(rng.integers(1, 200)), seed)
    steps = iter(lambda: int(rng.choice([0, 1, 5, 40])), None)
    whole = nano.decode(codes)
    np.testing.assert_array_equal(streamed(nano, codes, steps), whole)
    # Whole is one run of the filter over all of it, whatever blocks the decoder works in.
    np.testing.assert_array_equal(HighPass(50, 16000)(unfiltered.decode(codes), {}), whole)


def test_it_is_the_butterworth_filter_of_the_samples(nano, unfiltered):
    codes = random_codes(nano, 100)
    raw = unfiltered.decode(codes).astype(float)
    sections = signal.butter(4, 50, "highpass", fs=16000, output="sos")
    expected, _ = signal.sosfilt(sections, raw, zi=signal.sosfilt_zi(sections) * raw[0])
    np.testing.assert_allclose(nano.decode(codes), expected, atol=1e-7)
    assert np.abs(nano.decode(codes) - raw).max() > 0.01


def test_streams_keep_their_filters_apart(nano):
    takes = [random_codes(nano, 80, seed) for seed in range(2)]
    for codes, audio in zip(takes, decode_interleaved(nano, takes, 20), strict=True):
        np.testing.assert_array_equal(audio, nano.decode(codes))


@pytest.mark.long
def test_both_layouts_of_a_folder_may_ask_for_it(tmp_path):
    theirs = transformers_dac()
    layouts = {
        "dac": (NATIVE, dac_model().state_dict()),
        "transformers": (theirs.config.to_dict(), hf_tensors(theirs, "plain")),
    }
    for name, (kwargs, tensors) in layouts.items():
        write_codec(tmp_path / name / "plain" / "codec", kwargs, tensors)
        write_codec(tmp_path / name / "asks" / "codec", kwargs | {"highpass_hz": 200.0}, tensors)
        plain, asks = (
            load_codec(tmp_path / name / kind, precision="float32") for kind in ("plain", "asks")
        )
        codes = random_codes(plain, 200)
        expected = HighPass(200, plain.sample_rate)(plain.decode(codes), {})
        # Odd strides leave out the last few samples, which are zeros in either.
        np.testing.assert_array_equal(asks.decode(codes)[:-8], expected[:-8])
        assert np.abs(expected - plain.decode(codes)).max() > 1e-3
        noise = np.random.default_rng(0).standard_normal(2000).astype("f")
        np.testing.assert_array_equal(asks.encode(noise), plain.encode(noise))


@pytest.mark.parametrize("cutoff", [0, -50, "50", None, True, [50], 4000, 1e9])
def test_a_cutoff_that_is_none_is_refused(tmp_path, cutoff):
    kwargs = NATIVE | {"highpass_hz": cutoff}
    write_codec(tmp_path / "codec", kwargs, dac_model().state_dict())
    with pytest.raises(InputError, match="highpass_hz .* above 0 and below half the sample rate"):
        load_codec(tmp_path)
