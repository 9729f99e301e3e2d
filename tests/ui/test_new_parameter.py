"""A sampling parameter is one entry in `config.GenerationParams`: every interface offers it."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from dia_demo.files import ROOT

pytestmark = pytest.mark.slow

ENTRY = """    min_p: float = _param(
        ParamSpec(
            0.0,
            "Min-p",
            "Excludes sounds far less likely than the first.",
            Range(0.0, 1.0),
            step=0.01,
            advanced=True,
        )
    )

"""
BEFORE = "    def check(self, config: ModelConfig)"
# Imports `dia_demo.config` with the entry in it. A copy of the program would compile all kernels.
IMPORT = f"""
import importlib.abc, importlib.util, sys
from importlib.machinery import SourceFileLoader

class WithEntry(SourceFileLoader):
    def get_code(self, name):
        source = self.get_data(self.path).decode()
        assert source.count({BEFORE!r}) == 1
        return compile(source.replace({BEFORE!r}, {ENTRY + BEFORE!r}), self.path, "exec")

class Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == "dia_demo.config":
            file = path[0] + "/config.py"
            return importlib.util.spec_from_file_location(name, file, loader=WithEntry(name, file))

sys.meta_path.insert(0, Finder())
"""
LOOK = """
import io, json, sys
from contextlib import redirect_stdout, suppress
from pathlib import Path
from dia_demo.cli.main import main
from dia_demo.services.earlier.take_metadata import form_values, read_take
from dia_demo.services.settings import Settings
from dia_demo.services.synthesis import Synthesis
from dia_demo.ui.page import build_ui

def help_of(command):
    with redirect_stdout(io.StringIO()) as text, suppress(SystemExit):
        main([command, "--help"])
    return text.getvalue()

page = build_ui(Synthesis(Settings()))
page.config = page.get_config_file()
take = Path("take.wav")
options = ["--min-p", "0.25", "--max-tokens", "30", "--precision", "float32"]
code = main(["say", "[S1] Hi.", "-o", str(take), *options])
print(json.dumps({
    "help": help_of("say"),
    "compare_help": help_of("compare"),
    "arguments": page.get_api_info()["named_endpoints"]["/generate"]["parameters"],
    "components": [component["props"] for component in page.config["components"]],
    "code": code,
    "settings": read_take(take)["settings"],
    "form": form_values(read_take(take)),
}, default=str))
"""


@pytest.fixture(scope="module")
def offered(tmp_path_factory) -> dict:
    """What the interfaces of a program with the parameter `min_p` offer."""
    run = subprocess.run(
        [sys.executable, "-c", IMPORT + LOOK],
        cwd=tmp_path_factory.mktemp("take"),
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout.splitlines()[-1])


def test_the_command_line_has_its_option(offered):
    assert "--min-p F" in offered["help"]
    assert "excludes sounds far less likely" in offered["help"]
    assert "min_p" in offered["compare_help"]


def test_the_endpoint_has_its_argument_at_the_end(offered):
    last = offered["arguments"][-1]
    assert (last["parameter_name"], last["label"]) == ("min_p", "Min-p")
    assert last["parameter_has_default"] and last["parameter_default"] is None
    assert len(offered["arguments"]) == 20


def test_the_page_has_its_slider(offered):
    (slider,) = (props for props in offered["components"] if props.get("elem_id") == "min_p")
    ends = {name: slider[name] for name in ("label", "minimum", "maximum", "step", "value")}
    assert ends == {"label": "Min-p", "minimum": 0.0, "maximum": 1.0, "step": 0.01, "value": 0.0}


def test_a_comparison_has_its_fields(offered):
    labels = {props.get("label") for props in offered["components"]}
    assert {"Min-p", "Min-p, second side"} <= labels
    (differs,) = (props for props in offered["components"] if props.get("elem_id") == "lab-differs")
    assert ["Min-p", "min_p"] in differs["choices"]


def test_a_take_stores_its_value(offered):
    assert offered["code"] == 0
    assert offered["settings"]["min_p"] == 0.25 and offered["form"]["min_p"] == 0.25
