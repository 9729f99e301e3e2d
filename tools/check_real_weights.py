"""Check the real Dia-1.6B on this machine: fetch it, make takes, judge them, write one table.

    python -m tools.check_real_weights WORK
    python -m tools.check_real_weights WORK --precision int8 --dialogues 3     # a first look

Fetches Dia-1.6B-0626 (6.4 GB) and the codec from the hub, makes 20 fixed dialogues with fixed seeds
in each precision, and compares the first codes with those of transformers on the same weights. Each
take is made by `python -m dia_demo say` in a process of its own. Needs 16 GB of memory for float32
and for transformers, and requirements-dev.txt for transformers and the recogniser.

What is finished stays in WORK, and running it again goes on where it stopped:

    takes/PRECISION/07.flac    takes with their settings inside, for listening
    takes/PRECISION/07.json    the take's figures, and what the recogniser heard
    codes/                     the first codes, ours and those of transformers
    report.md                  the table for docs/performance.md

Ends with exit code 1 where a take failed or codes differ.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dia_demo.codec.files import find_codec
from dia_demo.config import PRECISIONS
from dia_demo.errors import DiaDemoError
from dia_demo.families.dia.profiles import DIA_NAME
from dia_demo.families.resolve import local_folder
from dia_demo.hub.fetch import fetch_checkpoint
from dia_demo.task import Task
from tools.real_weights.check import Check, Outcome
from tools.real_weights.codes import compare_codes
from tools.real_weights.dialogues import DIALOGUES
from tools.real_weights.report import report, write_report
from tools.real_weights.takes import make_takes

ALL = PRECISIONS[1:]
FRAMES = 100


def fetch(model: str) -> Path:
    """The folder of the model, fetched with its codec if necessary; shows the progress."""
    folder = local_folder(model)
    if folder is None:
        folder = show(f"Fetching {model}", fetch_checkpoint(model))
    show("Fetching the codec", find_codec(folder))
    return folder


def show(what: str, work) -> Any:
    task, shown = Task(work), -1
    for fraction in task:
        if int(100 * fraction) > shown:
            shown = int(100 * fraction)
            print(f"\r{what}: {shown}%", end="", flush=True)
    print()
    return task.result


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("work", type=Path, help="folder of what is finished")
    parser.add_argument("--model", default=DIA_NAME, help="another Dia, for a rehearsal")
    parser.add_argument("--precision", nargs="+", choices=ALL, default=ALL)
    parser.add_argument("--dialogues", type=int, default=len(DIALOGUES), metavar="N")
    parser.add_argument("--frames", type=int, default=FRAMES, help="compared with transformers")
    parser.add_argument("--max-tokens", type=int, metavar="N", help="a bound, for a rehearsal")
    options = parser.parse_args(arguments)
    limits = () if options.max_tokens is None else ("--max-tokens", str(options.max_tokens))
    work = options.work.absolute()
    local = local_folder(options.model)
    model = options.model if local is None else str(local.absolute())
    check = Check(
        work, model, options.precision, DIALOGUES[: options.dialogues], options.frames, limits
    )
    work.mkdir(parents=True, exist_ok=True)
    outcome = Outcome()
    try:
        folder = fetch(check.model)
    except DiaDemoError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    compare_codes(check, folder, outcome)
    make_takes(check, outcome)
    write_report(check, outcome)
    print("\n".join(report(check, outcome)))
    return 1 if outcome.failures else 0


if __name__ == "__main__":
    sys.exit(main())
