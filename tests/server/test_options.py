"""The command line of app.py: what it offers, and what it refuses in one sentence."""

from __future__ import annotations

import subprocess
import sys

import pytest

from dia_demo.files import ROOT

# As if the package were not installed, whether or not it is.
WITHOUT_MCP = """
import importlib.util, runpy, sys
find = importlib.util.find_spec
importlib.util.find_spec = lambda name, *given: None if name == "mcp" else find(name, *given)
sys.argv = ["app.py", "--mcp"]
runpy.run_path("app.py", run_name="__main__")
"""


def run(*words: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, *words], cwd=ROOT, capture_output=True, text=True, timeout=300
    )


def test_help_lists_the_options():
    result = run("app.py", "--help")
    assert result.returncode == 0 and "--mcp" in result.stdout and result.stderr == ""


@pytest.mark.parametrize("word", ["--share", "extra", "--mcp=yes"])
def test_other_words_are_refused_in_one_sentence(word):
    result = run("app.py", word)
    assert result.returncode == 2 and result.stdout == ""
    assert result.stderr.startswith("error: ") and result.stderr.count("\n") == 1
    assert "See: python app.py --help" in result.stderr


def test_without_its_package_mcp_says_what_to_install():
    result = run("-c", WITHOUT_MCP)
    assert result.returncode == 2
    assert result.stderr == (
        "error: --mcp needs the package mcp: pip install -r requirements-mcp.txt\n"
    )
