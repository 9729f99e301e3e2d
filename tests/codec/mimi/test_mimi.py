"""Mimi: equal to transformers' MimiModel, and a stream equal to the whole."""

import json

import numpy as np
import pytest
import torch

from dia_demo.codec.files import folder_source
from dia_demo.codec.mimi.codec import MimiCodec, load_mimi, random_mimi
from dia_demo.codec.mimi.config import MIMI_FORMAT, MimiConfig, parse_mimi_config, read_mimi_format
from dia_demo.codec.mimi.weights import TINY_MIMI, open_stored_mimi
from dia_demo.errors import InputError, RunError
from dia_demo.model.cpu_model import torch_threads
from tests.helpers.models.codec_folders import decode_interleaved, random_codes, signal_to_noise
from tests.helpers.models.mimi import SMALL_MIMI, transformers_mimi, write_mimi

HOP = 24  # Samples of a frame: 2 * 4 * 3.


@pytest.fixture(scope="module")
def reference():
    return transformers_mimi(seed=3, **SMALL_MIMI)


@pytest.fixture(scope="module")
def folder(reference, tmp_path_factory):
    folder = tmp_path_factory.mktemp("mimi")
    write_mimi(folder / "codec", reference)
    return folder


@pytest.fixture(scope="module")
def codec(folder):
    return load_mimi(folder)


@pytest.fixture(params=["compiled", "torch"])
def either(request, folder, monkeypatch):
    """The codec as it is computed with the compiled product, and without numba."""
    monkeypatch.setattr("dia_demo.codec.mimi.choose_decoder.decoder_kind", lambda: request.param)
    return MimiCodec(open_stored_mimi(folder_source(folder / "codec")), "float32")


def decoded(model, codes):
    with torch.inference_mode():
        return model.decode(torch.from_numpy(codes.T.astype(np.int64))[None])[0][0, 0].numpy()


def encoded(model, samples):
    with torch.inference_mode():
        return model.encode(torch.from_numpy(samples)[None, None])[0][0].T.numpy()


def assert_close(found, expected):
    """To rounding, relative to the loudest sample."""
    np.testing.assert_allclose(found, expected, atol=2e-5 * float(np.abs(expected).max()))


@pytest.mark.parametrize("frames", [1, 3, 40])
def test_decodes_as_transformers(either, reference, frames):
    codes = random_codes(either, frames, seed=frames)
    expected = decoded(reference, codes)
    assert expected.std() > 0.01, "noise of its own, so that a fault shows"
    found = either.decode(codes)
    assert found.shape == (frames * HOP,) and found.dtype == np.float32
    assert_close(found, expected)


@pytest.mark.parametrize("samples", [1, HOP - 1, HOP, 20 * HOP, 20 * HOP + 7])
def test_encodes_as_transformers(codec, reference, samples):
    wave = np.random.default_rng(samples).standard_normal(samples).astype(np.float32)
    codes = codec.encode(wave)
    assert codes.dtype == np.int16 and codes.shape == (-(-samples // HOP), 4)
    assert len(np.unique(codes)) > 2
    np.testing.assert_array_equal(codes, encoded(reference, wave))


@pytest.mark.parametrize("steps", [[1] * 90, [2, 7, 1, 33, 5, 42], [90]])
def test_a_frame_is_a_hop_of_the_same_samples_however_they_come(either, steps):
    codes = random_codes(either, 90)
    stream, chunks, at = either.stream(), [], 0
    for count in steps:
        chunks.append(stream.push(codes[at : at + count]))
        assert len(chunks[-1]) == count * HOP
        at += count
    assert not len(stream.finish())
    np.testing.assert_array_equal(np.concatenate(chunks), either.decode(codes))


def test_takes_beside_one_another_are_as_alone(codec):
    takes = [random_codes(codec, frames, seed=frames) for frames in (50, 9, 31)]
    for audio, codes in zip(decode_interleaved(codec, takes, 3), takes, strict=True):
        np.testing.assert_array_equal(audio, codec.decode(codes))


def test_samples_do_not_depend_on_threads(codec):
    codes, found = random_codes(codec, 30), []
    for threads in (1, 2, 3):
        with torch_threads(threads):
            found.append(codec.decode(codes))
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])


def test_samples_depend_on_no_later_frame(codec):
    codes = random_codes(codec, 40)
    changed = codes.copy()
    changed[20:] = (changed[20:] + 1) % codec.codebook_size
    found, expected = codec.decode(changed), codec.decode(codes)
    np.testing.assert_array_equal(found[: 20 * HOP], expected[: 20 * HOP])
    assert not np.array_equal(found[20 * HOP : 21 * HOP], expected[20 * HOP : 21 * HOP])


def test_weights_in_bfloat16_are_close(folder, codec):
    rough, codes = load_mimi(folder, precision="bfloat16"), random_codes(codec, 60)
    assert (rough.choice.precision, codec.choice.precision) == ("bfloat16", "float32")
    assert signal_to_noise(rough.decode(codes), codec.decode(codes)) > 30


@pytest.mark.long
def test_full_size_as_transformers(tmp_path):
    model = transformers_mimi(seed=1)
    codec = load_mimi(write_mimi(tmp_path / "codec", model).parent)
    assert (codec.sample_rate, codec.hop_length, codec.frames_per_second) == (24000, 1920, 12.5)
    codes = random_codes(codec, 128)  # 256 positions: more than the window.
    assert_close(codec.decode(codes), decoded(model, codes))
    wave = 0.1 * np.random.default_rng(0).standard_normal(2 * 24000 + 100).astype(np.float32)
    expected = encoded(model, wave)
    # Of 2,048 vectors two may be equally near but for rounding; what follows it differs.
    assert (codec.encode(wave) == expected).mean() > 0.98


