"""Where `say` takes its script from: an argument, a file, stdin; in which encodings."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from dia_demo.cli import script_input
from dia_demo.cli.script_input import decode_script, script_of
from dia_demo.errors import InputError

SCRIPT = "[S1] A café,\n[S2] at ten."


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
def test_text_with_and_without_a_byte_order_mark_is_read(encoding, line_end):
    assert decode_script(SCRIPT.replace("\n", line_end).encode(encoding), "stdin") == SCRIPT


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (SCRIPT.encode("latin-1"), "byte 11 is 0xe9"),
        (SCRIPT.encode("cp1252"), "Windows-1252"),
        (SCRIPT.encode("utf-16-le"), "NUL bytes"),
        (b"RIFF\x00\x00\x00\x00WAVE", "NUL bytes"),
        (b"\xff\xfe\x41", "UTF-16"),
        (b"a" * (script_input.MOST_BYTES + 1), "longer than any script"),
    ],
)
def test_other_bytes_are_refused_with_the_encoding(raw, said):
    with pytest.raises(InputError, match="stdin") as refused:
        decode_script(raw, "stdin")
    assert said in str(refused.value)


def test_a_dash_reads_the_bytes_of_stdin_whatever_the_locale(monkeypatch):
    strict = io.TextIOWrapper(io.BytesIO(SCRIPT.encode()), encoding="ascii", errors="strict")
    monkeypatch.setattr(sys, "stdin", strict)
    assert script_of("-", None) == SCRIPT


def test_an_argument_that_names_a_file_is_read_and_said(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("my_script.txt").write_text(SCRIPT, encoding="utf-8")
    assert script_of("my_script.txt", None) == SCRIPT
    assert "file my_script.txt" in capsys.readouterr().err
    assert script_of(None, Path("my_script.txt")) == SCRIPT
    assert capsys.readouterr().err == ""
    assert script_of("other_script.txt", None) == "other_script.txt"
    assert "no file other_script.txt" in capsys.readouterr().err


def test_words_are_words_even_where_they_cannot_be_a_name(capsys):
    for words in ("Hello.", "a" * 5000, "[S1] Hello.\n[S2] Ho.", "a\0b", "Is it on example.com?"):
        assert script_of(words, None) == words
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(("argument", "file"), [(None, None), ("Hi.", Path("a.txt"))])
def test_one_script_has_to_be_given(argument, file):
    with pytest.raises(InputError, match="--file"):
        script_of(argument, file)


def test_a_file_that_is_missing_is_refused(tmp_path):
    with pytest.raises(InputError, match="cannot be read"):
        script_of(None, tmp_path / "none.txt")


def test_an_argument_keeps_its_letters_under_a_strict_locale():
    surrogates = SCRIPT.encode().decode("ascii", errors="surrogateescape")
    assert script_of(surrogates, None) == SCRIPT
