"""Models by name: resolved and described without reading again what has not changed."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest
from huggingface_hub import constants

from dia_demo import checkpoint_config, checkpoint_files
from dia_demo.codec import config as codec_config
from dia_demo.config import RuntimeConfig
from dia_demo.errors import InputError
from dia_demo.families.resolve import resolve
from dia_demo.services.settings import Settings
from dia_demo.services.synthesis import Synthesis
from tests.helpers.models.known import DIA_NAME

SCRIPT = "[S1] Hello there. [S2] Hi."
opened: list[str] | None = None


def note_open(event: str, arguments: tuple) -> None:
    if event == "open" and opened is not None:
        opened.append(str(arguments[0]))


@pytest.fixture(scope="module", autouse=True)
def hook():
    sys.addaudithook(note_open)  # Python has no way to remove one: it does nothing afterwards.


@pytest.fixture
def files_opened():
    """A function that runs another one and returns the names of the files that were opened."""

    def run(work) -> list[str]:
        global opened
        opened = []
        try:
            work()
            return opened
        finally:
            opened = None

    return run


@pytest.fixture
def copy(folder, tmp_path) -> Path:
    return shutil.copytree(folder, tmp_path / "model")


@pytest.fixture
def fetched(folder, tmp_path, monkeypatch) -> Path:
    """The folder of owner/name in a hub cache: its config files, without weights."""
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    repository = tmp_path / "models--owner--name"
    snapshot = repository / "snapshots" / ("1" * 40)
    snapshot.mkdir(parents=True)
    shutil.copy(folder / "config.json", snapshot)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(snapshot.name)
    return snapshot


@pytest.mark.parametrize("kind", ["embedded", "folder", "fetched"])
def test_a_keystroke_reads_no_file(kind, copy, fetched, files_opened):
    model = {"embedded": "nano", "folder": str(copy), "fetched": "owner/name"}[kind]
    synthesis = Synthesis(Settings())

    def keystroke() -> None:
        assert model == "nano" or synthesis.models[model].name == model
        list(synthesis.models.values())
        synthesis.models[model].check(SCRIPT, 60)

    first = files_opened(keystroke)
    assert kind == "embedded" or any("config.json" in name for name in first)
    assert files_opened(keystroke) == []


def test_a_folder_that_changed_is_described_as_it_is_now(copy):
    before = resolve(str(copy))
    path = copy / "generation_config.json"
    raw = json.loads(path.read_text()) if path.is_file() else {}
    path.write_text(json.dumps(raw | {"temperature": 0.25}))
    after = resolve(str(copy))
    assert before.config.defaults.temperature != after.config.defaults.temperature == 0.25


def test_a_new_revision_in_the_hub_cache_is_used(fetched):
    assert resolve("owner/name").folder == fetched
    newer = shutil.copytree(fetched, fetched.with_name("2" * 40))
    (fetched.parents[1] / "refs" / "main").write_text(newer.name)
    assert resolve("owner/name").folder == newer


def test_a_model_that_is_fetched_meanwhile_is_found(fetched):
    config = (fetched / "config.json").rename(fetched / "elsewhere")
    assert resolve("owner/name").folder is None
    config.rename(fetched / "config.json")
    assert resolve("owner/name").folder == fetched


def test_a_hub_model_has_no_local_folder(fetched):
    info = resolve("owner/name")
    assert not info.is_local and info.folder == fetched
    assert resolve(DIA_NAME).folder is None


def test_an_unknown_model_is_refused():
    with pytest.raises(InputError, match="neither 'nano', nor a folder"):
        resolve("no such model")


def test_a_load_parses_each_config_once(copy, monkeypatch):
    """And none again for the next load of the same files."""
    parsed = []
    for module in (checkpoint_config, checkpoint_files, codec_config):
        read = module.read_json

        def counted(path, read=read):
            parsed.append(path)
            return read(path)

        monkeypatch.setattr(module, "read_json", counted)
    runtime = RuntimeConfig(str(copy), "float32", threads=1)
    for _ in range(2):
        synthesis = Synthesis(Settings(runtime))
        for _event in synthesis.load():
            pass
        synthesis.close()
    assert copy / "config.json" in parsed and copy / "codec" / "config.json" in parsed
    assert len(parsed) == len(set(parsed)), parsed
