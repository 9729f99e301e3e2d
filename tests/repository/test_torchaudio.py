"""dac imports torchaudio: whichever is installed, none or a broken one, tests can load dac."""

import subprocess
import sys

import pytest

from dia_demo.files import ROOT

TRAP = """
import importlib, sys, types, warnings
warnings.simplefilter("error", DeprecationWarning)
warnings.simplefilter("error", FutureWarning)
import torch
class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "torchaudio":
            raise ModuleNotFoundError(name)
if {kind!r} == "none":
    sys.meta_path.insert(0, Hidden())
warnings.filterwarnings("default", module=r"(?!dia_demo|tools|dac|audiotools|torch).*")
from tools.torchaudio_guard import import_dac
assert import_dac().DAC
import audiotools
stand_in = audiotools.core.util.torchaudio
loaded = sorted(name for name in sys.modules if name.partition(".")[0] == "torchaudio")
try:
    found = importlib.import_module("torchaudio").kind
except Exception as error:
    found = type(error).__name__
print(loaded, getattr(stand_in, "kind", "stand-in"), found)
"""


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("good", "['torchaudio', 'torchaudio.part'] good good"),
        ("broken", "[] stand-in OSError"),
        ("none", "[] stand-in ModuleNotFoundError"),
    ],
)
@pytest.mark.slow
def test_dac_loads_beside_any_torchaudio(tmp_path, kind, expected):
    package = tmp_path / "torchaudio"
    package.mkdir()
    fails = "raise OSError('libtorch_cuda.so')" if kind == "broken" else ""
    (package / "__init__.py").write_text(f"from torchaudio import part\n{fails}\nkind = 'good'\n")
    (package / "part.py").write_text("")
    ran = subprocess.run(
        [sys.executable, "-c", TRAP.format(kind=kind)],
        env={"PYTHONPATH": f"{tmp_path}:{':'.join(p for p in sys.path if p)}", "PATH": ""},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert ran.stdout.strip() == expected, ran.stderr[-2000:]
