"""dac imports torchaudio: whichever is installed, the codec loads without it."""

import subprocess
import sys

import pytest

from dia_demo.codec import files
from tests.helpers.long import long_after

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
warnings.filterwarnings("default", module=r"(?!dia_demo|dac|audiotools|torch).*")
from dia_demo.codec.codec import random_codec
import numpy as np
codec = random_codec(encoder_dim=2, encoder_rates=[2], decoder_dim=4, decoder_rates=[2])
assert "torch._dynamo" not in sys.modules, "80 MB and a second, for shapes alone"
assert codec.decode(codec.encode(np.ones(99, "f"))).size == 100
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
    long_after(
        1,
        [
            ("broken", "[] stand-in OSError"),
            ("good", "[] stand-in good"),
            ("none", "[] stand-in ModuleNotFoundError"),
        ],
    ),
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
        cwd=files.__file__.partition("/dia_demo/")[0],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert ran.stdout.strip() == expected, ran.stderr[-2000:]
