"""Takes of the fixed dialogues, each by a process of its own, and what a recogniser hears."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from dia_demo.files import ROOT, write_atomic
from dia_demo.services.measurements import words
from tools.real_weights.check import Check, Outcome
from tools.real_weights.report import write_report


def make_takes(check: Check, outcome: Outcome) -> None:
    """All takes that are not there yet. A failed one does not stop the others."""
    for precision in check.precisions:
        folder = check.work / "takes" / precision
        folder.mkdir(parents=True, exist_ok=True)
        outcome.takes[precision] = []
        for number, script in enumerate(check.dialogues):
            file = folder / f"{number:02}.json"
            try:
                take = finished_take(check, script, file) or make_take(
                    check, precision, number, script, file
                )
            except RuntimeError as error:
                outcome.failures.append(f"{precision}, dialogue {number}: {error}")
                print(outcome.failures[-1], flush=True)
            else:
                outcome.takes[precision].append(take)
                print(
                    f"{precision}, dialogue {number}: {take['audio_seconds']:.1f} s of audio, "
                    f"{take['realtime_factor']:.2f}x realtime",
                    flush=True,
                )
            write_report(check, outcome)


def finished_take(check: Check, script: str, file: Path) -> dict[str, Any] | None:
    """The figures of a take that an earlier run made, if it is the same one."""
    if not file.is_file():
        return None
    take = json.loads(file.read_text(encoding="utf-8"))
    is_same = (take["model"], take["script"]) == (check.model, script)
    return take if is_same and take["limits"] == list(check.limits) else None


def make_take(check: Check, precision: str, number: int, script: str, file: Path) -> dict[str, Any]:
    """Make a take, and write its figures to `file` when it is whole; returns them."""
    sound = file.with_suffix(".flac")
    figures = say(
        check, script, "--precision", precision, "--seed", number, *check.limits, "-o", sound
    )
    figures |= {"heard": hear(sound), "script": script, "limits": list(check.limits)}
    with write_atomic(file) as part:
        part.write_text(json.dumps(figures, indent=2), encoding="utf-8")
    return figures


def say(check: Check, script: str, *options: object) -> dict[str, Any]:
    """The figures of a take by `python -m dia_demo say`. Raises RuntimeError with its message."""
    command = ["-m", "dia_demo", "say", script, "--model", check.model, "--json"]
    return json.loads(python(*command, *options).splitlines()[-1])


def python(*arguments: object) -> str:
    """The output of a Python process. Raises RuntimeError with its last words."""
    done = subprocess.run(
        [sys.executable, *map(str, arguments)],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    if done.returncode < 0:
        raise RuntimeError(
            f"its process was terminated by signal {-done.returncode}"
            + (", most likely because memory ran out" if done.returncode == -9 else "")
        )
    if done.returncode:
        lines = done.stderr.strip().splitlines()
        raise RuntimeError(lines[-1] if lines else f"exit code {done.returncode}")
    return done.stdout


def hear(sound: Path) -> str | None:
    """What a recogniser hears in a take; None where it is not installed."""
    import soundfile
    import soxr

    try:
        recogniser = words.Recogniser()
    except ImportError:
        return None
    samples, rate = soundfile.read(sound, dtype="float32")
    return recogniser.hear(soxr.resample(samples, rate, words.SAMPLE_RATE))
