"""Downloads as the page uses them, from a stand-in hub with every failure that a hub can have."""

from __future__ import annotations

import json
import shutil
import threading
import time

import pytest
import torch
from huggingface_hub import constants
from safetensors.torch import load_file, save_file

from dia_demo.checkpoint_files import INDEX, SAFETENSORS
from dia_demo.codec import files as codec_files
from dia_demo.config import RuntimeConfig
from dia_demo.engine.engine import Engine
from dia_demo.errors import InputError
from dia_demo.model import checkpoint
from dia_demo.services.downloads.downloads import PROGRAM, Downloads, DownloadState, DownloadStatus
from dia_demo.services.downloads.plan import is_here
from dia_demo.services.models import ModelRef, choices, first_choice
from dia_demo.services.settings import Settings
from dia_demo.services.synthesis import Synthesis
from dia_demo.task import result_of
from tests.helpers.checkpoints import write_codec, write_shards, write_small
from tests.helpers.stand_in_hub import NAME, Hub, isolate, point_at, running_hub
from tests.helpers.synthesis_requests import make_request

FIRST, SHARD = "model-00001-of-00003.safetensors", "model-00002-of-00003.safetensors"
CODEC_SIZE = 1000


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """A small checkpoint in one file."""
    folder = write_small(tmp_path_factory.mktemp("source") / "small")
    index = json.loads((folder / INDEX).read_text())
    (file,) = set(index["weight_map"].values())
    (folder / file).rename(folder / SAFETENSORS)
    (folder / INDEX).unlink()
    return folder


@pytest.fixture
def server(source, tmp_path, monkeypatch):
    """A hub with the checkpoint in three files; its codec is on this machine."""
    isolate(monkeypatch, tmp_path / "cache")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr(codec_files, "DESCRIPT_URL", "http://127.0.0.1:9/weights.pth")
    codec = codec_files._descript_path()
    codec.parent.mkdir(parents=True)
    codec.write_bytes(bytes(CODEC_SIZE))
    folder = tmp_path / "repository"
    folder.mkdir()
    shutil.copy(source / "config.json", folder)
    write_shards(folder, load_file(source / SAFETENSORS))
    stand_in = Hub()
    stand_in.upload(folder)
    with running_hub(stand_in) as url:
        point_at(monkeypatch, url)
        yield stand_in


@pytest.fixture
def downloads():
    service = Downloads()
    yield service
    service.close()


def settled(downloads: Downloads, person: str = "") -> DownloadStatus:
    """The status once nothing is in progress."""
    return wait_for(
        downloads,
        person,
        lambda status: status.state not in (DownloadState.LOOKING, DownloadState.RUNNING),
    )


def wait_for(downloads: Downloads, person: str, condition) -> DownloadStatus:
    deadline = time.monotonic() + 60
    while not condition(status := downloads.status(NAME, person)):
        assert time.monotonic() < deadline, status
        time.sleep(0.01)
    return status


def problem(downloads: Downloads) -> str:
    """Why the download fails; one message."""
    downloads.start(NAME, "anna")
    status = settled(downloads)
    assert status.state is DownloadState.FAILED, status
    return status.problem


def weights_size(server) -> int:
    return sum(len(content) for file, content in server.files.items() if file.startswith("model-"))


# What is said before anything starts


def test_the_size_is_known_before_the_download(server, downloads):
    status = settled(downloads)
    assert status.state is DownloadState.NEEDED
    assert (status.here, status.total) == (0, weights_size(server))
    assert status.free_disk > 0
    assert not [file for file in server.fetched() if file.endswith(".safetensors")]


def test_what_is_here_already_is_subtracted(server, downloads):
    server.cuts = {SHARD: [500, *[0] * 30]}
    problem(downloads)
    again = Downloads()  # As after a restart.
    status = settled(again)
    first = len(server.files[FIRST])
    assert status.total == weights_size(server) - first, "the first file is whole"
    assert status.here == 500


def test_a_model_in_a_folder_needs_nothing(downloads, folder):
    assert downloads.status(str(folder)).state is DownloadState.HERE
    assert downloads.status("nano").state is DownloadState.HERE


