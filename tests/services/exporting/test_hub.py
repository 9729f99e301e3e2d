"""An export on the hub: only what it lists is fetched, and checked as it arrives."""

from __future__ import annotations

import json
import re
import shutil

import numpy as np
import pytest

from dia_demo.checkpoint_files import MANIFEST
from dia_demo.errors import InputError
from dia_demo.families.resolve import resolve
from dia_demo.hub.cache import cached_source
from dia_demo.hub.fetch import fetch_checkpoint
from dia_demo.services.models import fetch_description, find_model
from dia_demo.task import result_of
from tests.helpers.models.exports import codes_of, export_of
from tests.helpers.stand_ins.stand_in_hub import COMMIT, NAME, hub_of_this_process

pytestmark = [pytest.mark.processor, pytest.mark.kernels]
WEIGHTS = "prepared-int8.safetensors"
CONFIGS = ["config.json", MANIFEST, "codec/config.json"]


@pytest.fixture
def server(tmp_path, monkeypatch):
    with hub_of_this_process(monkeypatch, tmp_path / "hub-cache") as stand_in:
        yield stand_in


@pytest.fixture
def uploaded(server, exported):
    server.upload(exported)
    server.files["prepared-int4.safetensors"] = b"not listed"
    return server


def fetched(server) -> list[str]:
    gets = [path for method, path in server.requests() if method == "GET"]
    return [re.sub(f"^/{NAME}/resolve/[^/]+/", "", path) for path in gets]


def test_what_the_manifest_lists_is_fetched(uploaded, exported):
    folder = result_of(fetch_checkpoint(NAME))
    assert sorted(fetched(uploaded)) == sorted([*CONFIGS, "codec/model.safetensors", WEIGHTS])
    np.testing.assert_array_equal(codes_of(folder), codes_of(exported))


def test_the_description_needs_no_weights(uploaded):
    info = result_of(fetch_description(find_model(NAME)))
    assert info.config.prepared.precision == "int8" and info.sample_rate == 16000
    assert sorted(fetched(uploaded)) == sorted(CONFIGS)
    assert not resolve(NAME).has_weights


def test_the_second_time_nothing_is_asked(uploaded):
    first = result_of(fetch_checkpoint(NAME))
    uploaded.asked.clear()
    assert result_of(fetch_checkpoint(NAME)) == first and uploaded.requests() == []


def test_a_file_that_arrives_damaged_is_fetched_again(uploaded, exported):
    content = bytearray(uploaded.files[WEIGHTS])
    content[len(content) // 2] ^= 1
    good, uploaded.files[WEIGHTS] = uploaded.files[WEIGHTS], bytes(content)
    with pytest.raises(InputError, match=f"{WEIGHTS} of {NAME} arrived corrupted and was removed"):
        result_of(fetch_checkpoint(NAME))
    uploaded.files[WEIGHTS] = good
    folder = result_of(fetch_checkpoint(NAME))
    assert (folder / WEIGHTS).read_bytes() == good


def test_a_hub_model_is_exported_with_its_revision(server, original, tmp_path, monkeypatch):
    """And the licence that its page there names."""
    server.upload(shutil.copytree(original, tmp_path / "upload"))
    for name in [name for name in server.files if name.startswith("codec/")]:
        del server.files[name]
    server.files["README.md"] = b"---\nlicense: mit\n---\n"
    report = export_of(NAME, tmp_path / "export")
    assert (report.base_model, report.revision, report.license) == (NAME, COMMIT, "mit")
    card = (tmp_path / "export" / "README.md").read_text()
    assert f"base_model: {NAME}\nbase_model_relation: quantized\n" in card and COMMIT in card
    said = json.loads((tmp_path / "export" / MANIFEST).read_text())
    assert said["base_model"]["revision"] == COMMIT
    folder = resolve(NAME).folder
    assert cached_source(folder) == (NAME, COMMIT) and cached_source(original) is None
