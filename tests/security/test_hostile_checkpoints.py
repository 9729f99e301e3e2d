"""Hostile checkpoints: one sentence, exit code 2, little time and memory, and no code runs."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from dia_demo.files import ROOT


@pytest.mark.long
def test_every_hostile_checkpoint_is_refused_in_one_sentence():
    """In a process of its own, which forks: torch has threads in this one."""
    command = [sys.executable, "-m", "tests.security.hostile_checkpoints", "--forked"]
    # Of several threads, some would wait actively where other tests use the cores: that counts as
    # processor time, which is limited.
    env = os.environ | {"OMP_NUM_THREADS": "1"}
    out = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=600)
    assert out.returncode == 0, out.stdout + out.stderr
