"""What a Space and a container read: the card in README.md, requirements, Dockerfile."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import textwrap
from importlib.metadata import version

import pytest
import yaml

from dia_demo.checkpoint_files import INDEX
from dia_demo.codec import files as codec_files
from dia_demo.codec.mimi.files import MIMI_NAME
from dia_demo.families.dia2.profiles import DIA2_1B
from dia_demo.files import ROOT
from tests.helpers.models.known import DIA_NAME
from tests.repository.test_architecture import tree_of

CARD = yaml.safe_load((ROOT / "README.md").read_text(encoding="utf-8").split("---")[1])
COLOURS = {"red", "yellow", "green", "blue", "indigo", "purple", "pink", "gray"}
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
STEPS = re.findall(r"^([A-Z]+) (.*)$", DOCKERFILE.replace("\\\n", " "), re.MULTILINE)
# Asked for at run time, and done without: ZeroGPU's package, a recogniser for judging takes,
# tools for agents, a cluster.
OPTIONAL = {"ray", "spaces", "pocketsphinx", "mcp"}


def lines(name: str) -> list[str]:
    """The lines of a requirements file without comments."""
    text = (ROOT / name).read_text(encoding="utf-8")
    return [line for line in text.splitlines() if line and not line.startswith("#")]


# The card


def test_the_card_names_the_pinned_gradio():
    assert CARD["sdk"] == "gradio"
    assert f"gradio=={CARD['sdk_version']}" in lines("requirements.txt")


def test_the_card_is_complete():
    assert CARD["title"] and CARD["emoji"] and CARD["tags"]
    assert {CARD["colorFrom"], CARD["colorTo"]} <= COLOURS
    assert CARD["python_version"] == "3.12" and CARD["license"] == "apache-2.0"
    assert re.fullmatch(r"\d+[mh]", CARD["startup_duration_timeout"])
    for file in (CARD["app_file"], CARD["thumbnail"]):
        assert (ROOT / file).is_file()


def test_the_description_is_as_short_as_the_hub_demands():
    assert len(CARD["short_description"]) <= 60


def test_exactly_the_files_that_are_used_are_fetched_for_a_space():
    preloaded = {
        name: set(files.split(",")) for name, files in map(str.split, CARD["preload_from_hub"])
    }
    assert set(preloaded) == {DIA_NAME, codec_files.HUB_NAME}
    assert set(CARD["models"]) == {*preloaded, DIA2_1B, MIMI_NAME}
    assert preloaded[codec_files.HUB_NAME] == set(codec_files.HUB_FILES)
    shards = {f"model-0000{number}-of-00002.safetensors" for number in (1, 2)}
    assert preloaded[DIA_NAME] == {"config.json", "generation_config.json", INDEX, *shards}


# Requirements


def test_a_space_can_install_the_requirements_alone():
    """It has no other file while it installs."""
    assert not [line for line in lines("requirements.txt") if line.startswith("-")]


def test_all_requirements_but_torch_are_pinned():
    pinned = [line for line in lines("requirements.txt") if "==" in line]
    assert sorted(set(lines("requirements.txt")) - set(pinned)) == ["torch>=2.8,<2.14"]
    assert set(pinned) <= {
        line.replace("huggingface-hub", "huggingface_hub") for line in lines("constraints.txt")
    }


def test_every_package_that_the_program_imports_is_installed_with_it():
    """By name or with another: what only development brings is missing on a fresh machine."""
    imported = set()
    for path in [*(ROOT / "dia_demo").rglob("*.py"), ROOT / "app.py"]:
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.Import):
                imported |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                imported.add(str(node.module).split(".")[0])
    names = {"PIL": "pillow", "dac": "descript-audio-codec"}
    packages = {name: names.get(name, name.replace("_", "-")) for name in imported}
    others = sys.stdlib_module_names | {"dia_demo"} | OPTIONAL
    installed = {line.partition("==")[0] for line in lines("constraints.txt")}
    assert {packages[name] for name in imported - others} <= installed


def test_the_cpu_build_is_of_the_same_range():
    option, requirement = lines("requirements-cpu.txt")
    assert option.endswith("/whl/cpu") and requirement in lines("requirements.txt")


def test_the_tests_run_with_the_constraints():
    assert "-c constraints.txt" in lines("requirements-dev.txt")
    assert version("gradio") == CARD["sdk_version"]


# ZeroGPU

SPACES = """
    import sys
    assert "torch" not in sys.modules, "spaces must be imported before torch"
    decorated = []
    def GPU(function):
        decorated.append(function)
        return function
    """
START = """
import app, spaces, torch
torch.cuda.is_available = lambda: True
from dia_demo.services.settings import Settings
from dia_demo.services.synthesis import Synthesis
from dia_demo.ui.page import build_ui
synthesis = Synthesis(Settings())
page = build_ui(synthesis)
assert spaces.decorated, "no function for the GPU"
bound = [event.fn for event in page.fns.values()]
assert spaces.decorated[0] in bound, "bound to no event"
assert synthesis.settings.runtime.device == "cpu"
synthesis.close()
"""


@pytest.mark.long
def test_on_zero_gpu_the_page_has_a_function_for_the_gpu(tmp_path):
    (tmp_path / "spaces.py").write_text(textwrap.dedent(SPACES))
    changes = {"SPACES_ZERO_GPU": "true", "PYTHONPATH": f"{tmp_path}:{ROOT}"}
    ran = subprocess.run(
        [sys.executable, "-c", START],
        cwd=ROOT,
        env=os.environ | changes,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert ran.returncode == 0, ran.stderr[-2000:]


# Docker


def test_the_container_installs_the_requirements_of_the_readme():
    installed = re.findall(r"pip install (.*?)-r (\S+) -c (\S+)", DOCKERFILE)
    assert [files for _, *files in installed] == [
        ["requirements-cpu.txt", "constraints.txt"], ["requirements.txt", "constraints.txt"]
    ]  # fmt: skip
    # PyTorch's index need not have the versions of the constraints, torch's own excepted.
    assert "--no-deps" in installed[0][0] and "--no-deps" not in installed[1][0]


def test_the_container_runs_as_an_ordinary_user():
    names = [name for name, _ in STEPS]
    user = dict(STEPS)["USER"]
    assert user != "root" and f"useradd --create-home --uid 1000 {user}" in DOCKERFILE
    assert names.index("USER") < names.index("CMD")


def test_the_container_says_whether_it_is_healthy():
    assert "urlopen" in DOCKERFILE.partition("HEALTHCHECK")[2]


def test_what_the_container_keeps_is_in_its_volume():
    volume = dict(STEPS)["VOLUME"]
    for variable in ("HF_HOME", "DIA_CACHE", "DIA_KEPT"):
        assert re.search(rf"{variable}={volume}/", DOCKERFILE)


def test_the_container_has_everything_that_the_app_reads():
    ignored = [line for line in lines(".dockerignore")]
    assert not {"app.py", "dia_demo", "assets", "docs", "requirements.txt"} & set(ignored)
