"""Downloads as the page uses them, from a stand-in hub."""

from __future__ import annotations

import threading

from huggingface_hub import constants

from dia_demo.codec import files as codec_files
from dia_demo.services.downloads.downloads import PROGRAM, Downloads, DownloadState
from dia_demo.services.downloads.plan import is_here
from dia_demo.services.models import ModelRef
from tests.helpers.downloads import (
    FIRST,
    SHARD,
    assert_each_was_fetched_once,
    problem,
    settled,
    wait_for,
    weights_size,
)
from tests.helpers.models.checkpoints import write_codec
from tests.helpers.stand_ins.stand_in_hub import NAME

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
