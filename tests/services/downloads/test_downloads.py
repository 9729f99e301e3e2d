"""Downloads as the page uses them, from a stand-in hub."""

from __future__ import annotations

import threading
from pathlib import Path

from huggingface_hub import constants

from dia_demo.codec import files as codec_files
from dia_demo.families.resolve import resolve
from dia_demo.services.downloads.downloads import PROGRAM, Downloads, DownloadState
from dia_demo.services.downloads.plan import is_here
from dia_demo.services.models import Models
from dia_demo.task import result_of
from tests.helpers.downloads import (
    FIRST,
    SHARD,
    assert_each_was_fetched_once,
    problem,
    wait_for,
    wait_until_settled,
    weights_size,
)
from tests.helpers.models.checkpoints import write_codec
from tests.helpers.stand_ins.stand_in_hub import NAME, point_at

# What is said before anything starts


def test_the_size_is_known_before_the_download(server, downloads):
    status = wait_until_settled(downloads)
    assert status.state is DownloadState.NEEDED
    assert (status.here, status.total) == (0, weights_size(server))
    assert status.free_disk > 0
    assert not [file for file in server.fetched_files() if file.endswith(".safetensors")]


def test_what_is_here_already_is_subtracted(server, downloads):
    first = fetch_part(server, downloads)
    again = Downloads(Models((), NAME))  # As after a restart.
    status = wait_until_settled(again)
    assert status.state is DownloadState.NEEDED and status.total == weights_size(server)
    assert status.here == status.on_disk == first + 500


def test_a_model_in_a_folder_needs_nothing(downloads, folder):
    assert downloads.status(str(folder)).state is DownloadState.HERE
    assert downloads.status("nano").state is DownloadState.HERE


def test_the_codec_is_part_of_the_size(server, downloads, tmp_path):
    codec_files._descript_path().unlink()
    write_codec(tmp_path / "codec")
    server.upload(tmp_path / "codec", codec_files.HUB_NAME)
    sizes = [len(content) for content in server.others[codec_files.HUB_NAME].values()]
    assert wait_until_settled(downloads).total == weights_size(server) + sum(sizes)
    downloads.start(NAME, "anna")
    assert wait_until_settled(downloads).state is DownloadState.HERE and is_here(resolve(NAME))


def test_offline_the_reason_is_said(server, downloads, monkeypatch):
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    status = wait_until_settled(downloads)
    assert status.state is DownloadState.FAILED and "HF_HUB_OFFLINE" in status.problem
    assert server.asked == []


def fetch_part(server, downloads) -> int:
    """Let a download fail in its second file, after 500 bytes; returns the size of the first."""
    server.cuts = {SHARD: [500, *[0] * 30]}
    problem(downloads)
    return len(server.files[FIRST])


# The download


def test_a_download_ends_with_the_model_on_this_machine(server, downloads):
    wait_until_settled(downloads)
    downloads.start(NAME, "anna")
    status = wait_until_settled(downloads, "anna")
    assert status.state is DownloadState.HERE and status.mine
    assert not downloads.status(NAME, "berta").mine, "who did not ask is shown nothing"
    assert is_here(resolve(NAME)) and resolve(NAME).has_weights


def test_who_asks_too_late_shares_the_end(server, downloads):
    """Two pages press Resume, and the first download has ended before the second asks."""
    for person in ("anna", "berta"):
        downloads.start(NAME, person)
        wait_until_settled(downloads)
    assert downloads.status(NAME, "anna").mine and downloads.status(NAME, "berta").mine


def test_bytes_and_speed_are_shown_meanwhile(server, downloads):
    wait_until_settled(downloads)
    server.rate = weights_size(server) // 60
    downloads.start(NAME, "anna")
    status = wait_for(downloads, "anna", lambda status: status.speed)
    assert 0 < status.here < status.total and downloads.running == [NAME]
    assert status.seconds_left > 0
    server.rate = None
    assert wait_until_settled(downloads).state is DownloadState.HERE


def test_two_people_share_one_download(server, downloads):
    wait_until_settled(downloads)
    server.hold = threading.Event()
    for person in ("anna", "berta", "anna"):
        downloads.start(NAME, person)
    assert downloads.status(NAME, "anna").others == downloads.status(NAME, "berta").others == 1
    downloads.cancel(NAME, "anna")
    status = downloads.status(NAME, "anna")
    assert status.state is DownloadState.RUNNING and not status.mine and status.others == 1
    server.hold.set()
    assert wait_until_settled(downloads, "berta").mine
    assert_each_was_fetched_once(server)


