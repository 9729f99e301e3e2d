"""The files of a model whose download is not complete: found and removed without a network."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from huggingface_hub import constants
from huggingface_hub.utils import WeakFileLock

from dia_demo.checkpoint_files import SAFETENSORS
from dia_demo.errors import InputError
from dia_demo.hub import partial
from dia_demo.hub.cache import cached_file
from dia_demo.hub.fetch import fetch_config, fetch_file
from dia_demo.hub.transfer import lock_file
from dia_demo.task import result_of
from tests.helpers.stand_ins.stand_in_hub import CONTENT, NAME


@pytest.fixture
def server(server):
    """The hub, whose config.json is in the cache."""
    result_of(fetch_config(NAME))
    return server


def cut_after(server, size: int) -> Path:
    """The part that is kept of a transfer whose connection was lost after `size` bytes."""
    server.cuts = {SAFETENSORS: [size, *[0] * 20]}
    with pytest.raises(InputError):
        result_of(fetch_file(NAME, SAFETENSORS, 0.0, 1.0))
    (part,) = partial.part_files(NAME)
    return part


def test_a_part_can_be_removed(server):
    part = cut_after(server, 1234)
    assert part.stat().st_size == 1234 and partial.whole_files(NAME) == []
    partial.remove(NAME, part)
    assert partial.part_files(NAME) == [] and not part.exists()


@pytest.mark.parametrize("without_links", [False, True], ids=["links", "no links"])
def test_a_whole_file_goes_with_its_content(server, monkeypatch, without_links):
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_SYMLINKS", without_links)
    path = result_of(fetch_file(NAME, SAFETENSORS, 0.0, 1.0))
    assert partial.whole_files(NAME) == [path]
    partial.remove(NAME, path)
    assert cached_file(NAME, SAFETENSORS) is None and cached_file(NAME, "config.json")
    sizes = [file.stat().st_size for file in Path(constants.HF_HUB_CACHE).rglob("*")]
    assert len(CONTENT) not in sizes


def test_a_file_that_another_program_transfers_stays(server, monkeypatch):
    part = cut_after(server, 1234)
    monkeypatch.setattr(partial, "SECONDS_TO_END", 0.1)
    with WeakFileLock(lock_file(NAME, part.name.removesuffix(".incomplete"))):
        refusals = []

        def attempt() -> None:
            with pytest.raises(InputError, match="another program") as caught:
                partial.remove(NAME, part)
            refusals.append(caught.value)

        thread = threading.Thread(target=attempt)
        thread.start()
        thread.join(30)
    assert len(refusals) == 1 and part.exists()


def test_nothing_is_there_of_a_model_that_was_never_asked_for(server):
    assert partial.part_files("owner/other") == partial.whole_files("owner/other") == []
