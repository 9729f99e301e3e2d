"""`python -m dia_demo say` as a program: killed and started again; its memory."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from random import Random

import numpy as np

from dia_demo.files import ROOT
from tools.voice_bars import scripts
from tools.voice_bars.bar import Bar, Line, Trial, share_line
from tools.voice_bars.studio import Studio, runtime_options

KILLED, KILLED_TURNS, REFERENCES = 20, 20, 4
LONG_DIALOGUES = 10  # of three minutes
FIRST_MINUTE = 60.0
# The memory of a process grows a little whatever it does.
FLAT = 1.05
POLL_SECONDS = 0.02


def _start(studio: Studio, script: str, output: Path, seed: int, *more: str) -> subprocess.Popen:
    command = [sys.executable, "-m", "dia_demo", "say", "-", "-o", str(output), "--json"]
    command += ["--seed", str(seed), *runtime_options(studio.runtime), *more]
    process = subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True,
    )  # fmt: skip
    assert process.stdin is not None
    process.stdin.write(script)
    process.stdin.close()
    process.stdin = None
    return process


def _wait_for_output(process: subprocess.Popen) -> str:
    """What it printed. Raises RuntimeError if it failed."""
    out, err = process.communicate()
    if process.returncode:
        raise RuntimeError(err.strip().splitlines()[-1] if err.strip() else "no message")
    return out


@lru_cache(REFERENCES)
def _make_uninterrupted(studio: Studio, number: int) -> tuple[bytes, int]:
    """The file of a script that nothing interrupts, and how many parts it has."""
    with tempfile.TemporaryDirectory(dir=studio.work) as folder:
        output = Path(folder) / "whole.wav"
        out = _wait_for_output(_start(studio, _script(studio, number), output, seed=number))
        return output.read_bytes(), len(json.loads(out)["chunks"])


def _script(studio: Studio, number: int) -> str:
    return scripts.dialogue(300 + number, 6 if studio.is_quick else KILLED_TURNS)


def _kill_trial(studio: Studio, number: int) -> Trial:
    """Killed as soon as a random number of parts is on the disk, then run again."""
    reference = number % REFERENCES
    whole, parts = _make_uninterrupted(studio, reference)
    after = Random(number).randrange(parts)
    with tempfile.TemporaryDirectory(dir=studio.work) as name:
        folder = Path(name)
        arguments = (studio, _script(studio, reference), folder / "out.wav", reference)
        process = _start(*arguments)
        while process.poll() is None and len(list(folder.glob(".out.wav.*/*.npz"))) <= after:
            time.sleep(POLL_SECONDS)
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
        kept = len(list(folder.glob(".out.wav.*/*.npz")))
        was_complete = (folder / "out.wav").exists()
        _wait_for_output(_start(*arguments))
        same = (folder / "out.wav").read_bytes() == whole
        left = len(list(folder.glob(".out.wav.*")))
    return {"parts": parts, "kept": kept, "complete": was_complete, "same": same, "left": left}


def _lines_of_kills(trials: Sequence[Trial]) -> list[Line]:
    same = [trial["same"] and not trial["left"] for trial in trials]
    kept = f"{np.mean([trial['kept'] for trial in trials]):.1f} of {trials[0]['parts']} parts kept"
    return [share_line("killed at a random chunk and resumed: identical file", 1, same, kept)]


def _memory_trial(studio: Studio, number: int) -> Trial:
    """The resident memory of `say` with a script of half an hour, ten times a second."""
    count = 1 if studio.is_quick else LONG_DIALOGUES
    script = " ".join(scripts.dialogue(400 + number + k, studio.turns) for k in range(count))
    with tempfile.TemporaryDirectory(dir=studio.work) as name:
        folder = Path(name)
        options = ("--words", str(folder / "w.json"), "--subtitles", str(folder / "s.srt"))
        process = _start(studio, script, folder / "out.wav", number, *options)
        made, memory = [], []
        while process.poll() is None:
            files = list(folder.glob(".out.wav.*/*.npz"))
            made.append(len(files))
            memory.append(_resident(process.pid))
            time.sleep(0.1)
        figures = json.loads(_wait_for_output(process))
    parts = len(figures["chunks"])
    seconds = np.array(made) * figures["audio_seconds"] / parts
    after = int(np.searchsorted(seconds, FIRST_MINUTE))
    first = max(memory[: after + 1])
    curve = list(zip(seconds.astype(int).tolist(), memory, strict=True))
    return {
        "seconds": round(figures["audio_seconds"], 1),
        "parts": parts,
        "first_minute": first,
        "most": max([first, *memory[after:]]),
        "curve": curve[:: max(1, len(curve) // 40)],
    }


def _resident(pid: int) -> int:
    """Bytes in memory of a process on Linux; 0 if it has ended."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (OSError, IndexError, ValueError):
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")


def _lines_of_memory(trials: Sequence[Trial]) -> list[Line]:
    ratios = [trial["most"] / trial["first_minute"] for trial in trials]
    first, most = (max(trial[name] for trial in trials) / 1e6 for name in ("first_minute", "most"))
    minutes = np.mean([trial["seconds"] for trial in trials]) / 60
    return [
        Line(
            f"memory of a script of {minutes:.0f} minutes after its first", f"≤ {FLAT:g} times",
            len(trials), f"{max(ratios):.2f} times ({first:.0f} MB, then at most {most:.0f} MB)",
            max(ratios) <= FLAT,
        )
    ]  # fmt: skip


BARS = (
    Bar("resume", KILLED, 1, _kill_trial, _lines_of_kills),
    Bar("memory", 1, 0, _memory_trial, _lines_of_memory),
)
