"""The attacks that one running app answers: none succeeds."""

from __future__ import annotations

import subprocess
import sys

from dia_demo.files import ROOT
from tools import attack_files, attack_held, attack_load


def test_no_attack_succeeds():
    command = [sys.executable, "-m", "tools.attack", "--short"]
    out = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=900)
    assert out.returncode == 0, out.stdout + out.stderr


def test_every_attack_says_what_it_does():
    for module in (attack_files, attack_held, attack_load):
        groups = (getattr(module, name, ()) for name in ("QUICK", "SLOW", "ALONE"))
        for attack in (one for group in groups for one in group):
            assert len(attack.__doc__.strip().splitlines()) == 3, attack.__name__
