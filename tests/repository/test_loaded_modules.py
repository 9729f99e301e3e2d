"""What the page and a take load: none of the large packages that the codec's package brings.

gradio is the exception: it imports pandas, for tables that this page does not have, and looks
whether IPython is there.
"""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from dia_demo.files import ROOT

pytestmark = pytest.mark.long

UNNEEDED = (
    "tensorboard", "IPython", "matplotlib", "torchaudio", "librosa", "pandas", "dac", "audiotools",
    "transformers", "sklearn", "google.protobuf", "torch._dynamo",
)  # fmt: skip

# The codec's own package is loaded with a take.
UNNEEDED_IN_A_TAKE = sorted(set(UNNEEDED) - {"dac", "audiotools"})
TAKE = """
import json, sys
from dia_demo.cli.main import main
sample, words = {sample!r}, "[S1] Hello there, how are you? [S2] I am very well today, thank you."
assert main(["say", words, "--seed", "1", "-o", sample]) == 0
prompt = ["--voice-prompt", sample, "--voice-transcript", words]
assert main(["say", "[S1] Good day. [S2] Hi.", "--seed", "1", *prompt, "-o", sample]) == 0
print(json.dumps(sorted(sys.modules)))
"""
PAGE = """
import json, sys
importers = set()
class Recorder:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {unneeded!r}:
            frame = sys._getframe(1)
            while frame.f_globals["__name__"].split(".")[0] in ("importlib", name.split(".")[0]):
                frame = frame.f_back
            importers.add((name.split(".")[0], frame.f_globals["__name__"].split(".")[0]))
sys.meta_path.insert(0, Recorder())
import app
from dia_demo.services.settings import Settings
from dia_demo.services.synthesis import Synthesis
from dia_demo.ui.page import build_ui
synthesis = Synthesis(Settings())
build_ui(synthesis)
synthesis.close()
print(json.dumps(sorted(importers)))
"""


def run(script: str, tmp_path) -> list:
    out = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=200
    )
    assert out.returncode == 0, out.stderr[-2000:]
    return json.loads(out.stdout.splitlines()[-1])


def test_on_the_page_only_gradio_loads_one_of_them(tmp_path):
    importers = run(PAGE.format(unneeded=UNNEEDED), tmp_path)
    assert ["pandas", "gradio"] in importers
    assert {importer for _, importer in importers} == {"gradio"}


def test_a_take_loads_no_package_that_it_does_not_need(tmp_path):
    modules = set(run(TAKE.format(sample=str(tmp_path / "a.wav")), tmp_path))
    assert "audiotools" in modules
    assert [name for name in UNNEEDED_IN_A_TAKE if name in modules] == []