def test_a_download_that_everybody_cancelled_stops(server, downloads):
    wait_until_settled(downloads)
    server.hold = threading.Event()
    downloads.start(NAME, "anna")
    wait_for(downloads, "anna", lambda status: status.here > 0)
    downloads.cancel(NAME, "anna")
    assert downloads.status(NAME).state is DownloadState.NEEDED and downloads.running == []
    downloads._get(NAME).work.join(30)
    server.hold.set()
    server.hold = None
    server.ranges.clear()
    downloads.start(NAME, "anna")
    assert wait_until_settled(downloads).state is DownloadState.HERE
    (start,) = server.starts(FIRST)
    assert start > 0, "it began again"


def test_a_stranger_cannot_cancel(server, downloads):
    wait_until_settled(downloads)
    server.hold = threading.Event()
    downloads.start(NAME, "anna")
    downloads.cancel(NAME, "mallory")
    assert downloads.status(NAME).state is DownloadState.RUNNING
    server.hold.set()
    assert wait_until_settled(downloads).state is DownloadState.HERE


def test_after_a_restart_it_is_continued(server, downloads):
    wait_until_settled(downloads)
    server.hold = threading.Event()
    downloads.start(NAME, PROGRAM)
    wait_for(downloads, "", lambda status: status.here > 0)
    downloads.close()
    server.hold.set()
    server.hold = None
    server.ranges.clear()
    again = Downloads(Models((), NAME))
    again.start(NAME, PROGRAM)
    assert wait_until_settled(again).state is DownloadState.HERE
    (start,) = server.starts(FIRST)
    assert start > 0, "it began again"


# What is left of a download that ended before its time


def test_a_download_that_failed_says_what_it_left(server, downloads):
    first = fetch_part(server, downloads)
    status = wait_until_settled(downloads)
    assert status.state is DownloadState.FAILED and status.on_disk == first + 500


def test_a_partial_download_can_be_removed(server, downloads):
    """Its whole files too: nothing else could remove them."""
    fetch_part(server, downloads)
    downloads.remove(NAME)
    status = wait_until_settled(downloads)
    assert status.state is DownloadState.NEEDED
    assert (status.here, status.on_disk, status.total) == (0, 0, weights_size(server))
    assert large_files() == []
    server.cuts = {}
    downloads.start(NAME, "anna")
    assert wait_until_settled(downloads).state is DownloadState.HERE


def test_what_a_cancelled_download_left_can_be_removed_at_once(server, downloads):
    """Its transfer may not have ended yet."""
    wait_until_settled(downloads)
    server.rate = weights_size(server) // 60
    downloads.start(NAME, "anna")
    wait_for(downloads, "", lambda status: status.here > 0)
    downloads.cancel(NAME, "anna")
    downloads.remove(NAME)
    assert wait_until_settled(downloads).on_disk == 0 and large_files() == []


def test_without_a_network_a_partial_download_can_be_removed(server, downloads, monkeypatch):
    fetch_part(server, downloads)
    point_at(monkeypatch, "http://127.0.0.1:9")
    again = Downloads(Models((), NAME))
    assert wait_until_settled(again).on_disk > 0
    again.remove(NAME)
    assert wait_until_settled(again).on_disk == 0 and large_files() == []


def test_a_running_download_cannot_be_removed(server, downloads):
    wait_until_settled(downloads)
    server.hold = threading.Event()
    downloads.start(NAME, "anna")
    wait_for(downloads, "", lambda status: status.here > 0)
    downloads.remove(NAME)
    server.hold.set()
    assert wait_until_settled(downloads).state is DownloadState.HERE
    downloads.remove(NAME)
    assert wait_until_settled(downloads).state is DownloadState.HERE, "it is whole"


def test_a_codec_that_other_models_use_stays(server, downloads, tmp_path):
    codec_files._descript_path().unlink()
    write_codec(tmp_path / "codec")
    server.upload(tmp_path / "codec", codec_files.HUB_NAME)
    result_of(codec_files.find_codec())
    fetch_part(server, downloads)
    downloads.remove(NAME)
    assert wait_until_settled(downloads).on_disk == 0
    assert result_of(codec_files.find_codec(allow_download=False)).weights.is_file()


def large_files() -> list[str]:
    """What the hub's cache has of weights."""
    paths = [path for path in Path(constants.HF_HUB_CACHE).rglob("*") if path.is_file()]
    return [path.name for path in paths if path.stat().st_size > 5000]
