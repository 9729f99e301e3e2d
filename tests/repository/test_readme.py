"""The README is true: its commands run, its tree and pictures exist, its card fits the code.

And it stays short. The other documents are checked in test_documents.py.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
import soundfile

from dia_demo.cli.main import main
from dia_demo.files import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
START = "pip install -r requirements.txt && python app.py"
TEST = "pip install -r requirements-dev.txt && pytest"


def test_first_screen_holds_both_commands():
    first_screen = README.split("\n## ")[0]
    assert START in first_screen.splitlines()
    assert TEST in first_screen.splitlines()


def test_ci_runs_exactly_the_test_command():
    pattern = re.search(r"sed -n 's/\^\\\((.*?)\\\)\$", (ROOT / ".ci" / "run").read_text())
    assert pattern and pattern[1] == TEST


@pytest.mark.parametrize(
    "line", [li for b in BLOCKS for li in b.splitlines() if "-m dia_demo" in li]
)
def test_command_line_examples_run(line, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    arguments = shlex.split(line)[3:]
    assert main(arguments) == 0
    if "-o" in arguments:
        samples, rate = soundfile.read(arguments[arguments.index("-o") + 1])
        assert len(samples) / rate > 0.5


def tree() -> list[Path]:
    """The paths of the README's tree. An indented line lies in the folder above it, and one that
    is indented further goes on describing the line before."""
    block = next(block for block in BLOCKS if block.startswith("app.py"))
    folder, paths = Path(), []
    for line in block.splitlines():
        indented = line.startswith("  ")
        for name in line.removeprefix("  ").split("  ")[0].split(", "):
            if name:
                paths.append(folder / name if indented else Path(name))
        folder = folder if indented else paths[-1]
    return paths


def test_tree_exists():
    for path in tree():
        assert (ROOT / path).exists(), f"{path} is in the README's tree only"


@pytest.mark.parametrize("parent", [".", "dia_demo", "dia_demo/services", "dia_demo/ui"])
def test_tree_names_every_package(parent):
    packages = {path.parent.relative_to(ROOT) for path in ROOT.glob(f"{parent}/*/__init__.py")}
    assert packages - set(tree()) == set()


def test_pictures_have_alternative_texts():
    pictures = re.findall(r"!\[(.*?)\]\((.*?)\)", README)
    assert pictures
    for words, path in pictures:
        assert words and (ROOT / path).is_file()


def test_readme_has_at_most_1000_words():
    _, _, body = README.removeprefix("---").partition("\n---\n")
    assert len(body.split()) <= 1000


def test_readme_has_one_measured_table_of_at_most_six_rows():
    measured = README.partition("\n## Measured\n")[2].partition("\n## ")[0]
    tables = re.findall(r"(?:^\|.*\n)+", measured, re.MULTILINE)
    head_and_rule = 2
    assert len(tables) == 1 and len(tables[0].splitlines()) - head_and_rule <= 6
