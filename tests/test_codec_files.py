"""Where the codec comes from: one network from any of its three layouts, found or fetched."""

import http.server
import json
import subprocess
import sys
import threading

import numpy as np
import pytest
import torch

from dia_demo.errors import InputError
from dia_demo.model import codec_files
from dia_demo.model.codec import Codec, load_codec, open_codec
from dia_demo.model.codec_files import CodecSource, codec_source
from dia_demo.model.codec_weights import open_dac

# Layouts

NATIVE = dict(
    encoder_dim=4, encoder_rates=[4, 2, 2], decoder_dim=32, decoder_rates=[2, 2, 4],
    n_codebooks=4, codebook_size=64, codebook_dim=4, latent_dim=20, sample_rate=8000,
)  # fmt: skip
HF_SHAPE = dict(
    encoder_hidden_size=4, downsampling_ratios=[2, 4, 3], decoder_hidden_size=32, n_codebooks=5,
    codebook_size=64, codebook_dim=4, sampling_rate=8000,
)  # fmt: skip


def write_codec(folder, kwargs, tensors):
    from safetensors.torch import save_file

    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(kwargs))
    save_file(tensors, folder / "model.safetensors")
    return folder


def dac_model(seed=0):
    """A dac.DAC with its weight norm, its weights large enough to make a difference."""
    with codec_files.quiet():
        model = codec_files.import_dac().DAC(**NATIVE).eval()
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for tensor in model.state_dict().values():
            tensor.add_(0.1 * torch.randn(tensor.shape, generator=generator))
    return model


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
    codec = Codec(open_dac(CodecSource("test", tmp_path / "weights.pth")))
    assert_same(codec, *native_calls(model), hop=16, books=4)


class Evil:
    def __reduce__(self):
        return (print, ("executed",))


def test_a_pickle_that_would_run_code_is_refused(tmp_path, capsys):
    torch.save({"state_dict": Evil(), "metadata": {"kwargs": {}}}, tmp_path / "weights.pth")
    with pytest.raises(InputError, match="weights.pth is damaged"):
        open_dac(CodecSource("test", tmp_path / "weights.pth"))
    assert "executed" not in capsys.readouterr().out


@pytest.fixture(scope="module")
def hf_model():
    from transformers import DacConfig, DacModel

    model = DacModel(DacConfig(**HF_SHAPE)).eval()
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for tensor in model.parameters():
            tensor.add_(0.1 * torch.randn(tensor.shape, generator=generator))
    return model


def hf_tensors(model, norm):
    """The model's tensors: plain, or with weight norm as transformers or older files write it."""
    plain = {name: tensor.detach().clone() for name, tensor in model.state_dict().items()}
    if norm == "plain":
        return plain
    ends = {
        "parametrised": ("parametrizations.weight.original0", "parametrizations.weight.original1"),
        "old": ("weight_g", "weight_v"),
    }[norm]
    split = {}
    for name, tensor in plain.items():
        if tensor.ndim == 3 and name.endswith("weight"):
            stem = name.removesuffix("weight")
            split[stem + ends[0]] = torch.norm_except_dim(tensor, 2, 0)
            split[stem + ends[1]] = 3 * tensor  # Only the direction of v counts.
        else:
            split[name] = tensor
    return split


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
    assert "misshapen: quantizer.quantizers.3.codebook.weight [7, 4], not [64, 4]" in message


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        (NATIVE | {"colour": 1}, "unknown keys.*colour"),
        (NATIVE | {"encoder_rates": [2, 2]}, "differ in their product"),
        (NATIVE | {"n_codebooks": "four"}, "describes no codec"),
        (HF_SHAPE | {"downsampling_ratios": 8}, "not a codec"),
    ],
)
def test_a_config_of_no_codec_is_refused(tmp_path, kwargs, message):
    write_codec(tmp_path / "codec", kwargs, {"a": torch.zeros(1)})
    with pytest.raises(InputError, match=message):
        load_codec(tmp_path)


def test_incomplete_and_damaged_folders_are_refused(tmp_path):
    folder = write_codec(tmp_path / "codec", NATIVE, dac_model().state_dict())
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])
    with pytest.raises(InputError, match="model.safetensors is damaged"):
        load_codec(tmp_path)
    weights.unlink()
    with pytest.raises(InputError, match="model.safetensors is missing"):
        load_codec(tmp_path)


# Sources


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A machine of its own: empty home and hub cache, no network unless a test points at some."""
    from huggingface_hub import constants

    def endpoint(url):
        monkeypatch.setattr(constants, "ENDPOINT", url)
        template = url + "/{repo_id}/resolve/{revision}/{filename}"
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)

    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(codec_files, "DESCRIPT_URL", "http://127.0.0.1:9/weights.pth")
    endpoint("http://127.0.0.1:9")
    tmp_path.joinpath("home").mkdir()
    machine = type("Machine", (), {"home": tmp_path / "home", "hub": tmp_path / "hub"})
    machine.endpoint = staticmethod(endpoint)
    return machine


@pytest.fixture
def server():
    """A stand-in on loopback for the hub and for Descript's releases: path -> bytes."""
    files, asked = {}, []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append((self.command, self.path))
            content = files.get(self.path)
            self.send_response(200 if content is not None else 404)
            self.send_header("Content-Length", str(len(content or b"")))
            self.send_header("ETag", f'"{abs(hash(content))}"')
            self.send_header("X-Repo-Commit", "a" * 40)
            self.end_headers()
            if self.command == "GET":
                self.wfile.write((content or b"")[: files.get("cut", 10**9)])

        do_HEAD = do_GET

        def log_message(self, *_):
            pass

    running = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=running.serve_forever, daemon=True).start()
    running.files, running.asked = files, asked
    running.url = f"http://127.0.0.1:{running.server_address[1]}"
    yield running
    running.shutdown()
    running.server_close()


