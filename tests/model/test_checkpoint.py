"""Loading: every layout of the same weights is the same model; anything amiss is named."""

import json
import os
import pickle
import shutil
import weakref
from unittest.mock import Mock

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from dia_demo.checkpoint_files import INDEX, SAFETENSORS, weight_files
from dia_demo.errors import InputError
from dia_demo.families.resolve import local_folder
from dia_demo.model.weights import checkpoint, tensor_files
from tests.helpers.models.checkpoints import (
    layouts,
    load,
    nari_state,
    say,
    write_shards,
    write_small,
)
from tests.helpers.models.references import make_reference

SHAPE = "four channels, gqa 1"


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """A folder that transformers itself wrote."""
    return make_reference(SHAPE, tmp_path_factory.mktemp("source")).folder


@pytest.fixture
def folder(source, tmp_path):
    """A copy of it to damage."""
    return shutil.copytree(source, tmp_path / "copy")


def refusal(folder) -> str:
    with pytest.raises(InputError) as caught:
        load(folder)
    said = str(caught.value)
    assert str(folder) in said
    return said


def rewrite(folder, change) -> None:
    """Damage the weights: `change` edits the table of tensors in place."""
    state = load_file(folder / SAFETENSORS)
    change(state)
    save_file(state, folder / SAFETENSORS)


# The same weights


def test_every_layout_loads_as_the_same_model(source, tmp_path):
    """Heads, gate and up, channels or rows taken in another order would change some of them."""
    first = load(source)
    params = dict(temperature=1.3, cfg_scale=2.0, max_tokens=40, seed=3)
    expected = say(first, **params).codes()
    weights = first.state_dict()
    count = 0
    for name, folder in layouts(source, tmp_path):
        model = load(folder)
        found = model.state_dict()
        assert found.keys() == weights.keys(), name
        assert all(torch.equal(found[key], weights[key]) for key in weights), name
        np.testing.assert_array_equal(say(model, **params).codes(), expected, err_msg=name)
        assert not any(parameter.requires_grad for parameter in model.parameters()), name
        count += 1
    assert count == 12


def test_transformers_own_shards_are_read(source, tmp_path):
    sharded = make_reference(SHAPE, tmp_path, max_shard_size="100KB").folder
    assert len(weight_files(sharded)) > 2
    found, expected = load(sharded).state_dict(), load(source).state_dict()
    assert all(torch.equal(found[key], expected[key]) for key in expected)


def test_safetensors_come_before_pickles(folder):
    """The hub's folder holds both; the pickle must not even be opened."""
    (folder / "dia-v1.pth").write_bytes(b"not to be read")
    (folder / "pytorch_model.bin").write_bytes(b"not to be read")
    load(folder)


def test_bfloat16_leaves_only_the_norms_in_float32(source):
    whole, half = load(source), load(source, "bfloat16")
    for (name, parameter), exact in zip(half.named_parameters(), whole.parameters(), strict=True):
        if name.endswith("norm.weight"):
            assert parameter.dtype == torch.float32 and torch.equal(parameter, exact), name
        else:
            assert torch.equal(parameter, exact.to(torch.bfloat16)), name
    codes = say(half, max_tokens=60, seed=1).codes()
    config = half.config
    assert len(codes) == config.frames_within(60)
    assert codes.min() >= 0 and codes.max() < config.num_codes


def test_weights_of_another_precision_are_converted(folder):
    exact = load(folder).state_dict()
    rewrite(folder, lambda state: state.update({k: v.double() for k, v in state.items()}))
    found = load(folder).state_dict()
    assert all(found[key].dtype == torch.float32 for key in exact)
    assert all(torch.equal(found[key], exact[key]) for key in exact)


@pytest.mark.parametrize("kind", ["transformers, safetensors", "nari, dia-v1.pth"])
def test_tensors_are_read_one_at_a_time(source, tmp_path, monkeypatch, kind):
    """Two copies of 6.4 GB do not fit many machines: what was copied is let go before the next."""
    folder = dict(layouts(source, tmp_path))[kind]
    read, seen, most = checkpoint.read_tensors, [], 0

    def watched(files):
        nonlocal most
        for name, tensor in read(files):
            seen.append(weakref.ref(tensor))
            alive = sum(one() is not None for one in seen)
            most = max(most, alive)
            yield name, tensor

    monkeypatch.setattr(checkpoint, "read_tensors", watched)
    loading = checkpoint.load(folder, "float32")
    next(loading)
    assert len(seen) == 1, "reading runs ahead of the caller, who may stop at any time"
    fractions = list(loading)
    assert len(seen) > 20 and most <= 2
    assert fractions == sorted(fractions) and fractions[-1] == 1.0


