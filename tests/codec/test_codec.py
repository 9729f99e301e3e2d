"""The codec: streamed = whole = Descript's own decoder, in every backend and precision."""

import numpy as np
import pytest
import torch

from dia_demo.codec import convolution, decoder
from dia_demo.codec.codec import DacCodec, load_codec, random_codec, random_dac
from dia_demo.codec.weights import build_dac
from dia_demo.errors import InputError, RunError
from dia_demo.machine.processor import multiplies_bfloat16
from dia_demo.model import autotune
from tests.helpers.models.codec_folders import decode_interleaved, random_codes, signal_to_noise
from tests.helpers.models.known import EMBEDDED_FOLDER

pytestmark = pytest.mark.processor

SHAPES = {
    "four books, even strides": dict(
        encoder_dim=4, encoder_rates=[4, 2, 2], decoder_dim=32, decoder_rates=[2, 2, 4],
        n_codebooks=4, codebook_size=64, codebook_dim=4, latent_dim=20, sample_rate=8000,
    ),
    "nine books, odd strides": dict(
        encoder_dim=2, encoder_rates=[5, 3], decoder_dim=16, decoder_rates=[3, 5],
        sample_rate=16000,
    ),
    "one book, mixed strides": dict(
        encoder_dim=2, encoder_rates=[2, 3, 4], decoder_dim=16, decoder_rates=[4, 3, 2],
        n_codebooks=1, codebook_size=32,
    ),
    "two books, stride one": dict(
        encoder_dim=2, encoder_rates=[1, 2, 4], decoder_dim=16, decoder_rates=[4, 1, 2],
        n_codebooks=2, codebook_size=32,
    ),
}  # fmt: skip


@pytest.fixture(params=SHAPES, scope="module")
def shape(request):
    return SHAPES[request.param]


@pytest.fixture(scope="module")
def codec(shape):
    return random_codec(seed=1, precision="float32", **shape)


@pytest.fixture(scope="module")
def theirs(shape):
    """Descript's own decoder of the same weights: codes [T, C] to samples."""
    return descripts(random_dac(seed=1, **shape), shape)


def descripts(stored, shape):
    net = build_dac(shape)
    weights = {name: stored.read(name) for name in net.state_dict()}
    net.load_state_dict(weights, assign=True)
    net.eval()

    def decode(codes):
        with torch.no_grad():
            latent = net.quantizer.from_codes(torch.from_numpy(codes.T[None].astype("l")))[0]
            return net.decode(latent)[0, 0].numpy()

    return decode


def streamed(codec, codes, steps):
    """The take pushed in pieces of `steps` frames, over and over."""
    stream, chunks, at = codec.stream(), [], 0
    while at < len(codes):
        step = next(steps)
        chunks.append(stream.push(codes[at : at + step]))
        at += step
    return np.concatenate([*chunks, stream.finish()])


# Whole and streamed


@pytest.mark.parametrize("frames", [1, 2, 7, 30, 333])
def test_whole_is_the_networks_single_pass_to_the_frame(codec, theirs, frames):
    codes = random_codes(codec, frames)
    single, whole = theirs(codes), codec.decode(codes)
    assert whole.shape == (frames * codec.hop_length,) and whole.dtype == np.float32
    assert np.abs(single).mean() > 1e-2
    np.testing.assert_allclose(whole[: single.size], single, atol=1e-6)
    # What odd strides leave out at the end is silence.
    assert single.size > (frames - 1) * codec.hop_length - 2 and not whole[single.size :].any()


@pytest.mark.parametrize("seed", range(6))
def test_streamed_is_whole_for_any_chunking(codec, seed):
    rng = np.random.default_rng(seed)
    codes = random_codes(codec, int(rng.integers(1, 500)), seed)
    steps = iter(lambda: int(rng.choice([0, 1, 1, 5, 40, 300])), None)
    # To the last bit: blocks do not depend on how the codes come.
    np.testing.assert_array_equal(streamed(codec, codes, steps), codec.decode(codes))


@pytest.mark.parametrize(
    "frames", [pytest.param(n, marks=[pytest.mark.long] * (n % 6 != 1)) for n in range(1, 70)]
)
def test_every_length_ends_as_it_should(frames):
    """Blocks end in every layer's middle, and at the take's very end."""
    shape = SHAPES["nine books, odd strides"]
    codec = random_codec(precision="float32", **shape)
    codes = random_codes(codec, frames)
    single = descripts(random_dac(**shape), shape)(codes)
    whole = streamed(codec, codes, iter(lambda: 3, None))
    np.testing.assert_allclose(whole[: single.size], single, atol=1e-6)


def test_streams_do_not_mix(codec):
    takes = [random_codes(codec, 100, seed) for seed in range(2)]
    for codes, audio in zip(takes, decode_interleaved(codec, takes, 10), strict=True):
        np.testing.assert_array_equal(audio, codec.decode(codes))