def test_the_codec_is_part_of_the_size(server, downloads, tmp_path):
    codec_files._descript_path().unlink()
    write_codec(tmp_path / "codec")
    server.upload(tmp_path / "codec", codec_files.HUB_NAME)
    sizes = [len(content) for content in server.others[codec_files.HUB_NAME].values()]
    assert settled(downloads).total == weights_size(server) + sum(sizes)
    downloads.start(NAME, "anna")
    assert settled(downloads).state is DownloadState.HERE and is_here(NAME)


def test_offline_the_reason_is_said(server, downloads, monkeypatch):
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    status = settled(downloads)
    assert status.state is DownloadState.FAILED and "HF_HUB_OFFLINE" in status.problem
    assert server.asked == []


# The download


def test_a_download_ends_with_the_model_on_this_machine(server, downloads):
    settled(downloads)
    downloads.start(NAME, "anna")
    status = settled(downloads, "anna")
    assert status.state is DownloadState.HERE and status.mine
    assert not downloads.status(NAME, "berta").mine, "who did not ask is shown nothing"
    assert is_here(NAME) and ModelRef.resolve(NAME).has_weights


def test_bytes_and_speed_are_shown_meanwhile(server, downloads):
    settled(downloads)
    server.rate = weights_size(server) // 3
    downloads.start(NAME, "anna")
    status = wait_for(downloads, "anna", lambda status: status.speed)
    assert 0 < status.here < status.total and downloads.running == [NAME]
    assert status.seconds_left > 0
    server.rate = None
    assert settled(downloads).state is DownloadState.HERE


def test_two_people_share_one_download(server, downloads):
    settled(downloads)
    server.hold = threading.Event()
    for person in ("anna", "berta", "anna"):
        downloads.start(NAME, person)
    assert downloads.status(NAME, "anna").others == downloads.status(NAME, "berta").others == 1
    downloads.cancel(NAME, "anna")
    status = downloads.status(NAME, "anna")
    assert status.state is DownloadState.RUNNING and not status.mine and status.others == 1
    server.hold.set()
    assert settled(downloads, "berta").mine
    assert_each_was_fetched_once(server)


def test_a_download_that_everybody_cancelled_stops(server, downloads):
    settled(downloads)
    server.hold = threading.Event()
    downloads.start(NAME, "anna")
    wait_for(downloads, "anna", lambda status: status.here > 0)
    downloads.cancel(NAME, "anna")
    assert downloads.status(NAME).state is DownloadState.NEEDED and downloads.running == []
    downloads._of(NAME).thread.join(30)
    server.hold.set()
    server.hold = None
    server.ranges.clear()
    downloads.start(NAME, "anna")
    assert settled(downloads).state is DownloadState.HERE
    (start,) = server.starts(FIRST)
    assert start > 0, "it began again"


def test_a_stranger_cannot_cancel(server, downloads):
    settled(downloads)
    server.hold = threading.Event()
    downloads.start(NAME, "anna")
    downloads.cancel(NAME, "mallory")
    assert downloads.status(NAME).state is DownloadState.RUNNING
    server.hold.set()
    assert settled(downloads).state is DownloadState.HERE


def test_after_a_restart_it_is_continued(server, downloads):
    settled(downloads)
    server.hold = threading.Event()
    downloads.start(NAME, PROGRAM)
    wait_for(downloads, "", lambda status: status.here > 0)
    downloads.close()
    server.hold.set()
    server.hold = None
    server.ranges.clear()
    again = Downloads()
    again.start(NAME, PROGRAM)
    assert settled(again).state is DownloadState.HERE
    (start,) = server.starts(FIRST)
    assert start > 0, "it began again"


# A take beside it


def runtime_of_hub() -> RuntimeConfig:
    return RuntimeConfig(model=NAME, threads=1)


