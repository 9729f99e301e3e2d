"""Hostile checkpoints: one sentence, exit code 2, little time and memory, and no code runs."""

from __future__ import annotations

import subprocess
import sys

import pytest

from dia_demo.files import ROOT


@pytest.mark.long
def test_every_hostile_checkpoint_is_refused_in_one_sentence():
    """In a process of its own, which forks: torch has threads in this one."""
    command = [sys.executable, "-m", "tests.security.hostile_checkpoints", "--forked"]
    out = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert out.returncode == 0, out.stdout + out.stderr
