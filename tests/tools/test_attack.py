"""The attacks that one running app answers: none succeeds."""

from __future__ import annotations

import subprocess
import sys

from dia_demo.files import ROOT


def test_no_attack_succeeds():
    command = [sys.executable, "-m", "tools.attack", "--short"]
    out = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=900)
    assert out.returncode == 0, out.stdout + out.stderr