def test_random_weights_are_quiet_noise_of_mimis_rates():
    one, other = (random_mimi(seed=seed, **TINY_MIMI) for seed in (2, 3))
    assert (one.hop_length, one.num_codebooks, one.codebook_size) == (1920, 32, 2048)
    audio = one.decode(random_codes(one, 10))
    assert 1e-3 < audio.std() < 0.3 and np.abs(audio).max() < 1
    assert one.identity != other.identity and one.encode(audio).shape == (10, 32)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model_type": "encodec"}, "not the codec Mimi"),
        ({"use_causal_conv": False}, "use_causal_conv must be True"),
        ({"num_residual_layers": 2}, "num_residual_layers must be 1"),
        ({"upsample_groups": 1}, "upsample_groups must be 16"),
        ({"frame_rate": 12.5}, "frame_rate must be 300"),
        ({"frame_rate": {"hz": 300}}, "frame_rate must be 300"),
        ({"codebook_size": 0}, "codebook_size must be a whole number"),
        ({"codebook_size": True}, "codebook_size must be a whole number from 1 to 16384, not True"),
        ({"sampling_rate": 10**6}, "sampling_rate must be a whole number from 4000 to 384000"),
        ({"num_hidden_layers": 101}, "num_hidden_layers must be a whole number from 1 to 100"),
        ({"norm_eps": "small"}, "norm_eps must be a number from 1e-12 to 1000000000"),
        ({"rope_parameters": {"rope_theta": None}}, "rope_theta must be a number"),
        ({"upsampling_ratios": [0]}, "each of upsampling_ratios"),
        ({"upsampling_ratios": [2] * 9}, "upsampling_ratios must list 1 to 8 whole numbers"),
        ({"upsampling_ratios": {"0": 2}}, "upsampling_ratios must list 1 to 8 whole numbers"),
        ({"num_semantic_quantizers": 4}, "below num_quantizers"),
        ({"hidden_size": 8, "upsample_groups": 8}, "codebook_dim must differ"),
    ],
)
def test_other_shapes_are_refused_in_a_sentence(folder, change, message):
    raw = json.loads((folder / "codec" / "config.json").read_text())
    with pytest.raises(InputError, match=message):
        parse_mimi_config(raw | change, "config.json")


def test_the_published_config_is_read(tmp_path):
    """As kyutai/mimi has it: frame_rate and rope_theta on top, keys that nothing here needs."""
    published = {"model_type": "mimi", "frame_rate": 12.5, "rope_theta": 10000.0,
                 "upsampling_ratios": [8, 6, 5, 4], "normalize": False, "use_cache": False,
                 "head_dim": 64, "upsample_groups": 512, "num_key_value_heads": 8}  # fmt: skip
    assert parse_mimi_config(published, "config.json").format == MIMI_FORMAT
    assert read_mimi_format(tmp_path) == MIMI_FORMAT


def test_sizes_that_are_missing_or_null_are_those_of_kyutai_mimi():
    assert parse_mimi_config({"codebook_size": None, "head_dim": None}, "c.json") == MimiConfig()
    config = parse_mimi_config(
        {"num_attention_heads": 4.0, "upsampling_ratios": [2.0, 3]}, "c.json"
    )
    assert config == MimiConfig(num_attention_heads=4, head_dim=128, upsampling_ratios=(2, 3))
    assert type(config.num_attention_heads) is type(config.hop_length) is int


def test_tensors_must_match_the_config(reference, tmp_path):
    from safetensors.torch import load_file, save_file

    file = write_mimi(tmp_path / "codec", reference) / "model.safetensors"
    tensors = load_file(file)
    del tensors["upsample.conv.weight"]
    tensors["decoder.layers.0.conv.bias"] = torch.zeros(3)
    save_file(tensors | {"more": torch.zeros(2)}, file)
    with pytest.raises(InputError, match=r"missing: upsample\.conv\.weight; surplus: more; mis"):
        load_mimi(tmp_path)


def test_faulty_weights_and_codes_are_named(reference, tmp_path, codec):
    from safetensors.torch import load_file, save_file

    file = write_mimi(tmp_path / "codec", reference) / "model.safetensors"
    tensors = load_file(file)
    tensors["decoder.layers.0.conv.weight"][0, 0, 0] = torch.nan
    save_file(tensors, file)
    with pytest.raises(InputError, match=r"decoder\.layers\.0\.conv\.weight .* NaN"):
        load_mimi(tmp_path)
    tensors["decoder.layers.0.conv.weight"][0, 0, 0] = 0
    tensors["decoder.layers.0.conv.bias"][:] = torch.inf
    save_file(tensors, file)
    with pytest.raises(RunError, match="NaN or infinite"):
        load_mimi(tmp_path).decode(random_codes(codec, 2))
    with pytest.raises(InputError, match="from 0 to 15"):
        codec.decode(np.full((2, 4), 16))
    with pytest.raises(RunError, match="NaN or infinite"):
        codec.encode(np.full(100, np.nan, "f"))


def test_without_its_files_the_way_to_get_them_is_said(monkeypatch, tmp_path):
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(InputError, match="kyutai/mimi.*into the folder codec"):
        load_mimi(tmp_path, allow_download=False)
