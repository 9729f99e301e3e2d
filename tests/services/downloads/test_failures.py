"""Downloads that fail, with every failure that a hub can have: one message each, with its cause
and what to do."""

from __future__ import annotations

import json

import pytest
import torch
from safetensors.torch import load_file, save_file

from dia_demo.checkpoint_files import SAFETENSORS
from dia_demo.errors import InputError
from dia_demo.families.resolve import resolve
from dia_demo.model.weights import checkpoint
from dia_demo.services.downloads.downloads import DownloadState
from dia_demo.services.models import Models
from dia_demo.task import result_of
from tests.helpers.downloads import SHARD, problem, wait_until_settled
from tests.helpers.stand_ins.stand_in_hub import NAME, point_at


def test_no_network(downloads, server, monkeypatch):
    point_at(monkeypatch, "http://127.0.0.1:9")
    assert "hub cannot be reached" in problem(downloads)


def test_a_cut_connection(server, downloads):
    server.cuts = {SHARD: [500, *[0] * 30]}
    message = problem(downloads)
    assert SHARD in message and "connection" in message and "Try again" in message


def test_a_wrong_checksum(server, downloads):
    server.damaged = {SHARD: bytes(len(server.files[SHARD]))}
    message = problem(downloads)
    assert SHARD in message and "corrupted" in message and "try again" in message


@pytest.mark.parametrize(
    ("status", "words"),
    [
        ((401, ""), ("HF_TOKEN",)),
        ((403, "GatedRepo"), ("terms", "HF_TOKEN")),
        ((404, "RepoNotFound"), ("no model", "spelling")),
    ],
    ids=["401", "403 gated", "404"],
)
def test_a_refusal(server, downloads, status, words):
    server.status = {"config.json": status}
    message = problem(downloads)
    assert all(word in message for word in words), message


def test_too_many_requests(server, downloads):
    server.status, server.retry_after = {SHARD: (429, "")}, 600
    message = problem(downloads)
    assert "429" in message and "Try again in 600 s" in message


def test_a_disk_that_is_too_small(server, downloads, monkeypatch):
    monkeypatch.setattr("dia_demo.hub.transfer.free_disk", lambda: 200_000_500)
    wait_until_settled(downloads)
    message = problem(downloads)
    assert "Not enough disk space" in message and "HF_HOME" in message
    assert not [file for file in server.fetched_files() if file.endswith(".safetensors")]


def test_a_defect_of_the_program_is_logged(server, downloads, monkeypatch, caplog):
    def fail(model: str):
        raise RuntimeError("a defect")
        yield

    monkeypatch.setattr("dia_demo.services.downloads.downloads.fetch_all", fail)
    wait_until_settled(downloads)
    message = problem(downloads)
    assert "program's log" in message and "RuntimeError" not in message
    assert "a defect" in caplog.text


def test_another_architecture_is_refused_before_its_weights(server, downloads):
    server.files["config.json"] = json.dumps({"model_type": "llama"}).encode()
    message = problem(downloads)
    assert "'llama'" in message and "not a Dia checkpoint" in message
    assert not [file for file in server.fetched_files() if file.endswith(".safetensors")]


def test_another_architecture_does_not_empty_the_menu(server, downloads):
    """Its config in the cache once made the page fail for everybody."""
    server.files["config.json"] = json.dumps({"model_type": "llama"}).encode()
    wait_until_settled(downloads)
    assert [info.name for info in Models(("nano", NAME), "nano").values()] == ["nano", NAME]


class Payload:
    def __init__(self, proof) -> None:
        self.proof = proof

    def __reduce__(self):
        return open, (str(self.proof), "w")


def test_a_pickle_with_a_payload(server, downloads, tmp_path):
    torch.save({"a": Payload(tmp_path / "proof")}, tmp_path / "dia-v1.pth")
    server.files = {
        "config.json": server.files["config.json"],
        "dia-v1.pth": (tmp_path / "dia-v1.pth").read_bytes(),
    }
    message = problem(downloads)
    assert "dia-v1.pth" in message and "other than tensors" in message
    assert not (tmp_path / "proof").exists()


def replace_weights(server, source, tmp_path, change) -> str:
    """One file whose tensors were changed; returns the name of the first."""
    state = load_file(source / SAFETENSORS)
    name = next(name for name in state if name.endswith("q_proj.weight"))
    change(state, name)
    save_file(state, tmp_path / SAFETENSORS)
    server.files = {
        "config.json": server.files["config.json"],
        SAFETENSORS: (tmp_path / SAFETENSORS).read_bytes(),
    }
    return name


def test_a_missing_tensor(server, downloads, source, tmp_path):
    name = replace_weights(server, source, tmp_path, lambda state, name: state.pop(name))
    message = problem(downloads)
    assert f"missing: {name}" in message
    assert not wait_until_settled(downloads).can_retry, "the same files would come again"


def test_a_misshapen_tensor(server, downloads, source, tmp_path):
    def halve(state, name) -> None:
        state[name] = state[name][: len(state[name]) // 2].clone()

    name = replace_weights(server, source, tmp_path, halve)
    assert f"misshapen: {name}" in problem(downloads)


def test_nan_is_refused_when_the_model_is_loaded(server, downloads, source, tmp_path):
    def spoil(state, name) -> None:
        state[name][0, 0] = float("nan")

    name = replace_weights(server, source, tmp_path, spoil)
    downloads.start(NAME, "anna")
    assert wait_until_settled(downloads).state is DownloadState.HERE
    with pytest.raises(InputError) as caught:
        result_of(checkpoint.load(resolve(NAME).folder, "float32"))
    assert name in str(caught.value) and "NaN" in str(caught.value)


def test_without_a_connection_the_message_is_about_it_and_names_the_button_that_exists(
    downloads, server, monkeypatch
):
    point_at(monkeypatch, "http://127.0.0.1:9")
    assert "config.json" not in problem(downloads)
    with pytest.raises(InputError, match="hub cannot be reached.*press Try again") as error:
        downloads.check_here(resolve(NAME))
    assert "Download" not in str(error.value)
