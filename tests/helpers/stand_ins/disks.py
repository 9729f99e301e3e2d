"""Small file systems in memory, for tests of a full disk."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tools.chaos.app_faults import fill as fill


@contextmanager
def mount_disk(folder: Path, size: str) -> Iterator[Path]:
    """`folder` as a file system of `size`, such as "256k". Skips the test without the right to."""
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    if subprocess.run(command, capture_output=True).returncode != 0:
        pytest.skip("this user may not mount a file system")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)
