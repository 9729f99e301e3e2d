"""The measurement of the page runs: its figures are read from a page that changes."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from dia_demo.files import ROOT


@pytest.mark.long
def test_a_start_with_a_take_is_measured():
    command = [sys.executable, "-m", "tools.measure_page", "--starts", "1", "--takes", "1"]
    out = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert out.returncode == 0, out.stderr
    figures = r"first sound \d+\.\d\d s, done \d+\.\d s \(Audio [\d.]+ s, Realtime factor [\d.]+x"
    assert "page usable" in out.stdout and re.search(figures, out.stdout)
