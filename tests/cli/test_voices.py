"""`voices`, and `say --voice`."""

import json

import numpy as np
import pytest

from tests.helpers.cli import SCRIPT, error_line
from tests.prompt.test_voice_file import SUFFIX


@pytest.fixture(autouse=True)
def own_kept_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("DIA_KEPT", str(tmp_path / "kept"))


def keep(cli, say, *arguments):
    """A kept part of the small model's take, which is cut off."""
    assert say(SCRIPT, "-o", "take.wav", "--max-tokens", 120)[0] == 0
    words = ("--transcript", "Hello there.")
    return cli("voices", "keep", "take.wav", "--name", "Anna", *words, *arguments)


def test_a_voice_from_keeping_to_removing(cli, say):
    assert "No voice is kept yet" in cli("voices")[1]
    code, out, _ = keep(cli, say)
    assert code == 0 and "say --voice Anna" in out
    listed = json.loads(cli("voices", "--json")[1])
    assert [voice["name"] for voice in listed] == ["Anna"] and listed[0]["speakers"] == [1]
    assert "Anna" in cli("voices")[1] and "[S1] Hello there." in cli("voices")[1]
    assert cli("voices", "export", "Anna", "copy")[1].strip() == f"copy{SUFFIX}"
    assert cli("voices", "rename", "Anna", "Clara")[0] == 0
    assert cli("voices", "import", f"copy{SUFFIX}")[0] == 0
    assert [v["name"] for v in json.loads(cli("voices", "--json")[1])] == ["Anna", "Clara"]
    assert cli("voices", "remove", "Clara")[0] == 0
    assert "no kept voice 'Clara'" in error_line(cli("voices", "remove", "Clara"))


def test_say_with_a_kept_voice_continues_its_codes(cli, say):
    keep(cli, say)
    assert say(SCRIPT, "--codes", "all.npy", "--max-tokens", 200, "--voice", "anna")[0] == 0
    say(SCRIPT, "--codes", "alone.npy", "--max-tokens", 200)
    assert len(np.load("all.npy")) < len(np.load("alone.npy"))
    assert "There are: Anna" in error_line(say(SCRIPT, "--codes", "x.npy", "--voice", "Zed"))


def test_errors_name_the_option(cli, say):
    assert "--transcript" in error_line(keep(cli, say, "--to", "1.2", "--transcript", ""))
    assert "later one" in error_line(keep(cli, say, "--from", "2", "--to", "1"))
    assert "no voice file" in error_line(cli("voices", "import", f"nowhere{SUFFIX}"))
