"""Faults while the app makes a take: killed, a full disk, a read-only cache, a clock that jumps."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from tools.chaos.program import LONG, SHORT, refusal, run_program, speech, whole
from tools.chaos.scenario import NotHere, Scenario, check

DISK = "24m"
DAY = 86400
# Loaded by every Python process of the app: `time.time` as much off as a file says.
JUMPING_CLOCK = """
import os, time
_real, _file = time.time, os.environ["CHAOS_CLOCK"]
def _jumped():
    try:
        with open(_file) as file:
            return _real() + float(file.read() or 0)
    except OSError:
        return _real()
time.time = _jumped
"""


def killed_in_a_take(folder: Path, short: bool) -> str:
    with run_program(folder) as app:
        blocks = speech(app.url, LONG)
        got = next(blocks)
        app.kill()
        try:
            got += b"".join(blocks)
            cut = "complete"
        except httpx.HTTPError:
            cut = "cut"
    with run_program(folder) as app:
        check(len(app.run_folders) == 1, f"{len(app.run_folders)} temporary folders are left")
        rest = whole(app.url, LONG, len(got))
        full = whole(app.url, LONG)
    check(full == got + rest, "the answer that goes on is another one")
    return f"{cut} after {len(got):,} bytes; the rest follows exactly, nothing is left behind"


def full_disk(folder: Path, short: bool) -> str:
    with small_disk(folder / "disk") as disk:
        places = {"DIA_TAKES": str(disk / "takes"), "DIA_KEPT": str(disk / "kept")}
        with run_program(folder, places) as app:
            before = whole(app.url, SHORT)
            filler = fill(disk)
            said = refusal(app.url, LONG)
            filler.unlink()
            check(whole(app.url, SHORT) == before, "the next answer is another one")
    return f"“{said or 'made in memory'}”; works on when there is space"


def read_only_cache(folder: Path, short: bool) -> str:
    """A path below a file can be written by nobody, not even by the administrator."""
    (folder / "file").write_text("")
    with run_program(folder) as app:
        before = whole(app.url, SHORT)
    with run_program(folder, {"DIA_CACHE": str(folder / "file" / "cache")}) as app:
        check(whole(app.url, SHORT) == before, "the answer is another one")
    return "starts, and makes the same answer"


def clock_jump(folder: Path, short: bool) -> str:
    (folder / "sitecustomize.py").write_text(JUMPING_CLOCK)
    clock = folder / "clock"
    more = {"PYTHONPATH": str(folder), "CHAOS_CLOCK": str(clock)}
    with run_program(folder, more) as app:
        before = whole(app.url, LONG)
        for seconds in (DAY, -2 * DAY):
            blocks = speech(app.url, LONG)
            got = next(blocks)
            clock.write_text(str(seconds))
            check(got + b"".join(blocks) == before, f"another answer after {seconds} s")
            check(whole(app.url, LONG) == before, f"another answer {seconds} s away")
    return "a day forwards and two back in a take: the same bytes"


@contextmanager
def small_disk(folder: Path) -> Iterator[Path]:
    """A file system of DISK. Raises NotHere without the right to mount one."""
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={DISK}", "tmpfs", str(folder)]
    if subprocess.run(command, capture_output=True).returncode:
        raise NotHere("this user may not mount a file system")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def fill(folder: Path) -> Path:
    """Use up what is left of a file system; returns the file to delete to free it again."""
    filler = folder / "filler"
    try:
        with open(filler, "wb", buffering=0) as file:
            while file.write(bytes(4096)):
                pass
    except OSError:
        pass
    return filler


SCENARIOS = [
    Scenario(
        "kill -9 of the app",
        "a take",
        "the same request goes on at the byte where it was cut",
        killed_in_a_take,
    ),
    Scenario("full disk", "a take", "one sentence, or made anyway; then as before", full_disk),
    Scenario("read-only cache", "start and take", "the same take", read_only_cache),
    Scenario("clock jumps", "a take", "the same take", clock_jump),
]
