"""The command `export`: a folder that speaks, and refusals in one line."""

from __future__ import annotations

import json

import pytest

from tests.helpers.cli import SCRIPT, error_line

pytestmark = [pytest.mark.processor, pytest.mark.kernels]


@pytest.fixture
def export(cli, folder):
    def run(*arguments):
        return cli("export", "--model", folder, "--threads", 1, *arguments)

    return run


@pytest.mark.long
def test_what_was_exported_speaks_in_its_precision(export, say, tmp_path):
    code, out, _ = export("--precision", "int8", "-o", "small-int8", "--json")
    report = json.loads(out)
    assert code == 0 and report["precision"] == "int8" and report["base_model"] == "./small"
    assert report["total_bytes"] == sum(
        path.stat().st_size for path in (tmp_path / "small-int8").rglob("*") if path.is_file()
    )
    code, out, _ = say(SCRIPT, "--model", "small-int8", "-o", "hello.wav", "--json")
    assert code == 0 and json.loads(out)["precision"] == "int8"
    assert (tmp_path / "hello.wav").stat().st_size > 1000


def test_an_export_cannot_speak_in_another_precision(export, say):
    code, out, _ = export("--precision", "int8", "-o", "small-int8")
    assert code == 0 and "small-int8: ./small in int8" in out and "equal the original's" in out
    line = error_line(say(SCRIPT, "--model", "small-int8", "-o", "a.wav", "--precision", "int4"))
    assert "prepared in int8 and cannot run in int4" in line


def test_an_existing_folder_is_refused(export, tmp_path):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").write_text("")
    assert "full already exists" in error_line(export("--precision", "int8", "-o", "full"))


def test_a_folder_must_be_named(export):
    assert "-o/--output" in error_line(export("--precision", "int8"))


def test_a_model_that_is_not_there_is_refused(cli):
    assert "neither" in error_line(cli("export", "--model", "no model", "-o", "out"))
