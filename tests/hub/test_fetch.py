"""Fetching from a stand-in hub on loopback: named files, once, with progress, plain errors."""

import json
import shutil
import threading

import pytest
import torch
from huggingface_hub import constants
from safetensors.torch import load_file

from dia_demo.checkpoint_files import INDEX, SAFETENSORS
from dia_demo.errors import InputError
from dia_demo.families.resolve import resolve
from dia_demo.hub.cache import cached_config
from dia_demo.hub.fetch import fetch_checkpoint, remote_files
from dia_demo.model.weights import checkpoint
from dia_demo.services.models import fetch_description, find_model
from dia_demo.task import result_of
from tests.helpers.models.checkpoints import nari_state, say, write_shards
from tests.helpers.models.known import DIA_NAME
from tests.helpers.models.references import make_reference
from tests.helpers.stand_ins.stand_in_hub import COMMIT, NAME, Hub, isolate, point_at, running_hub


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """An empty cache, and nobody to ask unless a test uses `server`."""
    isolate(monkeypatch, tmp_path / "cache")
    return tmp_path / "cache"


@pytest.fixture
def server(monkeypatch):
    stand_in = Hub()
    with running_hub(stand_in) as url:
        point_at(monkeypatch, url)
        yield stand_in


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    return make_reference("four channels, gqa 1", tmp_path_factory.mktemp("source")).folder


@pytest.fixture
def repository(source, tmp_path, server):
    """The hub's own layout: config, shards with their index, and pickles that must stay there."""
    folder = tmp_path / "repository"
    folder.mkdir()
    shutil.copy(source / "config.json", folder)
    shutil.copy(source / "generation_config.json", folder)
    write_shards(folder, load_file(source / SAFETENSORS))
    for pickle in ("dia-v1.pth", "pytorch_model.bin"):
        (folder / pickle).write_bytes(b"six more gigabytes")
    (folder / "README.md").write_text("not needed")
    server.upload(folder)
    return folder


def refusal(name: str = NAME) -> str:
    with pytest.raises(InputError) as caught:
        result_of(fetch_checkpoint(name))
    return str(caught.value)


# What is fetched


def test_each_needed_file_is_fetched_exactly_once(server, repository):
    """Never a listing, never the whole repository, never the pickles beside the safetensors."""
    folder = result_of(fetch_checkpoint(NAME))
    shards = [f"model-0000{number}-of-00003.safetensors" for number in (1, 2, 3)]
    expected = ["config.json", "generation_config.json", INDEX, *shards]
    assert server.fetched_files() == expected
    others = {f"/{NAME}/resolve/{COMMIT}/{file}" for file in expected[1:]}
    assert {path for _, path in server.requests()} == {
        f"/{NAME}/resolve/main/config.json", f"/{NAME}/resolve/{COMMIT}/config.json", *others,
    }  # fmt: skip
    for file in expected:
        assert (folder / file).read_bytes() == (repository / file).read_bytes()


def test_the_sizes_told_beforehand_are_those_of_what_is_fetched(server, repository):
    """A tokenizer is counted where the repository has one."""
    server.files["tokenizer.json"] = bytes(12_345)
    others = ("tokenizer.json", "no_such_file.json")
    sizes = {remote.file: remote.size for remote in result_of(remote_files(NAME, others))}
    assert sizes["tokenizer.json"] == 12_345 and "no_such_file.json" not in sizes
    before = set(server.fetched_files())
    result_of(fetch_checkpoint(NAME, others))
    assert set(server.fetched_files()) - before == set(sizes)


def test_what_was_fetched_is_the_model(source, repository):
    model = result_of(checkpoint.load(result_of(fetch_checkpoint(NAME)), "float32"))
    expected = result_of(checkpoint.load(source, "float32"))
    params = dict(max_tokens=30, seed=1)
    assert (say(model, **params).codes() == say(expected, **params).codes()).all()


def test_a_single_file_of_safetensors_is_preferred_to_pickles(server, repository, source):
    del server.files[INDEX]
    server.files[SAFETENSORS] = (source / SAFETENSORS).read_bytes()
    folder = result_of(fetch_checkpoint(NAME))
    assert server.fetched_files() == ["config.json", "generation_config.json", SAFETENSORS]
    result_of(checkpoint.load(folder, "float32"))


def test_a_pickle_is_fetched_where_there_is_nothing_else(server, source, tmp_path):
    torch.save(nari_state(source), tmp_path / "dia-v1.pth")
    server.files = {
        "config.json": (source / "config.json").read_bytes(),
        "dia-v1.pth": (tmp_path / "dia-v1.pth").read_bytes(),
        "pytorch_model.bin": b"the same again",
    }
    folder = result_of(fetch_checkpoint(NAME))
    assert server.fetched_files() == ["config.json", "dia-v1.pth"]
    result_of(checkpoint.load(folder, "float32"))


