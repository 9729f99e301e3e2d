"""Python code in a process of its own, with a folder of its own for compiled kernels."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from dia_demo.files import ROOT


def run_python(
    code: str, *arguments: str, cache: Path, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run the code to its end, which must be a success. variables: of the environment."""
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env=os.environ | {"DIA_CACHE": str(cache)} | variables,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    return done