def test_the_context_matches_how_far_a_code_reaches(codec, theirs):
    before, after = codec.context
    frames = before + after + 40
    at = after + 15
    codes = random_codes(codec, frames)
    changed = codes.copy()
    changed[at] = (changed[at] + 1 + codec.codebook_size // 2) % codec.codebook_size
    moved = theirs(codes) != theirs(changed)
    touched = np.flatnonzero(moved) // codec.hop_length
    assert touched.min() >= at - after and touched.max() <= at + before
    # A looser bound would delay the first sound; at the rim, rounding swallows the change.
    assert touched.min() <= at - after * 0.75 and touched.max() >= at + before * 0.75


def test_a_stream_computes_each_frame_once_with_little_delay():
    codec = random_codec(precision="float32", **SHAPES["nine books, odd strides"])
    passes, run = [], codec.advance
    codec.advance = lambda codes, *rest: passes.append(len(codes)) or run(codes, *rest)
    stream, first, heard = codec.stream(), None, 0
    for at, frame in enumerate(random_codes(codec, 2000)):
        ready = stream.push(frame[None])
        heard += ready.size
        first = at if first is None and ready.size else first
        assert len(stream._waiting_TC) <= 40 and (at + 1) * codec.hop_length - heard < 1000
    stream.finish()
    assert first <= codec.context[1] + 8
    assert sum(passes) == 2000 and max(passes) <= 40


def test_the_state_of_a_stream_does_not_grow():
    codec = random_codec(precision="float32", **SHAPES["nine books, odd strides"])
    stream = codec.stream()
    sizes = []
    for _ in range(5):
        stream.push(random_codes(codec, 320))
        sizes.append(sum(rows.numel() for rows in stream._state.values()))
    assert len(set(sizes)) == 1


def test_push_after_finish_is_a_bug():
    stream = random_codec(precision="float32", **SHAPES["one book, mixed strides"]).stream()
    assert stream.push(np.zeros((0, 1), int)).size == stream.finish().size == 0
    with pytest.raises(AssertionError):
        stream.push(np.zeros((1, 1), int))


# Codes


def test_encode_pads_to_whole_frames(shape):
    codec = random_codec(seed=1, precision="float32", **shape)
    hop = codec.hop_length
    noise = np.random.default_rng(0).standard_normal(5 * hop).astype("f")
    for samples in (0, 1, hop, hop + 1, 5 * hop):
        codes = codec.encode(noise[:samples])
        assert codes.shape == (-(-samples // hop), codec.num_codebooks)
        assert codes.dtype == np.int16
        assert codec.decode(codes).size == len(codes) * hop


def test_rates_are_those_of_the_config(codec):
    assert codec.frames_per_second == codec.sample_rate / codec.hop_length
    assert random_codec(**SHAPES["four books, even strides"]).frames_per_second == 500


@pytest.mark.parametrize(
    ("codes", "message"),
    [
        (np.zeros((3, 5), int), r"\[frames, 4\], not \[3, 5\]"),
        (np.zeros(4, int), r"\[frames, 4\]"),
        (np.zeros((3, 4)), "whole numbers"),
        (np.array([[0, 0, 0, 0], [0, 0, 64, 0]]), "from 0 to 63; frame 1, codebook 2 contains 64"),
        (np.array([[0, -1, 0, 0]]), "contains -1"),
    ],
)
def test_invalid_codes_are_refused(codes, message):
    codec = random_codec(**SHAPES["four books, even strides"])
    with pytest.raises(InputError, match=message):
        codec.decode(codes)
    with pytest.raises(InputError, match=message):
        codec.stream().push(codes)


def test_what_is_not_finite_is_never_handed_on():
    stored = random_dac(**SHAPES["four books, even strides"])
    codec, read = DacCodec(stored, "float32"), stored.read
    with pytest.raises(RunError):
        codec.encode(np.full(100, np.nan, "f"))
    stored.read = lambda name: read(name) * (np.nan if name == "decoder.model.0.bias" else 1)
    codec = DacCodec(stored, "float32")
    with pytest.raises(RunError, match="discarded"):
        codec.decode(random_codes(codec, 5))


# Backends and precisions

# Winograd is for some convolutions alone: test_winograd.py.
GENERAL_BACKENDS = [name for name in convolution.BACKENDS if name not in convolution.WINOGRAD]


@pytest.mark.parametrize("backend", GENERAL_BACKENDS)
def test_every_backend_gives_the_same(monkeypatch, backend):
    shape = SHAPES["nine books, odd strides"]
    monkeypatch.setattr(convolution, "BACKENDS", {backend: convolution.BACKENDS[backend]})
    codec = random_codec(precision="float32", **shape)
    codes = random_codes(codec, 77)
    single = descripts(random_dac(**shape), shape)(codes)
    assert codec.choice.backend == backend
    np.testing.assert_allclose(codec.decode(codes)[: single.size], single, atol=1e-6)


@pytest.mark.parametrize("backend", GENERAL_BACKENDS)
def test_bfloat16_errs_no_more_than_it_must(monkeypatch, shape, theirs, backend):
    if backend == "oneDNN packed" and not multiplies_bfloat16():
        pytest.skip("oneDNN refuses bfloat16 on processors without instructions for it")
    monkeypatch.setattr(convolution, "BACKENDS", {backend: convolution.BACKENDS[backend]})
    codec = random_codec(seed=1, precision="bfloat16", **shape)
    codes = random_codes(codec, 100)
    assert (codec.choice.precision, codec.choice.backend) == ("bfloat16", backend)
    assert signal_to_noise(codec.decode(codes), theirs(codes)) > 30
    steps = iter(lambda: 7, None)
    np.testing.assert_array_equal(streamed(codec, codes, steps), codec.decode(codes))


class Breaks:
    def __init__(self, *_):
        raise RuntimeError("could not create a primitive")


@pytest.mark.parametrize(("width", "rows"), [(2, 2**14), (128, 1743), (1024, 64)])
def test_a_tiny_codec_is_measured_as_quickly(monkeypatch, width, rows):
    """So much work as a large one's would be millions of rows, and take seconds."""
    asked = []

    class Noted(convolution.PlainConvolution):
        def __call__(self, x_TI):
            asked.append(len(x_TI) - 6)
            return super().__call__(x_TI)

    monkeypatch.setattr(convolution, "BACKENDS", {"plain": Noted})
    monkeypatch.setattr(convolution, "split_convolution", lambda make, *given: make(*given))
    weight_OIK = torch.randn(width, width, 7)
    choice = convolution.choose_backend(weight_OIK, 1.0, "float32")
    asked.clear()
    assert convolution.realtime(choice, weight_OIK, 1.0, 0.75) > 0
    assert set(asked) == {rows}


class IsOff(convolution.PlainConvolution):
    def __call__(self, x):
        return super().__call__(x) * 1.05


@pytest.mark.parametrize("bad", [Breaks, IsOff])
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_a_backend_that_fails_or_errs_is_not_chosen(monkeypatch, tmp_path, bad, precision):
    monkeypatch.setattr(autotune, "cache_folder", lambda: tmp_path)
    backends = {"bad": bad, "plain": convolution.PlainConvolution}
    monkeypatch.setattr(convolution, "BACKENDS", backends)
    choice = convolution.choose_backend(torch.randn(8, 8, 7), 1.0, precision)
    assert (choice.precision, choice.backend) == (precision, "plain")
    assert "plain" in choice.reason and "bad" not in choice.reason
    named = [name for errors in autotune.wrong_results().values() for name in errors]
    assert named == (["bad"] if bad is IsOff else [])


@pytest.mark.parametrize(
    ("gflop", "has_bfloat16", "expected"),
    [(139.0, True, "bfloat16"), (139.0, False, "float32"), (1.0, True, "float32")],
)
def test_the_precision_is_a_rule_of_the_codec_and_the_processor(
    monkeypatch, gflop, has_bfloat16, expected
):
    """No trial: so that the same codes give the same samples after every start."""
    monkeypatch.setattr(convolution, "multiplies_bfloat16", lambda: has_bfloat16)
    assert convolution.choose_backend(torch.randn(8, 8, 7), gflop).precision == expected


def test_the_embedded_codec_keeps_its_sound_in_bfloat16():
    """The gate: speech coded and decoded again, 30 dB below it at most (about 40 are reached)."""
    exact, rough = (load_codec(EMBEDDED_FOLDER, precision=p) for p in ("float32", "bfloat16"))
    time = np.arange(16000) / 16000
    vowel = sum(np.sin(2 * np.pi * 120 * k * time) / k for k in range(1, 20)) * np.hanning(16000)
    codes = exact.encode((0.1 * vowel).astype("f"))
    assert signal_to_noise(rough.decode(codes), exact.decode(codes)) > 30


def test_the_decoder_does_not_keep_what_only_the_encoder_needs():
    stored = random_dac(**SHAPES["four books, even strides"])
    asked, read = [], stored.read
    stored.read = lambda name: asked.append(name) or read(name)
    codec = DacCodec(stored, "float32")
    assert not [name for name in asked if name.startswith("encoder")]
    asked.clear()
    codec.encode(np.zeros(100, "f"))
    assert not [name for name in asked if name.startswith("decoder")]


def test_macs_per_frame_counts_the_full_size():
    """138 GFLOP for a second of Descript's 44.1 kHz codec."""
    shapes = {name: tuple(t.shape) for name, t in build_dac({}).state_dict().items()}
    macs = decoder.macs_per_frame(shapes, [8, 8, 4, 2])
    assert 2e-9 * sum(macs.values()) * 44100 / 512 == pytest.approx(138, abs=1)