def test_the_second_time_nothing_is_asked(server, repository):
    del server.files["generation_config.json"]
    first = result_of(fetch_checkpoint(NAME))
    server.asked.clear()
    assert result_of(fetch_checkpoint(NAME)) == first
    assert server.requests() == []


def test_the_description_needs_no_weights(server, repository):
    info = result_of(fetch_description(find_model(NAME)))
    assert info.config.decoder.num_channels == 4
    assert server.fetched_files() == ["config.json", "generation_config.json"]
    server.asked.clear()
    assert resolve(NAME) == info and server.requests() == []


def test_before_the_first_fetch_a_description_asks_nobody(server):
    assert cached_config(NAME) is None
    assert resolve(DIA_NAME).config.decoder.num_layers == 18
    assert server.requests() == []


# Progress


def test_fractions_rise_to_one(repository):
    fractions = list(fetch_checkpoint(NAME))
    assert fractions == sorted(fractions)
    assert fractions[0] == 0 and fractions[-1] == 1


def test_a_file_half_way_is_half_way(server, source):
    """Gigabytes take minutes: the fraction must move within a file, not from file to file."""
    server.files["config.json"] = (source / "config.json").read_bytes()
    server.files[SAFETENSORS] = (source / SAFETENSORS).read_bytes()
    fetching = fetch_checkpoint(NAME)
    # Hold the weights only: everything before them is small.
    for fraction in fetching:
        if server.requests() and server.requests()[-1][1].endswith(INDEX):
            server.hold = threading.Event()
        if fraction > 0.4:
            break
    assert 0.4 < fraction <= 0.55
    server.hold.set()
    assert list(fetching)[-1] == 1


# What cannot be had


def test_offline_the_cache_is_enough(repository, monkeypatch):
    folder = result_of(fetch_checkpoint(NAME))
    point_at(monkeypatch, "http://127.0.0.1:9")
    for offline in (False, True):
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", offline)
        assert result_of(fetch_checkpoint(NAME)) == folder


def test_offline_without_a_cache_no_request_is_sent(server, monkeypatch):
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    message = refusal()
    assert NAME in message and "nano" in message and server.requests() == []


def test_offline_with_config_alone_says_that_the_weights_are_missing(repository, monkeypatch):
    result_of(fetch_description(find_model(NAME)))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert "local cache" in refusal()


def test_an_unreachable_hub_is_one_clear_message():
    """The hub's own client tries for half a minute before it says so; a person presses Stop."""
    message = refusal()
    assert "cannot be reached" in message and NAME in message and "nano voice" in message
    assert "Error" not in message and "folder" not in message, "words for a visitor of the page"


def test_a_repository_that_is_not_there_says_so(server):
    server.status = {"config.json": (404, "RepoNotFound")}
    assert f"no model {NAME}" in refusal()
    assert "no model owner/other" in refusal("owner/other")


@pytest.mark.parametrize("status", [401, 403])
def test_the_refusal_of_a_gated_repository_explains_how_to_get_access(server, status):
    server.status = {"config.json": (status, "GatedRepo")}
    message = refusal()
    assert "terms" in message and "HF_TOKEN" in message


def test_a_repository_that_wants_a_login_names_the_token(server):
    server.status = {"config.json": (401, "")}
    assert "HF_TOKEN" in refusal()


def test_a_repository_of_something_else_says_that_it_is_no_dia(server):
    server.files = {"README.md": b"a data set"}
    assert "not a Dia checkpoint" in refusal()


def test_a_repository_without_weights_says_what_was_looked_for(server, source):
    server.files["config.json"] = (source / "config.json").read_bytes()
    message = refusal()
    assert SAFETENSORS in message and "dia-v1.pth" in message


def test_an_index_that_points_elsewhere_is_refused(server, repository):
    outside = {"weight_map": {"a": "../../../other/repository/model.safetensors"}}
    server.files[INDEX] = json.dumps(outside).encode()
    assert INDEX in refusal()
    assert server.fetched_files()[-1] == INDEX


def test_a_hub_in_trouble_is_no_reason_to_fetch_a_pickle(server, repository):
    """An error for the index once counted as 'no index', and 6 GB of .pth came instead."""
    server.status = {INDEX: (503, "")}
    assert INDEX in refusal()
    assert server.fetched_files() == ["config.json", "generation_config.json"]


def test_a_shard_that_is_missing_on_the_hub_is_named(server, repository):
    del server.files["model-00002-of-00003.safetensors"]
    assert "model-00002-of-00003.safetensors" in refusal()


def test_two_loads_after_a_failure_work(server, repository):
    """A failed fetch leaves nothing behind that spoils the next."""
    server.status = {"config.json": (403, "GatedRepo")}
    refusal()
    server.status = {}
    result_of(fetch_checkpoint(NAME))
