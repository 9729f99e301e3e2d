"""A codec's weights: one network from any of its three layouts; what is no codec is refused."""

from unittest.mock import Mock

import numpy as np
import pytest
import torch

from dia_demo.codec.codec import DacCodec, load_codec
from dia_demo.codec.files import CodecSource
from dia_demo.codec.weights import open_dac
from dia_demo.errors import InputError
from tests.helpers.models.codec_folders import (
    HF_SHAPE,
    NATIVE,
    dac_model,
    hf_tensors,
    transformers_dac,
    write_codec,
)


@pytest.fixture(scope="module")
def hf_model():
    return transformers_dac()


def assert_same(codec, encode, decode, hop, books):
    """Ours gives the codes and the audio of the functions on [1, 1, N] and [1, C, T] tensors."""
    samples = np.random.default_rng(0).standard_normal(40 * hop).astype("f")
    codes = np.random.default_rng(1).integers(0, codec.codebook_size, (40, books))
    with torch.no_grad():
        their_codes = encode(torch.from_numpy(samples)[None, None])[0].T.numpy()
        their_audio = decode(torch.from_numpy(codes.T[None])).flatten().numpy()
    assert len(np.unique(their_codes)) > 8 and np.abs(their_audio).mean() > 1e-3
    assert np.array_equal(codec.encode(samples), their_codes)
    np.testing.assert_allclose(codec.decode(codes)[: their_audio.size], their_audio, atol=1e-4)


def native_calls(model):
    def encode(x):
        return model.encode(x)[1]

    return encode, lambda codes: model.decode(model.quantizer.from_codes(codes)[0])


def test_a_checkpoints_own_codec_is_descripts(tmp_path):
    model = dac_model()
    write_codec(tmp_path / "codec", NATIVE, model.state_dict())
    codec = load_codec(tmp_path)
    assert codec.sample_rate == 8000
    assert_same(codec, *native_calls(model), hop=16, books=4)


def test_half_precision_weights_run_in_single(tmp_path):
    tensors = {name: tensor.half() for name, tensor in dac_model().state_dict().items()}
    write_codec(tmp_path / "codec", NATIVE, tensors)
    model = dac_model()
    model.load_state_dict({name: tensor.float() for name, tensor in tensors.items()})
    assert_same(load_codec(tmp_path), *native_calls(model), hop=16, books=4)


def test_descripts_pickle_is_the_same_codec(tmp_path):
    model = dac_model()
    kwargs = NATIVE | {"an_argument_of_its_training": 1}
    weights = {"state_dict": model.state_dict(), "metadata": {"kwargs": kwargs}}
    torch.save(weights, tmp_path / "weights.pth")
    codec = DacCodec(open_dac(CodecSource("test", tmp_path / "weights.pth")))
    assert_same(codec, *native_calls(model), hop=16, books=4)


@pytest.mark.parametrize("norm", ["plain", "parametrised", "old"])
def test_transformers_layout_is_the_same_codec(tmp_path, hf_model, norm):
    folder = tmp_path / "codec"
    write_codec(folder, hf_model.config.to_dict(), hf_tensors(hf_model, norm))
    assert_same(
        load_codec(tmp_path),
        lambda samples: hf_model.encode(samples).audio_codes,
        lambda codes: hf_model.decode(audio_codes=codes).audio_values,
        hop=24,
        books=5,
    )


class Evil:
    def __reduce__(self):
        return (print, ("executed",))


def test_a_pickle_that_would_run_code_is_refused(tmp_path, capsys):
    torch.save({"state_dict": Evil(), "metadata": {"kwargs": {}}}, tmp_path / "weights.pth")
    with pytest.raises(InputError, match="weights.pth is corrupted"):
        open_dac(CodecSource("test", tmp_path / "weights.pth"))
    assert "executed" not in capsys.readouterr().out


def test_tensors_that_do_not_fit_are_listed_by_name(tmp_path, hf_model):
    tensors = hf_tensors(hf_model, "plain")
    del tensors["decoder.block.1.res_unit2.conv1.bias"]
    tensors["encoder.block.9.conv1.weight"] = torch.zeros(1)
    tensors["quantizer.quantizers.3.codebook.weight"] = torch.zeros(7, 4)
    write_codec(tmp_path / "codec", HF_SHAPE, tensors)
    with pytest.raises(InputError) as refused:
        load_codec(tmp_path)
    message = str(refused.value)
    assert "missing: decoder.model.2.block.3.block.1.bias" in message
    assert "surplus: encoder.block.10.block.4.weight" in message
    assert (
        "misshapen: quantizer.quantizers.3.codebook.weight is [7, 4], should be [64, 4]" in message
    )


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        (NATIVE | {"colour": 1}, "unknown keys.*colour"),
        (NATIVE | {"encoder_rates": [2, 2]}, "differ in their product"),
        (NATIVE | {"n_codebooks": "four"}, "n_codebooks must be a whole number from 1 to 100"),
        (NATIVE | {"encoder_rates": [0]}, "each of encoder_rates must be a whole number from 1"),
        (HF_SHAPE | {"downsampling_ratios": 8}, "not a codec"),
    ],
)
def test_a_config_of_no_codec_is_refused(tmp_path, kwargs, message):
    write_codec(tmp_path / "codec", kwargs, {"a": torch.zeros(1)})
    with pytest.raises(InputError, match=message):
        load_codec(tmp_path)


def test_a_folder_without_whole_weights_is_refused(tmp_path):
    folder = write_codec(tmp_path / "codec", NATIVE, dac_model().state_dict())
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])
    with pytest.raises(InputError, match="model.safetensors is corrupted"):
        load_codec(tmp_path)
    weights.unlink()
    with pytest.raises(InputError, match="model.safetensors is missing"):
        load_codec(tmp_path)


def test_a_lack_of_memory_is_not_taken_for_damage(tmp_path, monkeypatch):
    write_codec(tmp_path / "codec", NATIVE, dac_model().state_dict())
    error = MemoryError("Cannot allocate memory (os error 12)")
    monkeypatch.setattr("dia_demo.codec.weights._open", Mock(side_effect=error))
    with pytest.raises(InputError, match="model.safetensors cannot be read: .* out of memory"):
        load_codec(tmp_path)
