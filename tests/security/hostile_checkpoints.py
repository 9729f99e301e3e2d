"""What the command line answers to checkpoint folders that must do no harm.

    python -m tests.security.hostile_checkpoints             # speaks with each, prints a table
    python -m tests.security.hostile_checkpoints --forked    # quicker: the program is loaded once

Every one is the embedded voice with one thing wrong; the voice itself must speak. `say --model
FOLDER` must answer with one sentence and exit code 2, within SECONDS of processor time and BYTES,
and must run no code of the checkpoint. (Processor time, so that other programs do not count.)
"""

from __future__ import annotations

import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import psutil

from dia_demo.cli import main as cli
from dia_demo.files import ROOT
from tests.security.hostile_folders import HEALTHY, HOSTILE, PROOF, write_checkpoint

SECONDS, BYTES = 5.0, 10**9
# The program is ended after this time, which leaves room for a busy machine.
ENOUGH_SECONDS = 200


@dataclass(frozen=True)
class Answer:
    """What `say` did with a checkpoint."""

    code: int | None
    seconds: float
    processor_seconds: float
    peak_bytes: int
    stderr: str
    code_ran: bool

    def problems(self) -> list[str]:
        """What is wrong with it; nothing where the checkpoint did no harm."""
        lines = self.stderr.strip().splitlines()
        found = {
            "it did not end": self.code is None,
            f"exit code {self.code}": self.code not in (2, None),
            "its code ran": self.code_ran,
            f"{len(lines)} lines on stderr": len(lines) != 1,
            "no sentence": not (lines and lines[-1].startswith("error: ")),
            f"{self.processor_seconds:.1f} s": self.processor_seconds > SECONDS,
            f"{self.peak_bytes / 1e9:.1f} GB": self.peak_bytes > BYTES,
        }
        return [problem for problem, there in found.items() if there]


def ask(name: str, home: Path, forked: bool = False) -> Answer:
    """Write the checkpoint under `home`, speak with it in a process, and remove it.

    forked: a copy of this process instead of a new one, which saves the imports.
    """
    folder = home / "checkpoint"
    script = ["say", "[S1] Hello.", "-o", str(home / "take.wav"), "--model", str(folder)]
    # Nothing outside this folder is written, and nothing is fetched.
    os.environ |= {"DIA_CACHE": str(home / "cache"), "HF_HUB_OFFLINE": "1"}
    began = time.monotonic()
    try:
        with tempfile.TemporaryFile() as stderr:
            code, used = _wait((_fork if forked else _spawn)(name, folder, script, stderr))
            seconds = time.monotonic() - began
            stderr.seek(0)
            said = stderr.read(100_000).decode(errors="replace")
        processor = used.ru_utime + used.ru_stime
        proof = (folder / PROOF).exists()
        return Answer(code, seconds, processor, used.ru_maxrss * 1024, said, proof)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _spawn(name: str, folder: Path, script: list[str], stderr: IO[bytes]) -> int:
    write_checkpoint(name, folder)
    command = [sys.executable, "-m", "dia_demo", *script]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=stderr)
    process.returncode = 0  # It is waited for below, by its number.
    return process.pid


def _fork(name: str, folder: Path, script: list[str], stderr: IO[bytes]) -> int:
    # All work is the child's: torch's threads would not outlive a fork.
    if pid := os.fork():
        return pid
    code = 1
    try:
        write_checkpoint(name, folder)
        os.dup2(stderr.fileno(), 2)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        code = cli.main(script)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def _wait(pid: int) -> tuple[int | None, resource.struct_rusage]:
    """Exit code and what it used; None where it was ended for taking far too long or too much."""
    process, end = psutil.Process(pid), time.monotonic() + ENOUGH_SECONDS
    while time.monotonic() < end and process.memory_info().rss < 3 * BYTES:
        found, status, used = os.wait4(pid, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status), used
        time.sleep(0.02)
    os.kill(pid, signal.SIGKILL)
    _, _, used = os.wait4(pid, 0)
    return None, used


def ask_all(forked: bool = False) -> Iterator[tuple[str, Answer]]:
    """Each kind's answer. Raises RuntimeError where the voice itself does not speak."""
    with tempfile.TemporaryDirectory(prefix="hostile-") as home:
        # It also compiles the kernels, as anybody's first take does.
        healthy = ask(HEALTHY, Path(home), forked)
        if healthy.code != 0:
            raise RuntimeError(f"The embedded voice does not speak here: {healthy.stderr}")
        for name in HOSTILE:
            yield name, ask(name, Path(home), forked)


def main() -> int:
    """Ask all; 1 where one did harm."""
    bad = 0
    for name, answer in ask_all(forked="--forked" in sys.argv[1:]):
        problems = answer.problems()
        bad += bool(problems)
        print(
            f"{name:42} {answer.seconds:5.1f} s {answer.processor_seconds:5.1f} s of processor "
            f"{answer.peak_bytes / 1e6:6.0f} MB  {'; '.join(problems) or 'one sentence'}"
        )
        if problems:
            print("    " + (answer.stderr.strip().splitlines() or ["nothing"])[-1][:160])
    print(f"{len(HOSTILE) - bad} of {len(HOSTILE)} did no harm.")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
