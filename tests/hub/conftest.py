"""A hub with one model in one file."""

from __future__ import annotations

import pytest

from dia_demo.checkpoint_files import SAFETENSORS
from tests.helpers.stand_ins.stand_in_hub import CONTENT, hub_of_this_process


@pytest.fixture
def server(tmp_path, monkeypatch):
    with hub_of_this_process(monkeypatch, tmp_path / "cache") as stand_in:
        stand_in.files = {SAFETENSORS: CONTENT, "config.json": b'{"model_type": "dia"}'}
        yield stand_in