# What does not fit


def test_the_refusal_names_every_tensor_that_does_not_fit(folder):
    def damage(state):
        del state["model.encoder.norm.weight"]
        state["model.decoder.layers.9.mlp.down_proj.weight"] = torch.zeros(2, 2)
        state["logits_dense.weight"] = torch.zeros(7, 80)
        state["model.decoder.norm.weight"] = torch.ones(81)

    rewrite(folder, damage)
    said = refusal(folder)
    assert "missing: model.encoder.norm.weight" in said
    assert "surplus: model.decoder.layers.9.mlp.down_proj.weight" in said
    assert "logits_dense.weight is [7, 80], should be [528, 80]" in said
    assert "model.decoder.norm.weight is [81], should be [80]" in said


def test_nari_heads_of_another_shape_are_named(folder):
    """[in, heads, dim] with heads and dim swapped holds as many numbers and must not pass."""
    state = nari_state(folder)
    key = "decoder.layers.0.self_attention.q_proj.weight"
    assert state[key].shape == (80, 5, 16)
    state[key] = state[key].transpose(1, 2).contiguous()
    save_file(state, folder / SAFETENSORS)
    assert f"{key} is [80, 16, 5], should be [80, 5, 16]" in refusal(folder)


def test_a_long_list_of_tensors_ends_with_the_number_left_out(folder):
    rewrite(folder, lambda state: [state.pop(name) for name in list(state)[:12]])
    assert "and 4 more" in refusal(folder)


def test_weights_of_another_config_are_refused(folder):
    raw = json.loads((folder / "config.json").read_text())
    raw["decoder_config"]["num_hidden_layers"] += 1
    (folder / "config.json").write_text(json.dumps(raw))
    assert "missing: model.decoder.layers.2." in refusal(folder)


def test_a_tensor_that_stands_in_two_shards_is_refused(folder):
    """Whichever came last once won."""
    state = load_file(folder / SAFETENSORS)
    (folder / SAFETENSORS).unlink()
    write_shards(folder, state)
    shard = folder / "model-00001-of-00003.safetensors"
    twice = {"logits_dense.weight": state["logits_dense.weight"]}
    save_file(load_file(shard) | twice, shard)
    other = next(iter(load_file(folder / "model-00002-of-00003.safetensors")))
    save_file(load_file(shard) | {other: state[other]}, shard)
    assert other in refusal(folder)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize("name", ["logits_dense.weight", "model.encoder.norm.weight"])
def test_a_weight_that_is_no_number_is_named(folder, name, value):
    def damage(state):
        state[name].view(-1)[-1] = value

    rewrite(folder, damage)
    said = refusal(folder)
    assert name in said and "NaN or infinity" in said


def test_large_weights_are_no_damage(folder):
    """The sum that looks for NaN overflows here; the weights are finite."""
    rewrite(folder, lambda state: state["logits_dense.weight"].fill_(3e38))
    load(folder)


@pytest.mark.parametrize("dtype", [torch.int64, torch.int8, torch.bool])
def test_whole_numbers_are_no_weights(folder, dtype):
    def damage(state):
        state["logits_dense.weight"] = state["logits_dense.weight"].to(dtype)

    rewrite(folder, damage)
    said = refusal(folder)
    assert "logits_dense.weight" in said and str(dtype) in said


# Files


@pytest.mark.parametrize(
    "error",
    [
        MemoryError("Cannot allocate memory (os error 12)"),
        RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 4 bytes"),
    ],
)
def test_a_lack_of_memory_is_not_taken_for_damage(folder, monkeypatch, error):
    monkeypatch.setattr(tensor_files, "_read_safetensors", Mock(side_effect=error))
    said = refusal(folder)
    assert "out of memory" in said and "damaged" not in said