def test_the_engine_joins_the_download(server, downloads):
    """It waits for the same files, and no file is fetched twice."""
    settled(downloads)
    server.hold = threading.Event()
    downloads.start(NAME, "anna")
    wait_for(downloads, "", lambda status: status.here > 0)
    folders = []

    def load(runtime, folder):
        folders.append(folder)
        raise InputError("far enough")
        yield

    loading = Engine.load(runtime_of_hub(), load)
    event = next(loading)
    assert event.what == f"Fetching {NAME}"
    server.hold.set()
    with pytest.raises(InputError, match="far enough"):
        list(loading)
    assert folders == [ModelRef.resolve(NAME).cached]
    assert_each_was_fetched_once(server)


def assert_each_was_fetched_once(server) -> None:
    weights = [file for file in server.fetched() if file.endswith(".safetensors")]
    assert len(weights) == len(set(weights)) == 3


@pytest.mark.long
def test_a_take_joins_the_download(server, downloads, tmp_path):
    """As the endpoints do: the take waits for the same files, and no file is fetched twice."""
    settled(downloads)
    server.hold = threading.Event()
    downloads.start(NAME, "anna")
    synthesis = Synthesis(Settings(runtime_of_hub(), takes_folder=tmp_path / "takes"))
    take = make_request(synthesis, max_tokens=40, with_audio=False)
    events = synthesis.stream(take, threading.Event())
    event = next(events)
    while "Fetching" not in getattr(event, "text", ""):
        event = next(events)
    server.hold.set()
    last = list(events)[-1]
    assert last.result.codes is not None
    assert settled(downloads).state is DownloadState.HERE
    assert_each_was_fetched_once(server)
    synthesis.close()


def test_a_page_is_told_to_download_first(server, downloads):
    info = ModelRef.resolve(NAME).describe()
    settled(downloads)
    with pytest.raises(InputError, match="is not on this machine.*press Download"):
        downloads.check_here(info)
    server.hold = threading.Event()
    downloads.start(NAME, "anna")
    with pytest.raises(InputError, match=r"is being downloaded \(\d+%"):
        downloads.check_here(info)
    server.hold.set()
    settled(downloads)
    downloads.check_here(info)


# What fails: one message with its cause and what to do


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
    assert SHARD in message and "damaged" in message and "try again" in message


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
    settled(downloads)
    message = problem(downloads)
    assert "Not enough disk space" in message and "HF_HOME" in message
    assert not [file for file in server.fetched() if file.endswith(".safetensors")]


def test_another_architecture_is_refused_before_its_weights(server, downloads):
    server.files["config.json"] = json.dumps({"model_type": "llama"}).encode()
    message = problem(downloads)
    assert "'llama'" in message and "not a Dia checkpoint" in message
    assert not [file for file in server.fetched() if file.endswith(".safetensors")]


def test_another_architecture_does_not_empty_the_menu(server, downloads):
    """Its config in the cache once made the page fail for everybody."""
    server.files["config.json"] = json.dumps({"model_type": "llama"}).encode()
    settled(downloads)
    assert [info.name for info in choices(("nano", NAME), "nano")] == ["nano", NAME]


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
    assert "dia-v1.pth" in message and "more than tensors" in message
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
    assert not settled(downloads).can_retry, "the same files would come again"


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
    assert settled(downloads).state is DownloadState.HERE
    with pytest.raises(InputError) as caught:
        result_of(checkpoint.load(ModelRef.resolve(NAME).cached, "float32"))
    assert name in str(caught.value) and "NaN" in str(caught.value)


# The model that the app was started with


def test_a_page_begins_with_nano_until_the_start_model_is_there(server, downloads):
    assert first_choice(NAME) == "nano"
    downloads.start(NAME, PROGRAM)
    settled(downloads)
    assert first_choice(NAME) == NAME
    assert [info.name for info in choices((), NAME)] == [NAME]


def test_the_start_model_is_downloaded_in_the_background(server, tmp_path):
    synthesis = Synthesis(Settings(runtime_of_hub(), takes_folder=tmp_path / "takes"))
    synthesis.warm_up()
    assert settled(synthesis.downloads).state is DownloadState.HERE
    synthesis.close()


def test_nothing_is_fetched_for_the_embedded_voice(server, tmp_path):
    synthesis = Synthesis(Settings(takes_folder=tmp_path / "takes"))
    synthesis.warm_up()
    synthesis.close()
    assert server.asked == []
