"""A small checkpoint on a stand-in hub, and the service that downloads it."""

from __future__ import annotations

import json
import shutil

import pytest
from safetensors.torch import load_file

from dia_demo.checkpoint_files import INDEX, SAFETENSORS
from dia_demo.codec import files as codec_files
from dia_demo.services.downloads.downloads import Downloads
from dia_demo.services.models import Models
from tests.helpers.models.checkpoints import write_shards, write_small
from tests.helpers.stand_ins.stand_in_hub import hub_of_this_process

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
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr(codec_files, "DESCRIPT_URL", "http://127.0.0.1:9/weights.pth")
    codec = codec_files._descript_path()
    codec.parent.mkdir(parents=True)
    codec.write_bytes(bytes(CODEC_SIZE))
    folder = tmp_path / "repository"
    folder.mkdir()
    shutil.copy(source / "config.json", folder)
    write_shards(folder, load_file(source / SAFETENSORS))
    with hub_of_this_process(monkeypatch, tmp_path / "cache") as stand_in:
        stand_in.upload(folder)
        yield stand_in


@pytest.fixture
def downloads():
    service = Downloads(Models((), "nano"))
    yield service
    service.close()
