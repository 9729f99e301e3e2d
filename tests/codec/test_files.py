"""Where the codec comes from: found on the machine, or fetched once from hub or Descript."""

import http.server
import threading

import numpy as np
import pytest
import torch

from dia_demo.codec import files as codec_files
from dia_demo.codec.codec import load_codec, open_codec
from dia_demo.codec.files import find_codec
from dia_demo.errors import InputError
from dia_demo.task import result_of
from tests.helpers.models.codec_folders import (
    HF_SHAPE,
    NATIVE,
    dac_model,
    hf_tensors,
    transformers_dac,
    write_codec,
)


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
        result_of(find_codec(allow_download=False))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(InputError):
        result_of(find_codec())
    assert server.asked == []


def test_the_codec_files_are_fetched_from_the_hub_only_once(machine, server, tmp_path):
    folder = write_codec(tmp_path / "up", HF_SHAPE, hf_tensors(transformers_dac(), "plain"))
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
    with pytest.raises(InputError, match="interrupted"):
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
