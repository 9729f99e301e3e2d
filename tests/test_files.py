"""Files are written whole or not at all."""

import os

import pytest

from dia_demo import files
from dia_demo.files import PART, sync_folder, write_atomic


def test_the_file_appears_when_the_block_ends(tmp_path):
    path = tmp_path / "a.json"
    with write_atomic(path) as part:
        part.write_text("new")
        assert not path.exists()
    assert path.read_text() == "new"
    assert os.listdir(tmp_path) == ["a.json"]


def test_an_error_leaves_the_earlier_file(tmp_path):
    path = tmp_path / "a.json"
    path.write_text("old")
    with pytest.raises(ZeroDivisionError), write_atomic(path) as part:
        part.write_text("half")
        raise ZeroDivisionError
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["a.json"]


def test_a_file_half_written_is_known_by_its_suffix(tmp_path):
    """A killed process leaves such files: services/folders.py and model/weights/packed_cache.py
    remove them."""
    with write_atomic(tmp_path / "a.json") as part:
        part.touch()
        assert part.parent == tmp_path and part.suffix == PART


def test_two_writers_of_one_file_do_not_share_a_part(tmp_path):
    path = tmp_path / "a.json"
    with write_atomic(path) as first, write_atomic(path) as second:
        assert first != second
        first.write_text("first")
        second.write_text("second")
    assert path.read_text() == "first"


def test_a_name_may_be_as_long_as_names_can_be(tmp_path):
    path = tmp_path / ("x" * os.pathconf(tmp_path, "PC_NAME_MAX"))
    with write_atomic(path) as part:
        part.touch()
    assert path.is_file()


def test_a_missing_folder_is_reported_as_such(tmp_path):
    (tmp_path / "file").touch()
    for folder, error in ((tmp_path / "no", FileNotFoundError), (tmp_path / "file", OSError)):
        with pytest.raises(error), write_atomic(folder / "a.json") as part:
            part.touch()


def test_sync_writes_the_data_before_the_name(tmp_path, monkeypatch):
    calls, fsync, replace = [], os.fsync, os.replace

    def noted(name, function):
        return lambda *arguments: calls.append(name) or function(*arguments)

    monkeypatch.setattr(files.os, "fsync", noted("fsync", fsync))
    monkeypatch.setattr(files.os, "replace", noted("replace", replace))
    with write_atomic(tmp_path / "a.json", sync=True) as part:
        part.write_text("new")
    sync_folder(tmp_path)
    assert calls == ["fsync", "replace", "fsync"]
