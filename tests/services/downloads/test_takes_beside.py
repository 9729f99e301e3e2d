"""Takes and the page's first model while a model is downloaded."""

from __future__ import annotations

import threading

import pytest

from dia_demo.errors import InputError
from dia_demo.families.resolve import resolve
from dia_demo.services.downloads.downloads import PROGRAM, DownloadState
from dia_demo.services.models import Models, fetch_with_progress, find_model
from dia_demo.services.settings import Settings
from dia_demo.services.synthesis import Synthesis
from dia_demo.task import Task
from tests.helpers.downloads import (
    assert_each_was_fetched_once,
    runtime_of_hub,
    wait_for,
    wait_until_settled,
)
from tests.helpers.stand_ins.stand_in_hub import NAME
from tests.helpers.synthesis_requests import make_request

# A take beside it


def test_fetching_joins_the_download(server, downloads):
    """It waits for the same files, and no file is fetched twice."""
    wait_until_settled(downloads)
    server.hold = threading.Event()
    downloads.start(NAME, "anna")
    wait_for(downloads, "", lambda status: status.here > 0)
    fetching = Task(fetch_with_progress(find_model(NAME)))
    events = iter(fetching)
    assert next(events).what == f"Fetching {NAME}"
    server.hold.set()
    list(events)
    assert fetching.result.has_weights and fetching.result == resolve(NAME)
    assert_each_was_fetched_once(server)


@pytest.mark.long
def test_a_take_joins_the_download(server, downloads, tmp_path):
    """As the endpoints do: the take waits for the same files, and no file is fetched twice."""
    wait_until_settled(downloads)
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
    assert wait_until_settled(downloads).state is DownloadState.HERE
    assert_each_was_fetched_once(server)
    synthesis.close()


def test_a_page_is_told_to_download_first(server, downloads):
    info = resolve(NAME)
    wait_until_settled(downloads)
    with pytest.raises(InputError, match="is not on this machine.*press Download"):
        downloads.check_here(info)
    server.hold = threading.Event()
    downloads.start(NAME, "anna")
    with pytest.raises(InputError, match=r"is being downloaded \(\d+%"):
        downloads.check_here(info)
    server.hold.set()
    wait_until_settled(downloads)
    downloads.check_here(info)


# The model that the app was started with


def test_a_page_begins_with_nano_until_the_start_model_is_there(server, downloads):
    models = Models((), NAME)
    assert models.first.name == "nano"
    downloads.start(NAME, PROGRAM)
    wait_until_settled(downloads)
    assert models.first.name == NAME
    assert list(models) == [NAME]


def test_the_start_model_is_downloaded_in_the_background(server, tmp_path):
    synthesis = Synthesis(Settings(runtime_of_hub(), takes_folder=tmp_path / "takes"))
    synthesis.warm_up()
    assert wait_until_settled(synthesis.downloads).state is DownloadState.HERE
    synthesis.close()


def test_nothing_is_fetched_for_the_embedded_voice(server, tmp_path):
    synthesis = Synthesis(Settings(takes_folder=tmp_path / "takes"))
    synthesis.warm_up()
    synthesis.close()
    assert server.asked == []
