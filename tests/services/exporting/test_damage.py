"""Damaged and hostile exports: refused, with the name of the file."""

from __future__ import annotations

import json
import shutil

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from dia_demo.checkpoint_config import read_model_config
from dia_demo.checkpoint_files import MANIFEST, FileRecord, Manifest, header_sha256, write_manifest
from dia_demo.errors import InputError
from dia_demo.model.weights import packed_cache
from tests.helpers.models.exports import loading_refusal

pytestmark = [pytest.mark.processor, pytest.mark.kernels]
WEIGHTS = "prepared-int8.safetensors"
HEAD = "decoder.logits_dense"


@pytest.fixture
def copy(exported, tmp_path):
    return shutil.copytree(exported, tmp_path / "copy")


def flip(file, place: float) -> None:
    content = bytearray(file.read_bytes())
    content[int(place * (len(content) - 1))] ^= 0xFF
    file.write_bytes(content)


@pytest.mark.parametrize("place", [0.0, 0.4, 1.0])
@pytest.mark.parametrize(
    "name", ["config.json", "codec/config.json", "codec/model.safetensors", MANIFEST]
)
def test_a_flipped_byte_is_refused_by_the_name_of_its_file(copy, name, place):
    flip(copy / name, place)
    assert str(copy / name) in loading_refusal(copy)


@pytest.mark.parametrize(
    "name, before, after",
    [
        ("config.json", '"num_hidden_layers": 2', '"num_hidden_layers": 3'),
        (MANIFEST, '"precision": "int8"', '"precision": "int9"'),
    ],
)
def test_a_changed_byte_of_valid_json_is_refused(copy, name, before, after):
    """Before anything is computed from it, such as the memory that the model needs."""
    text = (copy / name).read_text()
    assert before in text
    (copy / name).write_text(text.replace(before, after))
    with pytest.raises(InputError, match=f"{name} is corrupted .its checksum differs"):
        read_model_config(copy)


@pytest.mark.parametrize("place", [0.0, 0.001, 0.02, 0.3, 0.61803, 0.9, 1.0])
def test_a_flipped_byte_of_the_weights_is_refused(copy, place):
    flip(copy / WEIGHTS, place)
    message = loading_refusal(copy)
    assert f"{copy / WEIGHTS} is corrupted" in message and "copy or fetch" in message


def test_the_damaged_tensor_is_named(copy):
    with safe_open(copy / WEIGHTS, framework="pt") as opened:
        names = list(opened.keys())
    flip(copy / WEIGHTS, 1.0)
    assert any(f"the checksum of {name} differs" in loading_refusal(copy) for name in names)


def test_half_a_file_is_refused(copy):
    content = (copy / WEIGHTS).read_bytes()
    (copy / WEIGHTS).write_bytes(content[: len(content) // 2])
    assert "bytes, expected" in loading_refusal(copy)


@pytest.mark.parametrize("name", ["config.json", "codec/model.safetensors", WEIGHTS, MANIFEST])
def test_a_missing_file_is_named(copy, name):
    (copy / name).unlink()
    assert f"{copy / name} is missing" in loading_refusal(copy)


def test_another_layout_says_what_to_do(copy, monkeypatch):
    monkeypatch.setitem(packed_cache.LAYOUTS, "int8", 99)
    message = loading_refusal(copy)
    assert "in layout 99" in message and "prepare the original model again" in message


def seal(folder) -> None:
    """Make the checksums fit, as somebody would who wants to do harm."""
    files = {
        path.relative_to(folder).as_posix(): FileRecord.from_file(path)
        for path in folder.rglob("*")
        if path.is_file() and path.name not in ("README.md", MANIFEST)
    }
    write_manifest(folder, Manifest(WEIGHTS, header_sha256(folder / WEIGHTS), files), {})


def shorten(state, linears):
    state[HEAD] = state[HEAD][:, :-64].contiguous()


def claim_more_inputs(state, linears):
    linears[HEAD][2] *= 2


def claim_fewer_bits(state, linears):
    linears[HEAD][0] = "int4"


def claim_no_precision(state, linears):
    linears[HEAD][0] = "int2"


def unpack(state, linears):
    precision, outputs, inputs = linears.pop(HEAD)
    state[f"{HEAD}.weight"] = torch.ones(outputs, inputs, dtype=torch.bfloat16)
    del state[HEAD]


def replace_a_norm(state, linears):
    state["decoder.norm"] = state.pop(HEAD)
    linears["decoder.norm"] = linears.pop(HEAD)


def name_no_module(state, linears):
    state["decoder.none"] = state[HEAD].clone()
    linears["decoder.none"] = linears[HEAD]


def write_halves(state, linears):
    state["encoder.norm.weight"] = state["encoder.norm.weight"].half()


def write_nan(state, linears):
    state["encoder.norm.weight"][0] = float("nan")


def drop_a_tensor(state, linears):
    del state["encoder.norm.weight"]


def list_linears(state, linears):
    linears[HEAD] = 5


@pytest.mark.parametrize(
    "change",
    [
        shorten,
        claim_more_inputs,
        claim_fewer_bits,
        claim_no_precision,
        unpack,
        replace_a_norm,
        name_no_module,
        write_halves,
        write_nan,
        drop_a_tensor,
        list_linears,
    ],
)
def test_weights_of_another_shape_are_refused(copy, change):
    """Compiled kernels read as far as the sizes say, past the end of what is smaller."""
    file = copy / WEIGHTS
    state = {name: tensor.clone() for name, tensor in load_file(file).items()}
    with safe_open(file, framework="pt") as opened:
        metadata = opened.metadata()
    linears = json.loads(metadata["linears"])
    change(state, linears)
    sums = {name: packed_cache._checksum(tensor) for name, tensor in state.items()}
    metadata |= {"linears": json.dumps(linears), "sums": json.dumps(sums)}
    save_file(state, file, metadata)
    seal(copy)
    assert f"{file} is corrupted or not a file of prepared weights" in loading_refusal(copy)


@pytest.mark.parametrize("name", ["../small/config.json", "/etc/passwd", "codec/../../x", ".."])
def test_a_manifest_that_lists_other_folders_is_refused(copy, name):
    files = {name: FileRecord(1, "0" * 64), WEIGHTS: FileRecord.from_file(copy / WEIGHTS)}
    write_manifest(copy, Manifest(WEIGHTS, "", files), {})
    assert "is not a manifest of prepared weights" in loading_refusal(copy)


def test_a_manifest_of_a_later_program_is_refused(copy, monkeypatch):
    monkeypatch.setattr("dia_demo.checkpoint_files.MANIFEST_FORMAT", 2)
    seal(copy)
    monkeypatch.undo()
    assert "has format 2" in loading_refusal(copy)
