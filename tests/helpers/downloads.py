"""Downloads in tests: waiting for a status, and what the stand-in hub was asked for."""

from __future__ import annotations

import time

from dia_demo.config import RuntimeConfig
from dia_demo.services.downloads.downloads import Downloads, DownloadState, DownloadStatus
from tests.helpers.stand_ins.stand_in_hub import NAME

FIRST, SHARD = "model-00001-of-00003.safetensors", "model-00002-of-00003.safetensors"


def runtime_of_hub() -> RuntimeConfig:
    return RuntimeConfig(model=NAME, threads=1)


def wait_until_settled(downloads: Downloads, person: str = "") -> DownloadStatus:
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
    status = wait_until_settled(downloads)
    assert status.state is DownloadState.FAILED, status
    return status.problem


def weights_size(server) -> int:
    return sum(len(content) for file, content in server.files.items() if file.startswith("model-"))


def assert_each_was_fetched_once(server) -> None:
    weights = [file for file in server.fetched_files() if file.endswith(".safetensors")]
    assert len(weights) == len(set(weights)) == 3