@pytest.mark.parametrize("kind", ["safetensors", "dia-v1.pth", "an unzipped pickle"])
def test_a_truncated_file_is_named_wherever_it_ends(source, tmp_path, kind):
    folder = dict(layouts(source, tmp_path))[f"nari, {kind}"]
    (file,) = weight_files(folder)
    whole = file.read_bytes()
    for kept in (0, 1, 9, 100, len(whole) // 2, len(whole) - 1000, len(whole) - 1):
        file.write_bytes(whole[:kept])
        assert file.name in refusal(folder), f"{kept} bytes"


@pytest.mark.filterwarnings("ignore:Detected pickle protocol")
@pytest.mark.parametrize("name", [SAFETENSORS, "dia-v1.pth"])
def test_bytes_that_are_no_weights_are_refused(folder, name):
    """A page of HTML, a pointer of git-lfs, noise: each raises something else inside torch."""
    (folder / SAFETENSORS).unlink()
    noise = np.random.default_rng(0)
    contents = [noise.bytes(500) for _ in range(30)]
    contents += [b"\x80\x02" + noise.bytes(300) for _ in range(30)]
    contents += [b"<!DOCTYPE html>", b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n"]
    for content in contents:
        (folder / name).write_bytes(content)
        assert name in refusal(folder)


class Dropper:
    """Unpickling one of these creates a file."""

    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return os.mkdir, (self.path,)


@pytest.mark.filterwarnings("ignore:Detected pickle protocol")
@pytest.mark.parametrize("zipped", [True, False])
def test_code_in_a_refused_pickle_never_runs(folder, zipped):
    state = nari_state(folder)
    (folder / SAFETENSORS).unlink()
    trap = folder / "executed"
    torch.save(
        state | {"extra": Dropper(trap)},
        folder / "dia-v1.pth",
        _use_new_zipfile_serialization=zipped,
    )
    assert "dia-v1.pth" in refusal(folder)
    (folder / "dia-v1.pth").write_bytes(pickle.dumps(Dropper(trap)))
    refusal(folder)
    assert not trap.exists()


@pytest.mark.parametrize("content", [[1, 2], {"weights": 3}, {"state_dict": None}, {1: 2}])
def test_a_pickle_of_something_else_is_refused(folder, content):
    (folder / SAFETENSORS).unlink()
    torch.save(content, folder / "pytorch_model.bin")
    refusal(folder)


def test_an_index_that_names_missing_files_lists_them(folder):
    write_shards(folder, load_file(folder / SAFETENSORS))
    (folder / "model-00001-of-00003.safetensors").unlink()
    (folder / "model-00003-of-00003.safetensors").unlink()
    said = refusal(folder)
    assert "model-00001-of-00003" in said and "model-00003-of-00003" in said
    assert "model-00002-of-00003" not in said


@pytest.mark.parametrize(
    "index",
    [
        {},
        {"weight_map": {}},
        {"weight_map": ["model.safetensors"]},
        {"weight_map": {"logits_dense.weight": 5}},
        {"weight_map": {"logits_dense.weight": "../outside.safetensors"}},
        {"weight_map": {"logits_dense.weight": "/outside.safetensors"}},
    ],
)
def test_an_index_that_is_none_is_refused(folder, index):
    """A file beside the folder is not part of the checkpoint, whatever its index says."""
    shutil.copy(folder / SAFETENSORS, folder.parent / "outside.safetensors")
    (folder / INDEX).write_text(json.dumps(index))
    assert INDEX in refusal(folder)


def test_a_folder_without_weights_says_what_is_needed(folder):
    (folder / SAFETENSORS).unlink()
    said = refusal(folder)
    assert SAFETENSORS in said and "dia-v1.pth" in said


# Names


def test_a_name_is_embedded_local_or_of_the_hub(tmp_path):
    assert local_folder("nano").name == "nano"
    assert local_folder(str(tmp_path)) == tmp_path
    assert local_folder("nari-labs/Dia-1.6B-0626") is None
    assert local_folder("a1/b_2.c-3") is None


@pytest.mark.parametrize(
    "name",
    ["", " ", "Dia", "a/b/c", "/nowhere/at/all", "~nobody-of-that-name/x", "x" * 5000, "a\0b",
     "a--b/c", "a/b..c", "a/b.git", "ä/b", "a/" + "b" * 200, "owner/name\n", "../x", "-a/b"],
)  # fmt: skip
def test_a_name_that_can_be_none_of_them_is_refused(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="nor a hub name"):
        local_folder(name)


def test_a_local_folder_of_a_hub_names_shape_is_the_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_small(tmp_path / "owner" / "name")
    assert local_folder("owner/name").resolve() == tmp_path / "owner" / "name"