def test_without_any_codec_one_message_says_where_it_was_sought(machine):
    with pytest.raises(InputError) as refused:
        load_codec()
    message = str(refused.value)
    assert "weights_44khz_8kbps_0.0.1.pth" in message and "hub" in message
    assert "descript release" in message and "internet" in message


def test_offline_nothing_is_asked_for(machine, server, monkeypatch):
    from huggingface_hub import constants

    machine.endpoint(server.url)
    monkeypatch.setattr(codec_files, "DESCRIPT_URL", server.url + "/weights.pth")
    with pytest.raises(InputError):
        codec_source(allow_download=False)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(InputError):
        codec_source()
    assert server.asked == []


def test_the_hub_gives_two_named_files_and_is_asked_once(
    machine, server, tmp_path, hf_model, monkeypatch
):
    folder = write_codec(tmp_path / "up", HF_SHAPE, hf_tensors(hf_model, "plain"))
    names = ("config.json", "model.safetensors")
    for name in names:
        server.files[f"/descript/dac_44khz/resolve/main/{name}"] = (folder / name).read_bytes()
    machine.endpoint(server.url)
    codec = load_codec()
    assert (codec.source, codec.sample_rate) == ("descript/dac_44khz", 8000)
    got = [path for command, path in server.asked if command == "GET" and "/resolve/" in path]
    assert sorted(path.rpartition("/")[2] for path in got) == sorted(names)
    server.asked.clear()
    codes = np.random.default_rng(0).integers(0, 64, (9, 5))
    assert np.array_equal(load_codec().decode(codes), codec.decode(codes))
    assert server.asked == []


def test_descripts_release_is_kept_where_their_package_keeps_it(machine, server, monkeypatch):
    weights = {"state_dict": dac_model().state_dict(), "metadata": {"kwargs": NATIVE}}
    path = machine.home / "made.pth"
    torch.save(weights, path)
    server.files["/weights.pth"] = path.read_bytes()
    monkeypatch.setattr(codec_files, "DESCRIPT_URL", server.url + "/weights.pth")
    server.files["cut"] = 1000
    with pytest.raises(InputError, match="broke off"):
        load_codec()
    kept = machine.home / ".cache/descript/dac"
    assert list(kept.iterdir()) == []
    del server.files["cut"]
    monkeypatch.setattr(codec_files, "_PIECE_BYTES", 1000)
    fractions = list(open_codec())
    assert len(fractions) > 3 and fractions == sorted(fractions) and fractions[-1] == 1
    assert [one.name for one in kept.iterdir()] == ["weights_44khz_8kbps_0.0.1.pth"]
    server.asked.clear()
    load_codec(allow_download=False)
    assert server.asked == []


def test_the_kept_name_is_that_of_descripts_package():
    dac = codec_files.import_dac()
    tag = dac.utils.__MODEL_LATEST_TAGS__["44khz", "8kbps"]
    assert codec_files._descript_path().name == f"weights_44khz_8kbps_{tag}.pth"
    assert dac.utils.__MODEL_URLS__["44khz", tag, "8kbps"] == codec_files.DESCRIPT_URL


# torchaudio

TRAP = """
import importlib, sys, types, warnings
warnings.simplefilter("error", DeprecationWarning)
warnings.simplefilter("error", FutureWarning)
import torch
class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "torchaudio":
            raise ModuleNotFoundError(name)
if {kind!r} == "none":
    sys.meta_path.insert(0, Hidden())
warnings.filterwarnings("default", module=r"(?!dia_demo|dac|audiotools|torch).*")
from dia_demo.model.codec import random_codec
import numpy as np
codec = random_codec(encoder_dim=2, encoder_rates=[2], decoder_dim=4, decoder_rates=[2])
assert codec.decode(codec.encode(np.ones(99, "f"))).size == 100
import audiotools
stand_in = audiotools.core.util.torchaudio
loaded = sorted(name for name in sys.modules if name.partition(".")[0] == "torchaudio")
try:
    found = importlib.import_module("torchaudio").kind
except Exception as error:
    found = type(error).__name__
print(loaded, getattr(stand_in, "kind", "stand-in"), found)
"""


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("good", "['torchaudio', 'torchaudio.part'] good good"),
        ("broken", "[] stand-in OSError"),
        ("none", "[] stand-in ModuleNotFoundError"),
    ],
)
def test_dac_loads_beside_any_torchaudio_and_leaves_it_as_it_is(tmp_path, kind, expected):
    package = tmp_path / "torchaudio"
    package.mkdir()
    fails = "raise OSError('libtorch_cuda.so')" if kind == "broken" else ""
    (package / "__init__.py").write_text(f"from torchaudio import part\n{fails}\nkind = 'good'\n")
    (package / "part.py").write_text("")
    ran = subprocess.run(
        [sys.executable, "-c", TRAP.format(kind=kind)],
        env={"PYTHONPATH": f"{tmp_path}:{':'.join(p for p in sys.path if p)}", "PATH": ""},
        cwd=codec_files.__file__.partition("/dia_demo/")[0],
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert ran.stdout.strip() == expected, ran.stderr[-2000:]
